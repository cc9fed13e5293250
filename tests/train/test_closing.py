"""The end of a hook: with a block, by hand, as garbage, or at exit, it writes its last comparison."""

import gc
import os
import subprocess
import sys
import textwrap

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from talka.errors import HookClosedError
from talka.events import Measured, read_run
from talka.train import attach
from talka.train.events import StepDone


def make_ddp():
    return DistributedDataParallel(nn.Linear(30, 20, bias=False))


def backward(ddp):
    ddp(torch.ones(4, 30)).square().mean().backward()


def measured(folder):
    """Parts of which bytes and seconds are in a run directory."""
    return [one.event.cost_id for one in read_run(folder).events if isinstance(one.event, Measured)]


def test_a_with_block_closes_the_hook(alone, tmp_path):
    with attach(make_ddp(), "onebit+ef", run_dir=tmp_path) as hook:
        assert hook.stats()["num_steps"] == 0
    ddp = make_ddp()
    with attach(ddp, "onebit+ef", run_dir=tmp_path) as hook:
        backward(ddp)
        assert measured(tmp_path) == []
    assert measured(tmp_path) == ["train/step/exchange"]
    assert hook.stats()["num_steps"] == 1


def test_closing_twice_writes_one_comparison(alone, tmp_path):
    ddp = make_ddp()
    hook = attach(ddp, "onebit+ef", run_dir=tmp_path)
    backward(ddp)
    hook.close()
    hook.close()
    assert measured(tmp_path) == ["train/step/exchange"]


def test_a_closed_hook_raises_an_error(alone, tmp_path):
    ddp = make_ddp()
    hook = attach(ddp, "onebit+ef")
    hook.close()
    for use in (
        lambda: backward(ddp),
        lambda: hook.swap("none"),
        lambda: hook.save(tmp_path),
        lambda: hook.load(tmp_path),
    ):
        with pytest.raises(HookClosedError, match="this hook is closed"):
            use()


def test_a_hook_that_becomes_garbage_is_closed(alone, tmp_path):
    ddp = make_ddp()
    attach(ddp, "onebit+ef", run_dir=tmp_path)
    backward(ddp)
    del ddp
    gc.collect()
    assert measured(tmp_path) == ["train/step/exchange"]


def test_a_forked_process_leaves_the_journal_to_its_parent(alone, tmp_path):
    """For example a process that loads data and ends before the training does."""
    ddp = make_ddp()
    with attach(ddp, "onebit+ef", run_dir=tmp_path) as hook:
        backward(ddp)
        child = os.fork()
        if child == 0:
            hook.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert measured(tmp_path) == []


SCRIPT = """
    import sys

    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    import talka.train

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    ddp = DistributedDataParallel(nn.Linear(30, 20))
    talka.train.attach(ddp, "onebit+ef", run_dir=sys.argv[1])
    for _ in range(40):
        ddp(torch.ones(4, 30)).square().mean().backward()
"""


@pytest.mark.slow
def test_a_run_of_40_steps_is_compared_once_at_exit_although_nothing_closes_its_hook(tmp_path):
    script = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(tmp_path)]
    done = subprocess.run(script, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr
    record = read_run(tmp_path)
    assert sum(isinstance(one.event, StepDone) for one in record.events) == 40
    assert measured(tmp_path) == ["train/step/exchange"]
    assert [one.cost_id for one in record.comparisons()] == ["train/step/exchange"]
