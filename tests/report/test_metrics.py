"""The section of metrics: what it draws, of which events."""

import pytest

from talka.events import RunEnded, RunRecord, Stamped
from talka.report.metrics import curves as curves_module
from talka.report.metrics.curves import MetricCurves
from talka.report.metrics.section import MAX_METRICS, metrics_section
from talka.report.page import page
from talka.report.plotting.thinning import MAX_POINTS
from talka.train.events import MetricsLogged
from tests.report.samples import EVIL
from tests.report.test_page import plot


def record(tmp_path, *events):
    stamped = [Stamped(float(time_s), *pair) for time_s, pair in enumerate(events)]
    return RunRecord(tmp_path, {}, stamped)


def loss(value, step=None, epoch=None, name="loss", num_values=1):
    return MetricsLogged(name, value, step, epoch, num_values)


def test_a_run_without_metrics_has_no_such_section(tmp_path):
    assert metrics_section(record(tmp_path, ("driver", RunEnded("done")))) is None


def test_each_metric_has_a_plot_with_a_curve_per_rank(tmp_path):
    events = [
        (f"rank-{rank}", loss(1 / step + rank, step)) for step in range(1, 5) for rank in (10, 0)
    ]
    events += [("rank-0", loss(0.5, epoch=1.5, name="accuracy"))]
    text = page(record(tmp_path, *events))
    assert "<h2>Metrics</h2>" in text
    assert text.index("<h3>accuracy</h3>") < text.index("<h3>loss</h3>")
    [accuracy] = plot(text, "metric-0")
    assert (accuracy["x"], accuracy["y"]) == ([1.5], [0.5])
    first, tenth = plot(text, "metric-1")
    assert (first["name"], tenth["name"]) == ("rank-0", "rank-10")
    assert first["x"] == [1, 2, 3, 4]
    assert first["y"] == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4])
    assert ">step 4<" in text
    assert ">epoch 1.5<" in text


def test_steps_that_start_again_continue(tmp_path):
    events = [("rank-0", loss(1.0, step, epoch)) for epoch in (1, 2) for step in (1, 2, 3)]
    curve = record(tmp_path, *events).fold(MetricCurves).curves["loss"]["rank-0"]
    assert [point.place for point in curve.points] == [1, 2, 3, 4, 5, 6]


def test_values_without_a_step_are_numbered(tmp_path):
    events = [("rank-0", loss(1.0)), ("rank-0", loss(2.0, num_values=9)), ("rank-0", loss(3.0))]
    fold = record(tmp_path, *events).fold(MetricCurves)
    assert [point.place for point in fold.curves["loss"]["rank-0"].points] == [1, 10, 11]


def test_a_value_that_is_not_finite_is_a_gap_and_named(tmp_path):
    events = [("rank-1", loss(None if step > 2 else 1.0, step)) for step in range(1, 5)]
    body = metrics_section(record(tmp_path, *events)).body
    assert "First value that is not finite: rank-1 at 3." in body
    assert ">not finite<" in body
    [curve] = plot(body, "metric-0")
    assert curve["y"] == [1.0, 1.0, None, None]


def test_long_curves_are_thinned_and_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(curves_module, "_MAX_KEPT", 2_000)
    events = [("rank-0", loss(float(step), step)) for step in range(10_000)]
    whole = record(tmp_path, *events)
    assert len(whole.fold(MetricCurves).curves["loss"]["rank-0"].points) <= 2_000
    [curve] = plot(metrics_section(whole).body, "metric-0")
    assert len(curve["x"]) <= MAX_POINTS
    assert curve["x"] == curve["y"]
    assert curve["x"][-1] == 9_999


def test_many_metrics_and_ranks_are_limited(tmp_path):
    names = [f"metric {number}" for number in range(MAX_METRICS + 3)]
    events = [("rank-0", loss(1.0, 1, name=name)) for name in names]
    events += [(f"rank-{rank}", loss(1.0, 1, name=names[-1])) for rank in range(40)]
    body = metrics_section(record(tmp_path, *events)).body
    assert f"{MAX_METRICS} of {MAX_METRICS + 3} metrics are drawn." in body
    assert "The first 16 of 40 ranks." in body
    assert body.count("Plotly.newPlot") == MAX_METRICS


def test_names_of_metrics_are_escaped(tmp_path):
    body = metrics_section(record(tmp_path, ("rank-0", loss(1.0, 1, name=EVIL)))).body
    assert EVIL not in body
    assert "&lt;script&gt;document" in body
