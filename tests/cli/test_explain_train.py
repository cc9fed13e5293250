import contextlib
import json
import os
import pty
import subprocess
import sys

import pytest

from talka.cli.commands import explain_train
from talka.cli.main import main
from talka.cli.parser import CommandParser
from talka.exchange import CodecRates
from talka.train import codec_rates
from talka.train.predictions import DEFAULT_SPECS

USUAL = ("--parameters", "2.9M", "--workers", "4", "--rate", "100mbit")

MODELS = """
import sys
from torch import nn

print("this belongs to nobody's JSON")

def make():
    model = nn.Sequential(nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 10))
    model[2].bias.requires_grad_(False)
    return model

def raises():
    raise RuntimeError("no\\nweights")

def leaves():
    sys.exit(3)

def number():
    return 3

def empty():
    return nn.ReLU()

def lazy():
    return nn.LazyLinear(3)

def frozen():
    return nn.Linear(3, 3).requires_grad_(False)

def needs(size):
    return nn.Linear(size, size)

thing = 3
"""


@pytest.fixture(autouse=True)
def rates(monkeypatch):
    """Made up, so that nothing depends on the machine."""

    def known(spec, events=None):
        return CodecRates(4e-10, 3e-10, 0.0 if spec == "none" else 2e-10)

    monkeypatch.setattr(codec_rates, "profiled_rates", known)


@pytest.fixture
def models(tmp_path):
    path = tmp_path / "models.py"
    path.write_text(MODELS)
    return path


def explain(capsys, *words):
    parser = CommandParser(description=explain_train.__doc__)
    explain_train.add_arguments(parser)
    assert explain_train.run(parser.parse_args(words)) == 0
    return capsys.readouterr().out


def explain_json(capsys, *words):
    return json.loads(explain(capsys, *words, "--format", "json"))


def row(answer, spec):
    return next(row for row in answer["rows"] if row["compressor"] == spec)


def test_the_table_has_a_row_for_every_spec_and_one_is_marked(capsys):
    lines = explain(capsys, *USUAL, "--step-seconds", "50ms").splitlines()
    rows = [line for line in lines if line.split(" ")[0] in DEFAULT_SPECS]
    assert [line.split(" ")[0] for line in rows] == list(DEFAULT_SPECS)
    assert len([line for line in rows if " * " in line]) == 1
    [ddp] = [line for line in rows if line.startswith("none")]
    for cell in ("17.4 MB", "1.39 s", "1.44 s", "0.14x"):
        assert cell in ddp
    assert lines[0] == (
        "2.90 M parameters, P = 4 workers, links of 100 Mbit/s, latency 0.1 ms, "
        "50 ms of computing per step"
    )


def test_json_gives_plain_numbers(capsys):
    answer = explain_json(capsys, *USUAL, "--step-seconds", "0.05")
    assert (answer["workers"], answer["links"][0]["rate_bits_per_s"]) == (4, 1e8)
    assert answer["parameters"] == 2_900_000
    ddp, onebit = row(answer, "none"), row(answer, "onebit+ef")
    assert ddp["sent_bytes_per_worker"] == pytest.approx(2 * 3 / 4 * 4 * 2.9e6, rel=1e-4)
    assert ddp["network_s"] == pytest.approx(1.3926, rel=1e-3)
    assert ddp["speed_vs_one_machine"] == pytest.approx(4 * 0.05 / 1.4426, rel=1e-3)
    assert onebit["sent_bytes_per_worker"] == pytest.approx(0.612e6, rel=0.01)
    assert onebit["compute_s"] == 0.05
    assert onebit["codec_s"] == pytest.approx(2.9e6 * (1.25 * 4e-10 + 2 * 3e-10))
    assert ddp["exchange"] == "ring"
    assert onebit["speed_vs_ddp"] == pytest.approx(ddp["step_s"] / onebit["step_s"], rel=1e-4)
    assert "all-gather" in [other["exchange"] for other in onebit["alternatives"]]
    assert [entry["step_s"] for entry in answer["rows"] if entry["best"]] == [
        min(entry["step_s"] for entry in answer["rows"])
    ]
    assert "times as fast as one machine" in answer["verdict"]


