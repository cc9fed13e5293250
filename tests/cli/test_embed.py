"""`talka embed` and its relatives with good and bad input.

Most run in this process, which is fast; what happens to whole processes is tested with real ones.
"""

import contextlib
import gzip
import io
import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import zstandard

from talka.cli.main import main
from talka.events import read_run
from talka.jobs.embeddings import Embeddings
from tests.jobs.embeddings.small_text import num_epochs_done, small_text, write_small_text
from tests.marked import marked
from tests.plan_parts import printed_parts
from tests.waiting import wait_until

SMALL = ["--dim", "8", "--epochs", "2", "--threads", "1", "--window", "5"]
KEYS = ["num_words", "num_pairs", "loss", "running_loss", "seconds", "peak_memory_bytes"]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return write_small_text(tmp_path_factory.mktemp("text"))


@pytest.fixture(scope="module")
def vectors(text, tmp_path_factory):
    """Embeddings that tests may read and not change."""
    folder = tmp_path_factory.mktemp("vectors")
    with contextlib.redirect_stdout(io.StringIO()):
        assert (
            main(["embed", str(text), "--out", f"{folder}/v", "--runs", f"{folder}/r", *SMALL]) == 0
        )
    return folder / "v"


@pytest.fixture
def talka(tmp_path, monkeypatch, capsys):
    """Run a command in an empty folder, with its own temp folder."""
    temp, here = tmp_path / "temp", tmp_path / "here"
    temp.mkdir()
    here.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temp))
    monkeypatch.chdir(here)

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        assert list(temp.iterdir()) == []
        return SimpleNamespace(code=code, **capsys.readouterr()._asdict())

    return run


def check_refused(done, expected, *, code=2):
    assert done.code == code, done.err
    assert expected in done.err
    assert done.err.startswith("talka ")
    assert len(done.err.splitlines()) <= 3
    assert {path.name for path in Path().iterdir()} <= {"input"}, "something was left"


class TestGoodInput:
    def embed_json(self, talka, *arguments):
        done = talka("embed", *arguments, "--out", "out", "--format", "json", *SMALL)
        assert (done.code, done.err) == (0, "")
        assert {path.name for path in Path().iterdir()} - {"input"} == {"out", "runs"}
        return json.loads(done.out)

    def test_json_is_one_value_with_all_that_was_promised(self, talka, text):
        printed = self.embed_json(talka, text)
        assert set(KEYS) < set(printed)
        assert json.loads(Path("out/result.json").read_text()) == {
            name: printed[name] for name in [*KEYS, "num_tokens", "num_replaced"]
        }
        assert read_run(Path(printed["run"])).status == "done"
        assert printed["out"] == "out"
        assert len(printed["loss"]) == len(printed["running_loss"]) == 2
        assert printed["seconds"]["embed/train"] > 0

    def test_text_says_what_it_will_cost_and_did_cost(self, talka, text):
        done = talka("embed", text, "--out", "out", *SMALL)
        assert (done.code, done.err) == (0, "")
        for part in ("Predicted cost", "Predicted and measured cost", "loss per epoch", "in out"):
            assert part in done.out

    def test_folders_gzip_zstd_and_plain_files_are_one_corpus(self, talka, text):
        whole = self.embed_json(talka, text)
        Path("out").rename("../whole")
        lines = text.read_bytes().splitlines(keepends=True)
        Path("input/deep").mkdir(parents=True)
        Path("input/1.txt.gz").write_bytes(gzip.compress(b"".join(lines[:500])))
        Path("input/deep/2").write_bytes(b"".join(lines[500:1000]))
        Path("input/deep/3.zst").write_bytes(zstandard.compress(b"".join(lines[1000:])))
        parts = self.embed_json(talka, "input")
        assert parts["num_pairs"] == whole["num_pairs"]
        assert Path("out/vectors.txt").read_bytes() == Path("../whole/vectors.txt").read_bytes()

    def test_standard_input_and_pipes_are_read_once_and_whole(self, talka, text, monkeypatch):
        content = text.read_bytes()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        num_tokens = self.embed_json(talka, "-")["num_tokens"]
        assert num_tokens == len(content.split())
        ours, theirs = os.pipe()  # as the shell makes of <(command)
        with os.fdopen(theirs, "wb") as file:
            file.write(content[:30_000])
        Path("out").rename("../first")
        some = self.embed_json(talka, f"/dev/fd/{ours}")
        os.close(ours)
        assert some["num_tokens"] == len(content[:30_000].split())

    def test_invalid_utf8_is_counted_and_reported(self, talka):
        Path("input").write_bytes(small_text().encode() + b"caf\xe9 \xff b00\n")
        assert self.embed_json(talka, "input")["num_replaced"] == 2
        done = talka("embed", "input", "--out", "out", "--force", *SMALL)
        assert "2 invalid UTF-8 sequences of the text were replaced" in done.out

    def test_explain_stops_before_anything_is_made(self, talka, text):
        done = talka("embed", text, "--out", "out", "--explain", "--format", "json", *SMALL)
        printed = json.loads(done.out)
        whole, *parts = printed_parts(printed).values()
        names = ["embed/start", "embed/vocabulary", "embed/cooccurrence", "embed/train"]
        assert [part["cost_id"] for part in parts] == names
        assert printed["total_s"] == pytest.approx(sum(part["seconds"] for part in parts))
        assert whole["memory_bytes"] > 0
        assert printed["expected"]["num_words"] == 300
        assert list(Path().iterdir()) == []

    def test_evaluation_comes_with_the_result(self, talka, text):
        Path("input").write_text("b00 b01 9\nb00 c01 1\nb02 b03 8\n")
        printed = self.embed_json(talka, text, "--evaluate", "input")
        assert printed["evaluation"][0]["num_asked"] == 3

    def test_letters_only_leave_digits_out(self, talka, text):
        assert self.embed_json(talka, text, "--tokenizer", "letters")["num_words"] == 11


