"""A worker that dies in the middle of an exchange is named by those that wait for it."""

import subprocess
import sys
import textwrap

import pytest

SCRIPT = """
    import os
    import signal
    import sys

    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    import talka.train
    from talka.errors import LostWorkerError

    rank = int(sys.argv[2])
    dist.init_process_group("gloo", store=dist.FileStore(sys.argv[1], 2), rank=rank, world_size=2)
    ddp = DistributedDataParallel(nn.Linear(30, 20))
    talka.train.attach(ddp, "onebit+ef")
    try:
        for step in range(1000):
            loss = ddp(torch.ones(4, 30)).square().mean()
            if (rank, step) == (1, 3):
                os.kill(os.getpid(), signal.SIGKILL)
            loss.backward()
    except LostWorkerError as error:
        print(error, flush=True)
    os._exit(0)
"""


@pytest.mark.slow
def test_the_survivor_of_a_backward_pass_names_the_rank_that_died(tmp_path):
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(tmp_path / "store")]
    ranks = [
        subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    try:
        printed, _ = ranks[0].communicate(timeout=250)
    finally:
        for process in ranks:
            process.kill()
            process.communicate(timeout=250)
    assert printed.startswith("lost rank 1 in the middle of an exchange (")
    assert "Start all workers again, and load the last checkpoint." in printed
