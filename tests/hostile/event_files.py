"""Run directories that somebody made up or damaged, through the whole of `talka report`.

Every round writes a run directory of events with hostile values, garbage lines and hostile config
and result files. The command must write a page or refuse with an error of ours: no other exception,
no hang, and no text of the run may become a part of the page.
"""

import contextlib
import dataclasses
import io
import json
import random
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

from talka.cli.main import main
from talka.events import registered
from tests.hostile.outcome import Outcome

EVIL = "<script>document.title='owned'</script>"
_TIMEOUT_S = 250
_NUMBERS = (0, -1, 1, 2**63, -(2**63), 2**64, 10**400, 10**5000, 1e-320, 1e100, 1e308, -1e308, 0.5,
            True, 1.7e9, float("nan"), float("inf"))  # fmt: skip
_TEXTS = ("", EVIL, "\ud800", "a\udfff\ud800b", "\x00\x1b[31m", "9" * 5000, "x" * 10_000, "superstep/3",
          "step", "</script>", "rank-0", "{{x}}%{y}", "\u202egnp", "driver", "done")  # fmt: skip
_DEPTHS = (1, 40, 400, 2_000)


def attack(rounds: int, seed: int) -> Outcome:
    """Report on `rounds` run directories; AssertionError with seed and round if one goes wrong."""
    accepted = refused = 0
    with mock.patch("talka.report.page._plotly_script", return_value=""):
        for number in range(rounds):
            with tempfile.TemporaryDirectory(prefix="talka-hostile-") as folder:
                run_dir = Path(folder)
                chance = random.Random(f"{seed}/{number}")
                _write_run(run_dir, chance)
                try:
                    is_accepted = _report(run_dir, chance)
                except Exception as error:
                    where = f"seed {seed}, round {number}"
                    raise AssertionError(f"{where}: {type(error).__name__}: {error}") from error
                accepted += is_accepted
                refused += not is_accepted
    return Outcome(accepted, refused)


def _report(run_dir: Path, chance: random.Random) -> bool:
    """Whether there is a page; the exit code must agree with it."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    out_format = chance.choice(["text", "json"])
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _time_limit():
        code = main(["report", str(run_dir), "--format", out_format])
    page = run_dir / "report.html"
    assert code in (0, 1, 2), f"exit code {code}"
    assert page.exists() == (code != 2), f"exit code {code}, page {page.exists()}"
    assert (code == 0) or err.getvalue(), "an exit code without a word"
    if page.exists():
        text = page.read_text(encoding="utf-8")
        assert EVIL not in text, "text of the run became a part of the page"
        assert text.count("<html") == text.count("</html>") == 1
    return page.exists()


def _write_run(run_dir: Path, chance: random.Random) -> None:
    names = ["events.jsonl", "events.rank-0.jsonl", f"events.{chance.choice(['x', EVIL[:3], '9' * 99])}.jsonl"]  # fmt: skip
    for name in names[: chance.randint(1, len(names))]:
        lines = [_line(chance) for _ in range(chance.choice([0, 1, 5, 30]))]
        data = b"".join(lines)
        (run_dir / name).write_bytes(data[: len(data) - chance.randint(0, 9)])
    for name in ("config.json", "result.json"):
        if chance.random() < 0.7:
            (run_dir / name).write_bytes(_document(chance))


def _line(chance: random.Random) -> bytes:
    kind = chance.random()
    if kind < 0.1:
        return chance.randbytes(chance.randint(0, 200)) + b"\n"
    if kind < 0.15:
        return chance.choice([b"[", b'{"event":']) * chance.choice(_DEPTHS) + b"\n"
    if kind < 0.25:
        return _encoded(_value(chance)) + b"\n"
    if kind < 0.35:
        return _encoded(_unknown(chance)) + b"\n"
    return _encoded(_event(chance)) + b"\n"


def _event(chance: random.Random) -> dict[str, Any]:
    """An event whose fields are mostly of their types, and some of them extreme."""
    kind = chance.choice(list(registered().values()))
    event: dict[str, Any] = {"event": kind.__name__, "time_s": chance.uniform(1.7e9, 1.7e9 + 50)}
    for field in dataclasses.fields(kind):
        event[field.name] = _field(str(field.type), chance)
    if chance.random() < 0.2:
        event[chance.choice(list(event))] = _value(chance)
    if chance.random() < 0.05:
        del event[chance.choice(list(event))]
    return event


def _unknown(chance: random.Random) -> dict[str, Any]:
    """An event of a kind that nobody has registered: any name, any fields, some of them deep."""
    names = (EVIL, "", "Unknown", "Event", "x" * 10_000, "__class__", "\ud800", "StepDone ")
    event: dict[str, Any] = {"event": chance.choice(names), "time_s": 1.7e9}
    for _ in range(chance.choice([0, 1, 5, 2_000])):
        event[chance.choice((*_TEXTS, "event", "kind", f"x{chance.random()}"))] = _value(chance)
    if chance.random() < 0.3:
        deep: Any = 1
        for _ in range(chance.choice([5, 49, 51, 400])):
            deep = chance.choice([[deep], {EVIL: deep}])
        event["deep"] = deep
    return event


def _field(kind: str, chance: random.Random) -> Any:
    if "str" in kind:
        return chance.choice(_TEXTS)
    if "Literal" in kind:
        return chance.choice(["done", "failed", "interrupted"])
    extreme = [0, -1, 2**63, -(2**63)] if "int" in kind else [0.0, -1e100, 1e100, 1e-320, 5e-324]
    usual = chance.randint(0, 99) if "int" in kind else chance.uniform(0, 1.7e9)
    return chance.choice([usual, usual, chance.choice(extreme)])


def _value(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.randint(0, 3 if depth > 3 else 5)
    if kind < 2:
        return chance.choice(_NUMBERS)
    if kind < 4:
        return chance.choice((*_TEXTS, None))
    inner = [_value(chance, depth + 1) for _ in range(chance.randint(0, 4))]
    return inner if kind == 4 else {chance.choice(_TEXTS): value for value in inner}


def _document(chance: random.Random) -> bytes:
    """A config or result: the known names with any values, deep nesting, or garbage."""
    kind = chance.random()
    if kind < 0.1:
        return chance.randbytes(100)
    if kind < 0.2:
        depth = chance.choice(_DEPTHS)
        return b'{"config":' * depth + b"1" + b"}" * depth
    names = ("name", "started_s", "command", "pid", "host", "num_cores", "python", "versions",
             "config", "boot_id", "sent_bytes", "train_s", "rate_bits_per_s", EVIL)  # fmt: skip
    return _encoded({name: _value(chance) for name in names if chance.random() < 0.7})


def _encoded(value: Any) -> bytes:
    """JSON and more: NaN, halves of surrogate pairs, numbers of thousands of digits."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return json.dumps(value).encode()
    finally:
        sys.set_int_max_str_digits(limit)


@contextlib.contextmanager
def _time_limit() -> Iterator[None]:
    def stop(signum: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"no page within {_TIMEOUT_S} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(_TIMEOUT_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