class TestBadInput:
    @pytest.mark.parametrize(
        "content, expected",
        [
            (b"", "the text has no words"),
            (b"... !!! \n\n", "the text has no words"),
            (b"hello\n", "no word occurs 5 times ('hello' is the most frequent, 1 times)"),
            (b"hello " * 50, "'hello' is the only word that occurs often enough"),
            (b"hello\nyou\n" * 50, "no two words of the vocabulary are within 5 positions"),
            (bytes(range(256)) * 100, "contains NUL bytes"),
            (bytes(range(128, 256)) * 100, "is not UTF-8 text"),
            (gzip.compress(b"hello you " * 5000)[:-20], "is damaged (it ends too early)"),
            (gzip.compress(b"hello you")[:10] + b"rubbish" * 100, "is damaged"),
        ],
    )
    def test_a_corpus_without_text_to_learn_from(self, talka, content, expected):
        Path("input").write_bytes(content)
        check_refused(talka("embed", "input", "--out", "out", *SMALL), expected)
        check_refused(talka("embed", "input", "--out", "out", "--format", "json", *SMALL), expected)

    def test_a_corpus_that_is_not_there(self, talka):
        check_refused(
            talka("embed", "input", "--out", "out"), "cannot use input: it does not exist"
        )
        check_refused(talka("embed", "n" * 300, "--out", "out"), "File name too long")
        Path("input").mkdir()
        check_refused(talka("embed", "input", "--out", "out"), "it is a folder without files")

    def test_standard_input_that_is_closed_or_empty(self, talka, monkeypatch):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
        check_refused(talka("embed", "-", "--out", "out"), "the text has no words")
        monkeypatch.setattr("sys.stdin", None)
        check_refused(talka("embed", "-", "--out", "out"), "it is closed")

    def test_a_minimum_count_that_no_word_has(self, talka, text):
        done = talka("embed", text, "--out", "out", "--min-count", 10**9)
        check_refused(done, "no word occurs 1000000000 times")

    @pytest.mark.parametrize(
        "option",
        ["--dim", "--epochs", "--window", "--min-count", "--threads", "--workers", "--memory"],
    )
    @pytest.mark.parametrize("value", ["0", "-1"])
    def test_options_that_must_be_at_least_1(self, talka, text, option, value):
        check_refused(talka("embed", text, "--out", "out", option, value), f"{option} is ")

    @pytest.mark.parametrize("option", ["--learning-rate", "--x-max", "--alpha"])
    @pytest.mark.parametrize("value", ["-0.5", "-1", "nan", "inf"])
    def test_options_that_must_be_positive_numbers(self, talka, text, option, value):
        done = talka("embed", text, "--out", "out", option, value)
        check_refused(done, f"{option} is {float(value)}, but must be a number")

    @pytest.mark.parametrize(
        "arguments, expected",
        [
            (["--seed", "-1"], "--seed is -1"),
            (["--learning-rate", "0"], "--learning-rate is 0.0, but must be a number above 0"),
            (["--x-max", "0"], "--x-max is 0.0, but must be a number above 0"),
            (["--memory", "much"], "--memory is 'much', but must be a size such as"),
            (["--dim", "1000000"], "--dim is 1000000, but must be a whole number from 1 to 10,000"),
            (["--window", "1000000000"], "--window is 1000000000"),
            (["--threads", "1000000"], "--threads is 1000000"),
            (["--tokenizer", "word"], "Did you mean 'words'?"),
            (["--parallel", "dimensions", "--dim", "2", "--workers", "5"], "--workers is 5"),
            (["--evaluate", "nowhere"], "cannot use nowhere"),
            (["--runs", "/dev/null/runs"], "cannot be written"),
            (["--resume"], "does not hold an unfinished run. Start without --resume"),
        ],
    )
    def test_other_options(self, talka, text, arguments, expected):
        check_refused(talka("embed", text, "--out", "out", *SMALL, *arguments), expected)

    def test_a_learning_rate_at_which_it_diverges(self, talka, text):
        done = talka("embed", text, "--out", "out", "--learning-rate", "1000", *SMALL)
        assert (done.code, "try a smaller one" in done.err) == (1, True)
        [run] = Path("runs").iterdir()
        assert read_run(run).status == "failed"

    def test_questions_that_are_none_are_noticed_before_training(self, talka, text):
        Path("input").write_text("just prose\n")
        done = talka("embed", text, "--out", "out", "--evaluate", "input", *SMALL)
        check_refused(done, "cannot use input")


