"""A job that is interrupted or killed at any moment can be resumed, with the same result."""

import contextlib
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from talka.errors import SavedStateError
from talka.events import Stream
from talka.jobs.embeddings.plan import EmbedPlan
from talka.jobs.unfinished import folder_beside
from tests.jobs.embeddings.small_text import (
    config_of,
    embed,
    files_in,
    interrupt,
    num_epochs_done,
    write_small_text,
)
from tests.waiting import wait_until

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return write_small_text(tmp_path_factory.mktemp("text"))


@pytest.fixture
def out(tmp_path):
    return tmp_path / "vectors"


def run(config, out, **options):
    return EmbedPlan(config, out, **options).run(Stream())


def kept(out):
    """Return what must be bit-identical in two runs."""
    files = files_in(out)
    result = json.loads(files.pop("result.json"))
    return files, [result[name] for name in ("loss", "running_loss", "num_pairs", "num_words")]


@pytest.fixture(scope="module")
def undisturbed(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    for epochs in (3, 5):
        run(config_of(text, epochs=epochs), folder / str(epochs))
    return {epochs: kept(folder / str(epochs)) for epochs in (3, 5)}


class TestInterrupted:
    @pytest.mark.parametrize("num_epochs", [0, 1, 2])
    def test_goes_on_to_the_same_end(self, text, out, undisturbed, num_epochs):
        work = folder_beside(out)
        interrupt(
            config_of(text),
            out,
            lambda: (work / "pairs/pairs.json").exists() and num_epochs_done(out) == num_epochs,
        )
        assert not out.exists()
        run(config_of(text), out, resume=True)
        assert kept(out) == undisturbed[3]
        assert list(out.parent.iterdir()) == [out]

    def test_while_it_writes(self, text, out, undisturbed):
        interrupt(config_of(text), out, (folder_beside(out) / "output/vectors.txt").exists)
        assert not out.exists()
        run(config_of(text), out, resume=True)
        assert kept(out) == undisturbed[3]

    def test_leaves_nothing_when_it_had_nothing_yet(self, text, out):
        interrupt(config_of(text), out, folder_beside(out).exists)
        assert list(out.parent.iterdir()) == []

    def test_may_be_asked_for_more_epochs(self, text, out, undisturbed):
        interrupt(config_of(text), out, lambda: num_epochs_done(out) == 2)
        run(config_of(text, epochs=5), out, resume=True)
        assert kept(out) == undisturbed[5]

    def test_more_than_once(self, text, out, undisturbed):
        interrupt(config_of(text), out, lambda: num_epochs_done(out) == 1)
        for num_epochs in (2, 3):
            interrupt(
                config_of(text), out, lambda n=num_epochs: num_epochs_done(out) == n, resume=True
            )
        run(config_of(text), out, resume=True)
        assert kept(out) == undisturbed[3]

    def test_memory_and_threads_of_the_rest_are_free(self, text, out, undisturbed):
        interrupt(
            config_of(text, threads=2, memory_bytes=1_000),
            out,
            (folder_beside(out) / "pairs/pairs.json").exists,
        )
        run(config_of(text), out, resume=True)
        assert kept(out) == undisturbed[3]

    def test_predicts_only_what_is_left(self, text, out):
        interrupt(config_of(text), out, lambda: num_epochs_done(out) == 2)
        [left] = EmbedPlan(config_of(text), out, resume=True).explain().parts
        assert left.cost_id == "embed/train"
        assert left.reason.startswith("1 epochs of")
        finished = embed(config_of(text), out, resume=True)
        [_, training] = [row for row in finished.comparisons if row.predicted]
        assert training.measured.seconds > 0

    def test_predicts_nothing_when_only_writing_is_left(self, text, out, monkeypatch):
        interrupt(config_of(text), out, lambda: num_epochs_done(out) == 3)
        monkeypatch.setattr("talka.jobs.embeddings.plan.estimate", None)  # nor reads the text again
        assert EmbedPlan(config_of(text), out, resume=True).explain().parts == ()

    @pytest.mark.parametrize("name", ["pairs/pairs.bin", "epoch-1.model", "losses.json"])
    def test_a_damaged_state_is_noticed(self, text, out, name):
        interrupt(config_of(text), out, lambda: num_epochs_done(out) == 1)
        path = folder_beside(out) / name
        content = bytearray(path.read_bytes())
        content[len(content) // 2 :: 7] = b"\0" * len(content[len(content) // 2 :: 7])
        path.write_bytes(content)
        with pytest.raises(SavedStateError, match=path.name):
            run(config_of(text), out, resume=True)
        assert not out.exists()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["new", "replace"])
def test_killed_before_each_of_its_changes_to_the_disk(text, tmp_path, mode):
    """Check the observations of `killed_script.py` after each kill."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.jobs.embeddings.killed_script", text, tmp_path / "x", mode],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    observations = json.loads(done.stdout)["observations"]
    assert len(observations) > 50
    for number, status, before, resumable, again, same, left in observations:
        assert status == -9
        assert before in ("False", "whole"), f"half an output after {number} changes"
        assert again == 0, f"cannot be resumed after {number} changes"
        assert same, f"another result after {number} changes"
        assert before == "whole" or left == ["vectors"], f"{left} left after {number} changes"
        assert before == "whole" or resumable == (number > 4), "pairs are counted again needlessly"


OPTIONS = {"epochs": 40, "memory_bytes": 1}


class Process:
    """The job in a separate process; see `job_script.py`."""

    def __init__(self, text, out, *, resume=False, **options):
        self.out, self.work = out, folder_beside(out)
        self.runs = out.parent / "runs"
        words = [text, out, json.dumps(OPTIONS | options), *["resume"] * resume]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.jobs.embeddings.job_script", *words],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def wait_until(self, condition):
        wait_until(lambda: condition() or self.process.poll() is not None)

    def has_begun(self, part):
        files = self.runs.glob("*/events.jsonl")
        lines = [line for file in files for line in file.read_text().splitlines()]
        return any("PhaseStarted" in line and part in line for line in lines)

    def kill(self):
        self.process.kill()
        self.finish()

    def finish(self):
        _, errors = self.process.communicate(timeout=250)
        return self.process.returncode, errors


@pytest.fixture(scope="module")
def whole(text, tmp_path_factory):
    """Return an undisturbed run and its duration."""
    out = tmp_path_factory.mktemp("whole") / "vectors"
    start = time.monotonic()
    assert Process(text, out).finish() == (0, b"")
    return kept(out), time.monotonic() - start


def check_goes_on(text, out, expected):
    if not out.exists():
        there = (folder_beside(out) / "plan.json").exists()
        assert Process(text, out, resume=there).finish() == (0, b"")
        assert not folder_beside(out).exists()
    assert kept(out) == expected


MOMENTS = {
    "counting": lambda process: process.has_begun("embed/cooccurrence"),
    "saving pairs": lambda process: process.work.joinpath("pairs").exists(),
    "an epoch": lambda process: num_epochs_done(process.out) >= 7,
    "writing": lambda process: process.work.joinpath("output").exists(),
}


@pytest.mark.slow
class TestKilled:
    @pytest.mark.parametrize("moment", MOMENTS)
    def test_while(self, text, out, whole, moment):
        process = Process(text, out)
        process.wait_until(lambda: MOMENTS[moment](process))
        process.kill()
        check_goes_on(text, out, whole[0])

    @pytest.mark.parametrize("seed", range(4))
    def test_at_a_random_moment(self, text, out, whole, seed):
        process = Process(text, out)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.process.wait(random.Random(seed).uniform(0.2, 1.0) * whole[1])
        process.kill()
        check_goes_on(text, out, whole[0])

    def test_in_slices_between_epochs(self, text, tmp_path):
        """On a busy machine it may finish before it is killed; then there is no run to resume."""
        slices = {"parallel": "dimensions", "epochs": 6}
        expected = Process(text, tmp_path / "whole", **slices)
        process = Process(text, tmp_path / "cut", **slices)
        process.wait_until(lambda: num_epochs_done(process.out) >= 1)
        process.kill()
        assert expected.finish() == (0, b"")
        if not process.out.exists():
            assert Process(text, tmp_path / "cut", **slices, resume=True).finish() == (0, b"")
        assert kept(tmp_path / "cut") == kept(tmp_path / "whole")
        assert not process.work.exists()
