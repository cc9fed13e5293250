"""OUT.unfinished for every kind of job: when it is recognised, locked, replaced, left alone."""

import json
import os
import signal
import socket
from pathlib import Path
from typing import NamedTuple

import pytest

from talka.errors import OutputError
from talka.jobs.embeddings.work import WorkFolder
from talka.jobs.graph.work import CheckpointFolder
from tests.jobs.embeddings.small_text import config_of


class Kind(NamedTuple):
    """A kind of job, and the files it leaves after it has saved progress."""

    opens: type
    plan: dict
    progress: dict
    own: list
    """Further files that a killed run can leave in its folder."""


GRAPH = Kind(
    CheckpointFolder,
    {"algorithm": "pagerank", "partitions": 2, "engine": "embedded", "checkpoint_every": None},
    {"superstep-000000003.checkpoint": "saved"},
    [".superstep-000000004.checkpoint.a1b2c3d4", ".talka-01234567-89abcdef"],
)
EMBED = Kind(
    WorkFolder,
    config_of("text.txt").resolved(),
    {"pairs/pairs.json": "{}", "losses.json": '{"loss": [], "running_loss": []}'},
    ["pairs/.pairs.bin.a1b2c3d4", "output/vectors.txt", "replaced/result.json", "epoch-1.model",
     "epoch-2.model.rank-1", ".plan.json.abcd_123"],
)  # fmt: skip


@pytest.fixture(params=[GRAPH, EMBED], ids=["graph", "embed"])
def kind(request):
    return request.param


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "out.unfinished"


def work_of(kind, tmp_path, *, resume=False, force=False):
    return kind.opens(tmp_path / "out", kind.plan, resume=resume, force=force)


def opened(kind, tmp_path, **how):
    work = work_of(kind, tmp_path, **how)
    work.open()
    return work


