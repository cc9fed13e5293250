"""`fit` in processes of its own: Ctrl+C, and options of the command line."""

import signal
import subprocess
import sys

import pytest

from talka.errors import InvalidValueError, OptionError
from talka.train.choices import Choices
from talka.train.fitting import checkpoints
from talka.train.fitting.options import FitOptions
from talka.train.fitting.schedules import Decay
from talka.train.rhythms.short_forms import RhythmConfig
from tests.marked import marked
from tests.waiting import wait_until

SCRIPT = """
import sys
import torch
import talka.train
torch.manual_seed(0)
x = torch.randn(200, 8)
model = torch.nn.Linear(8, 2)
talka.train.fit(model, (x, x[:, 0] > 0), lambda out, y: torch.nn.functional.cross_entropy(out, y.long()),
                epochs=100_000, batch_size=20, num_workers=2, checkpoint=sys.argv[1])
"""


@pytest.mark.slow
def test_ctrl_c_leaves_a_whole_checkpoint_and_no_process(tmp_path):
    folder = tmp_path / "checkpoints"
    with marked() as mark:
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(folder)],
            env=mark.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_until(lambda: len(list(folder.glob("*/checkpoint.json"))) > 1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode != 0
        assert "KeyboardInterrupt" in errors
        assert mark.survivors() == []
    found, _ = checkpoints._latest(folder)
    assert found.startswith("step-"), "its manifest is whole"


def options(**given):
    defaults = dict.fromkeys(FitOptions.__dataclass_fields__)
    defaults |= {"rhythm": RhythmConfig(), "compressor": "none", "epochs": 1, "batch_size": 1}
    defaults |= {"shares": "equal", "schedule": Decay(), "seed": 0}
    return FitOptions(**{**defaults, **given})


def test_options_of_the_command_line_come_first():
    given = options(rhythm=RhythmConfig(name="local-sgd", steps=5, outer="sgd:0.5"))
    taken = given.with_choices(Choices(compressor="onebit+ef", exchange="ring"))
    assert (taken.compressor, taken.exchange, taken.rhythm) == ("onebit+ef", "ring", given.rhythm)
    more = given.with_choices(Choices(rhythm="local-sgd:9")).rhythm
    assert (more.steps, more.outer) == (9, "sgd:0.5"), "the outer optimizer of the script stays"
    other = given.with_choices(Choices(rhythm="delayed:2")).rhythm
    assert other == RhythmConfig(name="delayed", steps=2)
    outer = given.with_choices(Choices(outer="nesterov:0.7/0.9")).rhythm
    assert (outer.steps, outer.outer) == (5, "nesterov:0.7/0.9")
    with pytest.raises(OptionError, match="outer is not an option of the rhythm every-step"):
        options().with_choices(Choices(outer="sgd:0.5"))
    with pytest.raises(InvalidValueError):
        RhythmConfig(name="delayed", steps=-1)