RHYTHMS = ("--step-seconds", "20ms", "--rhythm", "every-step,delayed:2,local-sgd:50")


def test_rhythms_have_a_row_per_compressor(capsys):
    words = (*USUAL, *RHYTHMS, "--compressor", "none", "onebit+ef")
    answer = explain_json(capsys, *words)
    rows = {(row["rhythm"], row["compressor"]): row for row in answer["rhythms"]}
    assert len(rows) == 6
    onebit = row(answer, "onebit+ef")
    exchange_s = onebit["codec_s"] + onebit["network_s"]
    every, late, local = (
        rows[rhythm, "onebit+ef"] for rhythm in ("every-step", "delayed:2", "local-sgd:50")
    )
    assert every["step_s"] == pytest.approx(onebit["step_s"])
    assert every["speed_vs_ddp"] == pytest.approx(onebit["speed_vs_ddp"])
    assert late["step_s"] == pytest.approx(max(0.02 + onebit["codec_s"], exchange_s))
    assert local["step_s"] == pytest.approx(0.02 + exchange_s / 50)
    assert local["sent_bytes_per_step"] == pytest.approx(onebit["sent_bytes_per_worker"] / 50)
    assert local["speed_vs_one_machine"] == pytest.approx(4 * 0.02 / local["step_s"])
    assert [key for key, entry in rows.items() if entry["best"]] == [("local-sgd:50", "onebit+ef")]
    assert "rhythms" not in explain_json(capsys, *USUAL)
    text = explain(capsys, *words)
    assert "local-sgd:50 *" in text
    assert "4 workers with local-sgd:50 and onebit+ef by two-phase would take" in text
    assert "additional steps a rhythm needs for the same loss is not predicted" in " ".join(
        text.split()
    )


def test_buffers_of_a_model_are_averaged_by_local_sgd(capsys, tmp_path):
    path = tmp_path / "net.py"
    path.write_text("from torch import nn\ndef make(): return nn.BatchNorm1d(1000)\n")
    answer = explain_json(capsys, "--model", f"{path}:make", *RHYTHMS, "--compressor", "none")
    every, _, local = answer["rhythms"]
    assert every["sent_bytes_per_round"] == pytest.approx(2 * 3 / 4 * 4 * 2000)
    assert local["sent_bytes_per_round"] == pytest.approx(2 * 3 / 4 * 4 * 4000)


def test_rhythms_of_one_worker_are_no_rows(capsys):
    words = ("--parameters", "9", "--workers", "1", *RHYTHMS)
    assert "nothing to exchange" in explain(capsys, *words)
    assert explain_json(capsys, *words)["rhythms"] == []


def test_it_says_when_one_machine_is_better(capsys):
    text = explain(capsys, "--parameters", "2.9M", "--rate", "1mbit", "--step-seconds", "60ms")
    assert "4 workers would be slower than one machine" in text
    assert "What would change that: links of more than" in text


def test_without_the_time_of_a_step_only_the_exchange_is_compared(capsys):
    text = explain(capsys, *USUAL)
    assert "vs one machine" not in text
    assert "vs DDP" in text
    assert "--step-seconds TIME, the computing time of one machine" in text
    answer = explain_json(capsys, *USUAL)
    assert row(answer, "onebit+ef")["compute_s"] is None
    assert row(answer, "onebit+ef")["speed_vs_one_machine"] is None


def test_specs_can_be_chosen_and_are_shown_once(capsys):
    answer = explain_json(
        capsys, *USUAL, "--compressor", "topk:0.1+ef", "fp16", "--compressor", "fp16"
    )
    assert [row["compressor"] for row in answer["rows"]] == ["topk:0.1+ef", "fp16"]