class TestOutput:
    @pytest.mark.parametrize("where", ["input/deep/out", "/proc/x", "n" * 300, "", ".", "/"])
    def test_that_cannot_be_written(self, talka, text, where):
        Path("input").write_text("a file")
        check_refused(talka("embed", text, "--out", where, *SMALL), "cannot write")

    @pytest.mark.parametrize("more", [[], ["--force"]])
    def test_that_is_a_file_is_named_at_once(self, talka, text, more):
        Path("input").write_text("a file")
        done = talka("embed", text, "--out", "input", *more, *SMALL)
        check_refused(
            done, "cannot write input: it is a file. Vectors are written into a folder: choose"
        )
        assert "--force" not in done.err
        assert Path("input").read_text() == "a file"

    def test_that_exists_is_replaced_by_force_alone_and_whole(self, talka, text):
        first = talka("embed", text, "--out", "out", *SMALL)
        assert first.code == 0
        inode, before = Path("out").stat().st_ino, Path("out/vectors.txt").read_bytes()
        done = talka("embed", text, "--out", "out", "--seed", "1", *SMALL)
        assert done.code == 2
        assert done.err == (
            "talka embed: cannot write out: it exists already. "
            "Choose another --out, or replace it with --force.\n"
        )
        assert Path("out").stat().st_ino == inode
        assert talka("embed", text, "--out", "out", "--seed", "1", "--force", *SMALL).code == 0
        assert Path("out").stat().st_ino != inode
        assert Path("out/vectors.txt").read_bytes() != before
        assert sorted(path.name for path in Path().iterdir()) == ["out", "runs"]

    def test_that_exists_stays_when_its_replacement_fails(self, talka, text, vectors):
        Path("out").symlink_to(vectors)
        Path("input").write_text("hello")
        done = talka("embed", "input", "--out", "out", "--force", *SMALL)
        assert done.code == 2
        assert Embeddings.load("out").dim == 8
        assert not Path("out.unfinished").exists()

    def test_that_is_no_folder_of_vectors_is_not_replaced(self, talka, text):
        Path("input").mkdir()
        Path("input/novel.txt").write_text("years of work")
        done = talka("embed", text, "--out", "input", "--force", *SMALL)
        check_refused(done, "it contains files that are not word vectors (novel.txt)")


