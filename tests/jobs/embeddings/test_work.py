"""The folder of an unfinished run: when it may be created, resumed, replaced."""

import json

import pytest

from talka.errors import InvalidValueError, OutputError
from talka.jobs.embeddings.work import WorkFolder
from tests.jobs.embeddings.small_text import config_of

LOSSES = {"loss": [0.2, 0.1], "running_loss": [0.3, 0.2]}
RESULT = {"num_words": 2}


def folder_of(out, *, resume=False, force=False, **options):
    plan = config_of("text.txt", **options).resolved()
    return WorkFolder(out, plan, resume=resume, force=force)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "vectors"


@pytest.fixture
def work(out):
    """Return a folder that is open in a run."""
    work = folder_of(out)
    work.open()
    yield work
    work.close()


def fill(work):
    """Save what a run saves that has counted pairs and completed two epochs."""
    work.pairs_dir.mkdir()
    (work.pairs_dir / "pairs.json").write_text("{}")
    work.epoch_done(LOSSES)


@pytest.fixture
def unfinished(work):
    """Return the folder of a run that was killed after two epochs."""
    fill(work)
    work.close()
    return work.path


class TestNewRun:
    def test_touches_nothing_before_it_opens(self, out, tmp_path):
        folder_of(out)
        assert list(tmp_path.iterdir()) == []

    def test_leaves_nothing_behind_without_pairs(self, work, tmp_path):
        work.pairs_dir.mkdir()
        work.close()
        assert list(tmp_path.iterdir()) == []

    def test_takes_away_the_folders_that_it_made(self, tmp_path):
        work = folder_of(tmp_path / "some" / "where" / "vectors")
        work.open()
        work.close()
        assert list(tmp_path.iterdir()) == []

    def test_leaves_pairs_behind(self, unfinished):
        assert {path.name for path in unfinished.iterdir()} == {"losses.json", "pairs", "plan.json"}

    def test_does_not_touch_an_unfinished_run(self, out, unfinished):
        with pytest.raises(OutputError, match="holds an unfinished run. Continue it with --resume"):
            folder_of(out)
        folder_of(out, force=True)
        assert (unfinished / "losses.json").exists()

    def test_may_replace_an_unfinished_run_by_force(self, out, unfinished):
        work = folder_of(out, force=True)
        work.open()
        assert not (unfinished / "losses.json").exists()
        assert not work.has_pairs
        work.close()


class TestOutput:
    def finish(self, work):
        work.output_dir.mkdir()
        (work.output_dir / "vectors.txt").write_text("a 1\n")
        work.finish(RESULT)
        work.close()

    def test_appears_whole_and_the_rest_goes(self, work, out, tmp_path):
        fill(work)
        self.finish(work)
        assert json.loads((out / "result.json").read_text()) == RESULT
        assert list(tmp_path.iterdir()) == [out]

    def test_is_refused_where_there_is_one(self, work, out):
        self.finish(work)
        for resume in (False, True):
            with pytest.raises(OutputError, match="exists already.*--force"):
                folder_of(out, resume=resume)

    def test_is_replaced_by_force(self, work, out, tmp_path):
        self.finish(work)
        (out / "vectors.txt").write_text("old")
        again = folder_of(out, force=True)
        again.open()
        assert (out / "vectors.txt").read_text() == "old"
        self.finish(again)
        assert (out / "vectors.txt").read_text() == "a 1\n"
        assert list(tmp_path.iterdir()) == [out]

    def test_does_not_replace_what_is_not_an_output(self, out):
        out.mkdir()
        (out / "novel.txt").write_text("years of work")
        with pytest.raises(OutputError, match=r"files that are not word vectors \(novel.txt\)"):
            folder_of(out, force=True)

    @pytest.mark.parametrize("where", [".", "..", "", "/"])
    def test_no_name_is_no_way_around_that(self, where, tmp_path, monkeypatch):
        (tmp_path / "deep").mkdir()
        (tmp_path / "deep" / "novel.txt").write_text("years of work")
        monkeypatch.chdir(tmp_path / "deep")
        for force, problem in (
            (False, "exists already"),
            (True, "contains files that are not word vectors"),
        ):
            with pytest.raises(OutputError, match=problem):
                folder_of(type(tmp_path)(where), force=force)

    def test_that_appeared_meanwhile_is_not_overwritten(self, work, out):
        fill(work)
        out.mkdir()
        with pytest.raises(OutputError, match="was created during the run.*--resume"):
            self.finish(work)
        assert list(out.iterdir()) == []
        out.rmdir()
        work.close()
        again = folder_of(out, resume=True)
        again.open()
        again.finish(RESULT)
        again.close()
        assert {path.name for path in out.iterdir()} == {"vectors.txt", "result.json"}

    def test_cannot_be_below_a_file(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(OutputError, match="Not a directory"):
            folder_of(tmp_path / "file" / "vectors")

    def test_cannot_be_where_a_broken_link_is(self, out, tmp_path):
        out.symlink_to(tmp_path / "nowhere")
        for force in (False, True):
            with pytest.raises(OutputError):
                folder_of(out, force=force)

    def test_cannot_have_a_name_that_no_disk_takes(self, tmp_path):
        with pytest.raises(OutputError, match="File name too long"):
            folder_of(tmp_path / "new" / ("n" * 250))
        assert list(tmp_path.iterdir()) == []


class TestResume:
    def test_finds_what_was_done(self, out, unfinished):
        work = folder_of(out, resume=True)
        work.open()
        assert work.losses() == LOSSES
        work.close()
        assert unfinished.exists()

    def test_needs_an_unfinished_run(self, out):
        with pytest.raises(
            OutputError, match="does not hold an unfinished run. Start without --resume"
        ):
            folder_of(out, resume=True)

    @pytest.mark.parametrize(
        "options, named",
        [
            ({"window": 7}, "--window 5"),
            ({"seed": 3}, "--seed 0"),
            ({"min_count": 1}, "--min-count 5"),
            ({"dim": 11, "x_max": 99.0}, "--dim 10, --x-max 10.0"),
            ({"tokenizer": "letters"}, "--tokenizer words"),
            ({"parallel": "dimensions"}, "--parallel threads"),
        ],
    )
    def test_other_options_are_refused_and_named(self, out, unfinished, options, named):
        with pytest.raises(OutputError) as caught:
            folder_of(out, resume=True, **options)
        assert f"({named})" in str(caught.value)
        assert unfinished.exists()

    def test_another_corpus_is_another_job(self, out, unfinished):
        with pytest.raises(OutputError, match=r"CORPUS text\.txt"):
            WorkFolder(out, config_of("other.txt").resolved(), resume=True, force=False)

    @pytest.mark.parametrize(
        "options", [{"epochs": 99}, {"threads": 7}, {"memory_bytes": 1_000}, {"workers": 5}]
    )
    def test_what_does_not_change_the_work_done_is_free(self, out, unfinished, options):
        folder_of(out, resume=True, **options)

    def test_slices_need_as_many_workers_as_then(self, out):
        slices = {"parallel": "dimensions"}
        work = folder_of(out, workers=2, **slices)
        work.open()
        fill(work)
        work.close()
        with pytest.raises(OutputError, match=r"\(--workers 2\)"):
            folder_of(out, resume=True, workers=3, **slices)
        folder_of(out, resume=True, workers=2, **slices)

    def test_fewer_epochs_than_were_done_are_refused(self, out, unfinished):
        with pytest.raises(InvalidValueError, match="--epochs is 1, but must be at least 2"):
            folder_of(out, resume=True, epochs=1)
        folder_of(out, resume=True, epochs=2)
