import hashlib
import json
from importlib.resources import files

from hypothesis import given
from hypothesis import strategies as st

from talka.report.plotting.figure import Figure, _script_safe

SCRIPTS = files("talka.report") / "scripts"
SHA256 = "99784e3abfb07b142a15e521a439e6d9addceadb3f79553fd24c72774f0649ba"


def test_the_script_is_the_one_that_was_published_with_its_license_beside_it():
    data = (SCRIPTS / "plotly-basic.min.js").read_bytes()
    assert hashlib.sha256(data).hexdigest() == SHA256
    assert b"Licensed under the MIT license" in data[:300]
    assert (SCRIPTS / "plotly-basic.LICENSE").read_text().startswith("MIT License")


def test_the_script_cannot_end_its_element():
    text = (SCRIPTS / "plotly-basic.min.js").read_text(encoding="utf-8").lower()
    assert "</script" not in text
    assert "<!--" not in text


def test_attributes_are_merged_and_those_that_are_none_left_out():
    figure = Figure({"height": 100, "font": {"size": 13}})
    figure.update_layout(font={"family": "serif"}, barmode="group")
    figure.update_xaxes(title={"text": "a", "font": {"size": 1}})
    figure.update_xaxes(title={"text": "b"})
    figure.add_bar(x=[1, None], text=None)
    figure.add_scatter(y=[2])
    text = figure.as_html("sum")
    arguments = text.split("Plotly.newPlot(")[1].split(")</script>")[0]
    assert json.loads(f"[{arguments}]") == [
        "plot-sum",
        [{"type": "bar", "x": [1, None]}, {"type": "scatter", "y": [2]}],
        {
            "height": 100,
            "font": {"size": 13, "family": "serif"},
            "barmode": "group",
            "xaxis": {"title": {"text": "b", "font": {"size": 1}}},
        },
        {"displayModeBar": False, "responsive": True},
    ]
    assert '<div id="plot-sum" class="plotly-graph-div" style="height:100px; width:100%;">' in text


def test_two_figures_share_no_attributes():
    title = {"text": "a"}
    first, second = Figure({"height": 1}), Figure({"height": 1})
    first.update_xaxes(title=title)
    second.update_xaxes(title=title)
    second.update_xaxes(title={"text": "b"})
    assert '"a"' in first.as_html("x")
    assert title == {"text": "a"}


@given(st.text() | st.sampled_from(["</script>", "<!--", "]]>", "\u2028", "&lt;"]))
def test_no_text_can_leave_its_script(text):
    written = _script_safe([text])
    assert not set("<>&\u2028\u2029") & set(written)
    assert written.isascii()
    assert json.loads(written) == [text]