def test_one_worker_has_nothing_to_exchange(capsys):
    assert "nothing to exchange" in explain(capsys, "--parameters", "9", "--workers", "1")
    answer = explain_json(capsys, "--parameters", "9", "--workers", "1")
    assert answer["rows"] == []
    assert "nothing to exchange" in answer["verdict"]


def test_hosts_share_links(capsys):
    words = (*USUAL, "--workers", "8", "--hosts", "2", "--step-seconds", "1s")
    onebit = row(explain_json(capsys, *words), "onebit+ef")
    assert (onebit["exchange"], onebit["alternatives"][0]["exchange"]) == (
        "two-phase",
        "hierarchical",
    )
    words = (*USUAL, "--workers", "8", "--hosts", "2", "--step-seconds", "50ms")
    assert 'attach(ddp, "onebit+ef", exchange="hierarchical")' in explain(capsys, *words)
    text = explain(capsys, *words)
    assert "2 hosts with 4, 4 workers" in text
    assert '"One machine" means a single worker.' in text


def test_a_number_of_parameters_is_taken_as_a_matrix_and_it_says_so(capsys):
    assert "The parameters are assumed to form one square matrix" in explain(capsys, *USUAL)
    assert "square" not in explain(capsys, *USUAL, "--compressor", "none")
    sent = row(explain_json(capsys, *USUAL), "powersgd:4")["sent_bytes_per_worker"]
    assert sent == pytest.approx(2 * 3 / 4 * 4 * 4 * (1702 + 1703), rel=0.2)


def test_a_model_gives_its_own_shapes(capsys, models, tmp_path):
    answer = explain_json(capsys, "--model", f"{models}:make")
    assert answer["parameters"] == 784 * 100 + 100 + 100 * 10, "what is not trained does not travel"
    floats = 4 * (784 + 100) + 100 + 4 * (100 + 10)
    sent = row(answer, "powersgd:4")["sent_bytes_per_worker"]
    assert sent == pytest.approx(2 * 3 / 4 * 4 * floats)
    assert "square" not in explain(capsys, "--model", f"{models}:make")
    assert str(tmp_path) not in sys.path


def test_a_model_may_import_its_neighbours(capsys, tmp_path):
    (tmp_path / "sizes.py").write_text("WIDTH = 5\n")
    (tmp_path / "net.py").write_text(
        "import sizes\nfrom torch import nn\ndef make(): return nn.Linear(sizes.WIDTH, 1)\n"
    )
    assert explain_json(capsys, "--model", f"{tmp_path}/net.py:make")["parameters"] == 6


@pytest.mark.parametrize(
    "function, expected",
    [
        ("raises", "it raised RuntimeError: no weights in line 13"),
        ("leaves", "it raised SystemExit: 3 in line 16"),
        ("number", "it returned int, not an nn.Module"),
        ("empty", "its model has no trainable parameters"),
        ("frozen", "its model has no trainable parameters"),
        ("lazy", "lazy parameters"),
        ("needs", "it raised TypeError"),
        ("thing", "the file has no function thing"),
        ("missing", "the file has no function missing"),
        ("", "it does not name a file and a function"),
    ],
)
def test_a_function_that_makes_no_model_is_one_line(capsys, models, function, expected):
    error_of(capsys, "--model", f"{models}:{function}", expected=expected)


@pytest.mark.parametrize(
    "name, content, expected",
    [
        ("a.py", "def (", "it raised SyntaxError: invalid syntax in line 1"),
        ("a.py", "import no_such_module_there_is", "ModuleNotFoundError"),
        ("a.txt", "hello", "it is not a Python file"),
    ],
)
def test_a_file_that_is_no_program_is_one_line(capsys, tmp_path, name, content, expected):
    (tmp_path / name).write_text(content)
    error_of(capsys, "--model", f"{tmp_path / name}:make", expected=expected)