def fill(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def leave_behind(kind, folder, *, progress=True):
    """Files that a killed run of the former version has left."""
    plan = json.dumps(kind.plan, default=str)
    fill(folder, {"plan.json": plan, **(kind.progress if progress else {})})


def content_of(folder):
    paths = sorted(folder.rglob("*"))
    return {str(path): path.read_bytes() if path.is_file() else None for path in paths}


HOWS = [{}, {"force": True}, {"resume": True}, {"resume": True, "force": True}]


class TestAStrangersFolder:
    """A folder with other files is rejected with any options, and nothing in it changes."""

    @pytest.mark.parametrize("how", HOWS)
    @pytest.mark.parametrize(
        "names",
        [
            ["thesis.tex"],
            ["output/vectors.txt"],
            ["pairs/pairs.json"],
            ["replaced/result.json"],
            ["losses.json", "epoch-1.model"],
            ["superstep-000000003.checkpoint"],
            [".git"],
            [".plan.json.settings1"],
            ["empty/"],
            ["plan.json"],
            ["plan.json", "output/vectors.txt"],
        ],
        ids=" ".join,
    )
    def test_without_a_plan_of_ours(self, kind, tmp_path, folder, names, how):
        folder.mkdir()
        for name in names:
            if name.endswith("/"):
                (folder / name).mkdir()
            else:
                fill(folder, {name: '{"resource_changes": []}'})
        before = content_of(folder)
        with pytest.raises(
            OutputError, match=r"contains files that are not part of an unfinished run\. Choose"
        ):
            opened(kind, tmp_path, **how)
        assert content_of(folder) == before

    @pytest.mark.parametrize("how", HOWS)
    @pytest.mark.parametrize("name", ["thesis.tex", ".env", "pairs/thesis.tex", ".thesis.a1b2c3d4"])
    def test_with_a_plan_of_ours_and_something_else(self, kind, tmp_path, folder, name, how):
        leave_behind(kind, folder)
        fill(folder, {name: "mine"})
        before = content_of(folder)
        with pytest.raises(OutputError, match="contains files that are not part"):
            opened(kind, tmp_path, **how)
        assert content_of(folder) == before

    @pytest.mark.parametrize("how", HOWS)
    def test_of_another_kind_of_job(self, kind, tmp_path, folder, how):
        other = EMBED if kind is GRAPH else GRAPH
        work = opened(other, tmp_path)
        fill(folder, other.progress)
        work.close()
        before = content_of(folder)
        with pytest.raises(OutputError, match="contains files that are not part"):
            opened(kind, tmp_path, **how)
        assert content_of(folder) == before

    @pytest.mark.parametrize("how", HOWS)
    def test_behind_a_link_or_in_the_place_of_a_file(self, kind, tmp_path, folder, how):
        leave_behind(kind, tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(OutputError, match="contains files that are not part"):
            opened(kind, tmp_path, **how)
        folder.unlink()
        folder.write_text("mine")
        with pytest.raises(OutputError, match="contains files that are not part"):
            opened(kind, tmp_path, **how)
        assert folder.read_text() == "mine"

    def test_that_appears_between_the_check_and_the_start(self, kind, tmp_path, folder):
        work = work_of(kind, tmp_path, force=True)
        fill(folder, {"output/vectors.txt": "mine", "superstep-000000001.checkpoint": "mine"})
        before = content_of(folder)
        with pytest.raises(OutputError, match="contains files that are not part"):
            work.open()
        work.close()
        assert content_of(folder) == before

    def test_is_what_a_folder_becomes_into_which_somebody_puts_a_file(self, kind, tmp_path, folder):
        work = opened(kind, tmp_path)
        fill(folder, {**kind.progress, "thesis.tex": "mine"})
        work.remove()
        work.close()
        assert [path.name for path in folder.iterdir()] == ["thesis.tex"]


class TestOurOwnFolder:
    def test_is_known_by_its_plan(self, kind, tmp_path, folder):
        opened(kind, tmp_path)
        plan = json.loads((folder / "plan.json").read_text())
        assert plan["format"] == "talka-unfinished-1"
        assert plan["job"] == kind.opens.job

    def test_goes_when_nothing_was_saved(self, kind, tmp_path):
        opened(kind, tmp_path).close()
        assert list(tmp_path.iterdir()) == []

    def test_with_progress_is_replaced_by_force_alone(self, kind, tmp_path, folder):
        leave_behind(kind, folder)
        fill(folder, dict.fromkeys(kind.own, "half"))
        with pytest.raises(
            OutputError, match="holds an unfinished run. Continue it with --resume, or"
        ):
            opened(kind, tmp_path)
        work = opened(kind, tmp_path, force=True)
        assert os.listdir(folder) == ["plan.json"]
        assert not work.has_progress
        work.close()

    def test_without_progress_is_replaced(self, kind, tmp_path, folder):
        leave_behind(kind, folder, progress=False)
        opened(kind, tmp_path).close()
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("names", [[], [".talka-01234567-89abcdef"]])
    def test_without_a_plan_yet_is_replaced(self, kind, tmp_path, folder, names):
        folder.mkdir()
        fill(folder, dict.fromkeys(names, ""))
        opened(kind, tmp_path).close()
        assert list(tmp_path.iterdir()) == []

    def test_of_the_former_version_can_be_resumed(self, kind, tmp_path, folder):
        leave_behind(kind, folder)
        work = opened(kind, tmp_path, resume=True)
        assert work.has_progress
        work.close()
        assert folder.exists()

    def test_of_this_version_can_be_resumed(self, kind, tmp_path, folder):
        work = opened(kind, tmp_path)
        fill(folder, kind.progress)
        work.close()
        work = opened(kind, tmp_path, resume=True)
        assert work.has_progress
        work.close()

    def test_without_progress_is_resumed_from_the_beginning(self, kind, tmp_path, folder):
        leave_behind(kind, folder, progress=False)
        work = opened(kind, tmp_path, resume=True)
        assert not work.has_progress
        work.close()

    def test_is_needed_to_resume(self, kind, tmp_path):
        with pytest.raises(
            OutputError, match="does not hold an unfinished run. Start without --resume"
        ):
            opened(kind, tmp_path, resume=True)
        assert list(tmp_path.iterdir()) == []

    def test_is_not_removed_before_its_plan(self, kind, tmp_path, folder, monkeypatch):
        """A run killed while it removes the folder leaves one that is still recognised."""
        work = opened(kind, tmp_path)
        fill(folder, kind.progress)
        removed, real_unlink = [], type(folder).unlink
        monkeypatch.setattr(
            type(folder), "unlink", lambda path, **how: (removed.append(path.name), real_unlink(path, **how))
        )  # fmt: skip
        work.remove()
        work.close()
        assert removed[-1] == "plan.json"
        assert len(removed) == 1 + len(kind.progress)


def test_a_folder_that_no_file_system_makes_is_an_error():
    work = EMBED.opens(Path("/proc/x"), EMBED.plan, resume=False, force=False)
    with pytest.raises(OutputError, match="cannot be written"):
        work.open()
    work.close()


class TestTwoAtOnce:
    @pytest.mark.parametrize("how", HOWS)
    def test_the_second_is_refused(self, kind, tmp_path, folder, how):
        first = opened(kind, tmp_path)
        fill(folder, kind.progress)
        if not how:
            with pytest.raises(OutputError, match="holds an unfinished run"):
                opened(kind, tmp_path)
        else:
            with pytest.raises(OutputError, match="belongs to a run that is still active"):
                opened(kind, tmp_path, **how)
        assert first.has_progress
        first.close()

    def test_one_that_ended_between_check_and_start_is_seen(self, kind, tmp_path, folder):
        late = work_of(kind, tmp_path)
        first = opened(kind, tmp_path)
        fill(folder, kind.progress)
        first.close()
        with pytest.raises(OutputError, match="holds an unfinished run"):
            late.open()
        late.close()
        assert first.has_progress

    def test_an_output_that_appeared_between_check_and_start_is_seen(self, kind, tmp_path):
        late = work_of(kind, tmp_path)
        (tmp_path / "out").touch()
        with pytest.raises(OutputError, match="exists already|is a file"):
            late.open()
        late.close()
        assert [path.name for path in tmp_path.iterdir()] == ["out"]

    @pytest.mark.parametrize("how", [{}, {"force": True}, {"resume": True}])
    def test_exactly_one_goes_ahead(self, kind, tmp_path, folder, how):
        """Two processes open the folder at the same time: one gets it, the other an error."""
        racers = [Racer(kind, tmp_path, how) for _ in range(2)]
        try:
            for _ in range(50):
                if how:
                    leave_behind(kind, folder, progress="resume" in how)
                for racer in racers:
                    racer.send(b"open")
                assert sorted(racer.answer() for racer in racers) == [b"has it", b"refused"]
                for racer in racers:
                    racer.send(b"close")
                    assert racer.answer() == b"closed"
        finally:
            for racer in racers:
                racer.end()


class Racer:
    """A forked process that opens and closes the folder on command."""

    def __init__(self, kind, tmp_path, how):
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._child = os.fork()
        if not self._child:
            try:
                self._socket.close()
                self._race(other, kind, tmp_path, how)
            finally:
                os._exit(0)
        other.close()

    def send(self, command):
        self._socket.send(command)

    def answer(self):
        self._socket.settimeout(60)
        return self._socket.recv(100)

    def end(self):
        os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)
        self._socket.close()

    @staticmethod
    def _race(parent, kind, tmp_path, how):
        while parent.recv(100) == b"open":
            work = None
            try:
                work = work_of(kind, tmp_path, **how)
                work.open()
                parent.send(b"has it")
            except OutputError:
                parent.send(b"refused")
            assert parent.recv(100) == b"close"
            if work is not None:
                work.close()
            parent.send(b"closed")