class TestQuestions:
    def test_neighbours_and_answers(self, talka, vectors):
        done = talka("similar", vectors, "b00", "c00", "-k", "3", "--format", "json")
        assert {word: len(near) for word, near in json.loads(done.out).items()} == {
            "b00": 3,
            "c00": 3,
        }
        done = talka("analogy", vectors, "b00", "b01", "c00", "--format", "json")
        assert len(json.loads(done.out)) == 5
        assert "similarity" in talka("similar", vectors, "b00").out
        assert "similarity" in talka("analogy", vectors, "b00", "b01", "c00").out

    def test_capitals_find_words_of_a_lower_cased_vocabulary(self, talka, vectors):
        done = talka("similar", vectors, "B00", "-k", "3")
        assert done.out.splitlines()[0] == "b00 (for B00)"
        assert "using 'b00' for 'B00': all words of these vectors are lower case" in done.err
        assert (
            done.out.splitlines()[1:]
            == talka("similar", vectors, "b00", "-k", "3").out.splitlines()[1:]
        )
        done = talka("similar", vectors, "B00", "--format", "json")
        assert list(json.loads(done.out)) == ["b00"]
        done = talka("analogy", vectors, "b00", "B01", "c00")
        assert (done.code, len(done.err.splitlines())) == (0, 1)

    def test_capitals_are_suggested_where_the_vocabulary_has_some(self, talka):
        Embeddings(["king", "King", "Paris"], np.eye(3, dtype=np.float32)).save("input")
        check_refused(talka("similar", "input", "KING"), "Did you mean 'king'?")
        check_refused(talka("similar", "input", "PARIS"), "Did you mean 'Paris'?")

    def test_evaluation(self, talka, vectors):
        Path("input").write_text(": topic\nb00 b01 c00 c01\nb00 b01 c00 unheard\n")
        [printed] = json.loads(talka("evaluate", vectors, "input", "--format", "json").out)
        assert printed["total"]["num_questions"] == 2
        assert printed["total"]["coverage"] == 0.5
        assert "accuracy" in talka("evaluate", vectors, "input").out

    @pytest.mark.parametrize(
        "arguments, expected",
        [
            (["similar", "b000"], "no word 'b000' among the 300 of these embeddings. Did you mean"),
            (["similar", "Zzzzzzzz"], "no word 'Zzzzzzzz' among"),
            (["analogy", "b00", "b01", "b999"], "no word 'b999' among"),
            (["similar", "b00", "-k", "0"], "k is 0, but must be a whole number of at least 1"),
            (["analogy", "b00", "b01", "b02", "-k", "-1"], "k is -1"),
            (["evaluate", "nowhere"], "cannot use nowhere: it cannot be read"),
        ],
    )
    def test_that_cannot_be_answered(self, talka, vectors, arguments, expected):
        command, *rest = arguments
        check_refused(talka(command, vectors, *rest), expected)

    @pytest.mark.parametrize(
        "content, expected",
        [
            (b"", "has no questions"),
            (b"# only a comment\n\n", "has no questions"),
            (b": a section\n: another\n", "has no questions"),
            (b": a section\nb00 b01 c00\n", "has 3 words in line 2"),
            (b"b00 b01 c00 c01\nb00\n", "has 1 words in line 2"),
            (b"b00\tb01\tmuch\n", "in line 1. Each line must have two words and a number"),
            (b"b00 b01 nan\n", "has a number that is not finite in line 1"),
            (b"\xff\xfe\x00", "is not UTF-8 text"),
        ],
    )
    def test_files_that_hold_none(self, talka, vectors, content, expected):
        Path("input").write_bytes(content)
        check_refused(talka("evaluate", vectors, "input"), expected)
        check_refused(talka("evaluate", vectors, "input", "--format", "json"), expected)

    @pytest.mark.parametrize(
        "command", [["similar", "a"], ["analogy", "a", "b", "c"], ["evaluate", "a"]]
    )
    def test_folders_without_vectors(self, talka, command):
        name, *rest = command
        check_refused(talka(name, "input", *rest), "input is not a folder")
        Path("input").mkdir()
        check_refused(talka(name, "input", *rest), "has neither vectors.arrow nor vectors.txt")
        Path("input/vectors.arrow").write_bytes(b"ARROW1" + bytes(100))
        check_refused(talka(name, "input", *rest), "vectors.arrow is damaged")

    def test_no_damage_ends_the_process(self, talka, vectors):
        """Offsets into nowhere once did. Damage inside a vector shows nowhere: only it is read."""
        good = (vectors / "vectors.arrow").read_bytes()
        Path("input").mkdir()
        codes = set()
        for place in range(0, len(good), 97):
            for content in (good[:place], good[:place] + b"\xff" * 40 + good[place + 40 :]):
                Path("input/vectors.arrow").write_bytes(content)
                done = talka("similar", "input", "b00")
                codes.add(done.code)
                assert len(done.err.splitlines()) <= 3
        assert codes == {0, 2}


