"""The page in a real browser: are the plots there, is anything wrong, does anything leave?"""

import json
import os
import re
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from talka.report import write_report
from tests.report.samples import NUM_RANKS, write_evil_run, write_run

CHROMIUM = shutil.which("chromium")
BUILD = Path(__file__).parents[2] / "build"
TIMEOUT_S = 250

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium to look at the page with"),
]


class Seen(NamedTuple):
    dom: str
    """After all scripts ran, without the scripts themselves."""
    console: list[str]
    requests: list[str]
    """Addresses that the page, not the browser itself, asked the network for."""


def look_at(page: Path, folder: Path) -> Seen:
    net_log = folder / "net.json"
    ended = browse(page, folder, "--dump-dom", f"--log-net-log={net_log}")
    dom = re.sub(r"<script.*?</script>", "", ended.stdout, flags=re.DOTALL)
    console = re.findall(r"CONSOLE:\d+\] (.*)", ended.stderr)
    return Seen(dom, console, requests_of_the_page(net_log))


def take_picture(page: Path, folder: Path, picture: Path, *flags: str) -> None:
    picture.unlink(missing_ok=True)
    size = ("--window-size=1200,2900", "--hide-scrollbars")
    browse(page, folder, f"--screenshot={picture}", *size, *flags)


def browse(page: Path, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [
        str(CHROMIUM),
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *("--enable-logging=stderr", "--v=0", f"--user-data-dir={folder / 'profile'}"),
        "--host-resolver-rules=MAP * ~NOTFOUND",  # the browser's own errands fail at once
        "--virtual-time-budget=10000",
        *flags,
        page.as_uri(),
    ]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def requests_of_the_page(net_log: Path) -> list[str]:
    params = [event.get("params", {}) for event in json.loads(net_log.read_text())["events"]]
    return [
        param["url"]
        for param in params
        if "url" in param and param.get("initiator", "not an origin") != "not an origin"
    ]


def num_bars(dom: str, name: str) -> int:
    """Bars inside of one drawn plot."""
    return part_of_plot(dom, name).count('<g class="point">')


def part_of_plot(dom: str, name: str) -> str:
    after = dom.split(f'id="plot-{name}" class="plotly-graph-div js-plotly-plot"', maxsplit=1)[1]
    return after.split("</section>")[0].split('id="plot-')[0]


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    return write_report(write_run(tmp_path_factory.mktemp("runs"), error="rank 2 sent 3 bytes"))


@pytest.fixture(scope="module")
def seen(page, tmp_path_factory) -> Seen:
    return look_at(page, tmp_path_factory.mktemp("browser"))


def test_a_page_that_errs_and_asks_is_found_out(tmp_path):
    """If errors were not detected, the tests below would prove nothing."""
    page = tmp_path / "bad.html"
    page.write_text("<script>fetch('http://talka.test/a'); throw new Error('broken')</script>")
    seen = look_at(page, tmp_path)
    assert any("broken" in message for message in seen.console)
    assert seen.requests == ["http://talka.test/a"]


def test_every_plot_is_drawn_with_its_bars(seen):
    assert num_bars(seen.dom, "seconds") >= 10
    assert num_bars(seen.dom, "bytes-sent") == 6
    assert num_bars(seen.dom, "timeline") >= 120


def test_every_curve_is_drawn(seen):
    for name, num_curves in [("step-seconds", 4), ("step-bytes", 1), ("residual-norm", NUM_RANKS)]:
        assert part_of_plot(seen.dom, name).count('<g class="trace scatter') == num_curves


def test_the_console_stays_empty(seen):
    assert seen.console == []


def test_no_request_leaves_the_page(seen):
    assert seen.requests == []


def test_no_text_of_a_run_runs_as_a_script(tmp_path):
    seen = look_at(write_report(write_evil_run(tmp_path)), tmp_path)
    assert "<title>evil</title>" not in seen.dom
    assert num_bars(seen.dom, "seconds") == 2
    assert seen.console == []


@pytest.mark.parametrize(
    "name, flags", [("report", ()), ("report-dark", ("--blink-settings=preferredColorScheme=0",))]
)
def test_a_picture_is_left_for_a_person_to_look_at(page, tmp_path, name, flags):
    BUILD.mkdir(exist_ok=True)
    take_picture(page, tmp_path, BUILD / f"{name}.png", *flags)
    assert (BUILD / f"{name}.png").read_bytes().startswith(b"\x89PNG")