@pytest.mark.parametrize(
    "words, expected",
    [
        ((), "--parameters is missing. Add a number such as --parameters 2.9M, or --model"),
        (
            ("--parameters", "9", "--model", "a.py:make"),
            "--model cannot be combined with --parameters",
        ),
        (("--model", "no/such.py:make"), "there is no file no/such.py"),
        (("--model", "models.py"), "it does not name a file and a function"),
        (("--parameters", "0"), "--parameters is 0"),
        (("--parameters", "many"), "--parameters is 'many'"),
        (("--parameters", "1e13"), "--parameters is '1e13'"),
        (("--parameters", "9", "--workers", "0"), "--workers is 0"),
        (("--parameters", "9", "--workers", "1001"), "--workers is 1001"),
        (("--parameters", "9", "--hosts", "5"), "--hosts is 5"),
        (("--parameters", "9", "--rate", "100"), "--rate is '100'"),
        (("--parameters", "9", "--rate", "1e-9bit"), "--rate is '1e-9bit'"),
        (("--parameters", "9", "--latency", "soon"), "--latency is 'soon'"),
        (("--parameters", "9", "--latency", "1e9"), "--latency is '1e9'"),
        (("--parameters", "9", "--step-seconds", "0"), "--step-seconds is '0'"),
        (("--parameters", "9", "--step-seconds", "1e300"), "--step-seconds is '1e300'"),
        (("--parameters", "9", "--rhythm", "local-sgd:5"), "--rhythm needs --step-seconds"),
        (("--parameters", "9", "--rhythm", "local-sgd"), "local-sgd:K"),
        (("--parameters", "9", "--rhythm", "localsgd:5"), "Did you mean 'local-sgd'?"),
        (
            ("--parameters", "9", *RHYTHMS, "--compressor", "topk:0.1"),
            "would lose most of every change for good",
        ),
        (("--parameters", "9", "--compressor", "onbit+ef"), "'onebit+ef', the nearest"),
        (("--parameters", "9", "--compressor", "powersgd"), "'powersgd' has no rank"),
        (("--parameters", "9", "--compressor", "none", "qsgd:7+fe"), "'qsgd:7+fe'"),
    ],
)
def test_bad_values_are_one_line_that_names_them(capsys, words, expected):
    error_of(capsys, *words, expected=expected)


def error_of(capsys, *words, expected):
    assert main(["explain", "train", *words]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("talka explain: ")
    assert expected in last


@pytest.mark.parametrize("count", ["1", "2", "3", "1T"])
def test_any_number_of_parameters_has_an_answer(capsys, count):
    answer = explain_json(capsys, "--parameters", count, "--workers", "3", "--step-seconds", "1ms")
    assert len(answer["rows"]) == len(DEFAULT_SPECS)


def test_the_table_fits_its_line_unbroken(capsys):
    words = ("--parameters", "1T", "--workers", "100", "--hosts", "3", "--step-seconds", "1min")
    lines = explain(capsys, *words).splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("compressor "))
    table = lines[start : start + len(DEFAULT_SPECS) + 1]
    assert max(len(line.rstrip()) for line in table) < 200
    assert lines[start + len(table)] == "* the shortest step"


def test_help_shows_every_default(capsys):
    parser = CommandParser()
    explain_train.add_arguments(parser)
    text = " ".join(parser.format_help().split())
    for default in ("4, or the number of --rates", "100mbit", "0.1ms", "table"):
        assert f"(default: {default})" in text


@pytest.mark.slow
def test_a_terminal_shows_what_takes_time_before_the_table():
    ours, theirs = pty.openpty()
    words = ["--parameters", "1k", "--compressor", "fp16"]
    with subprocess.Popen(
        [sys.executable, "-m", "talka", "explain", "train", *words],
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the other end was closed
            while piece := os.read(ours, 65_536):
                shown += piece
        os.close(ours)
        assert process.wait(timeout=250) == 0
    assert shown.index(b"train/load") < shown.index(b"train/codecs")