def start(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "talka.cli.main", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


@pytest.mark.slow
class TestProcess:
    @pytest.mark.parametrize(
        "signum, code, parallel",
        [(signal.SIGINT, 130, "threads"), (signal.SIGTERM, 143, "dimensions")],
    )
    def test_interrupted_it_says_so_and_can_go_on(self, tmp_path, text, signum, code, parallel):
        out = tmp_path / "out"
        where = [text, "--out", out, "--runs", tmp_path / "runs", "--parallel", parallel]
        endless = ["--dim", 8, "--threads", 2, "--epochs", 10**6]
        with marked() as mark:
            process = start("embed", *where, *endless, env=mark.environment)
            wait_until(lambda: num_epochs_done(out) >= 2 or process.poll() is not None)
            assert process.poll() is None, process.communicate()
            process.send_signal(signum)
            printed, errors = process.communicate(timeout=250)
            assert process.returncode == code, errors
            assert "Traceback" not in errors
            assert len(errors.splitlines()) <= 3
            assert mark.survivors() == []
        assert not out.exists()
        [run] = (tmp_path / "runs").iterdir()
        assert read_run(run).status == "interrupted"
        typed = ["embed", "--resume", *map(str, [*where, *endless])]
        hint = f"talka embed: to continue, run: talka {shlex.join(typed)}"
        assert hint in errors.splitlines()
        num_epochs = num_epochs_done(out)
        process = start(
            "embed", *where, "--dim", 8, "--epochs", num_epochs, "--resume", "--format", "json"
        )
        printed, errors = process.communicate(timeout=250)
        assert process.returncode == 0, errors
        assert len(json.loads(printed)["loss"]) == num_epochs
        assert {path.name for path in tmp_path.iterdir()} == {"out", "runs"}

    def test_a_line_of_60_megabytes_needs_no_more_memory_than_many(self, tmp_path):
        words = small_text(num_lines=20_000).replace("\n", " ").encode()
        path = tmp_path / "line.txt"
        with path.open("wb") as file:
            while file.tell() < 60_000_000:
                file.write(words)
        where = [path, "--out", tmp_path / "out", "--runs", tmp_path / "runs"]
        process = start("embed", *where, *SMALL, "--memory", "100MB", "--format", "json")
        printed, errors = process.communicate(timeout=250)
        assert (process.returncode, errors) == (0, "")
        result = json.loads(printed)
        assert result["num_words"] == 300
        assert result["peak_memory_bytes"] < 600_000_000

    def test_a_disk_that_is_full_leaves_what_can_go_on(self, tmp_path, text):
        """Files of at most 500 kB: enough for pairs, not for a model of 537 kB."""
        where = [text, "--out", tmp_path / "out", "--runs", tmp_path / "runs", "--threads", 1]
        small = (500_000, 500_000)
        process = start(
            "embed", *where, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, small)
        )
        _, errors = process.communicate(timeout=250)
        assert process.returncode == 1
        assert "File too large" in errors
        assert len(errors.splitlines()) <= 3
        assert sorted(path.name for path in tmp_path.iterdir()) == ["out.unfinished", "runs"]
        process = start("embed", *where, "--resume")
        assert process.communicate(timeout=250)[1] == ""
        assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "runs"]

    def test_a_reader_that_leaves_before_it_begins_ends_it(self, tmp_path, text):
        ours, theirs = os.pipe()
        os.close(ours)
        where = [text, "--out", tmp_path / "out", "--runs", tmp_path / "runs"]
        with os.fdopen(theirs, "wb") as output:
            done = subprocess.run(
                [sys.executable, "-m", "talka.cli.main", "embed", *map(str, where), *SMALL],
                stdout=output,
                stderr=subprocess.PIPE,
                check=False,
            )
        assert (done.returncode, done.stderr) == (1, b"")
        assert list(tmp_path.iterdir()) == []
