"""A script for torchrun that test_train.py starts in several ways: `ddp.py --steps 3 FOLDER`.

Each rank writes what it finds, and the weights after its steps, to FOLDER/RANK.json.
"""

import argparse
import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import talka.train
from talka.train.choices import current

NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    rank, size = 0, 1
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
        rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    replica = DistributedDataParallel(model) if size > 1 else model
    batches = torch.Generator().manual_seed(1)
    for step in range(1, args.steps + 1):
        batch = torch.randn(8, 4, generator=batches)[rank :: max(size, 2)]
        loss = replica(batch).square().mean()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
                parameter.grad = None
        talka.train.log(step=step, loss=loss)
    print(f"rank {rank} of {size} has finished")
    found = {
        "environment": {name: os.environ[name] for name in NAMES if name in os.environ},
        "threads": torch.get_num_threads(),
        "weights": [parameter.flatten().tolist() for parameter in model.parameters()],
        "argv": sys.argv[1:],
        "path": sys.path[0],
        "is_main": sys.modules["__main__"].__file__ == __file__,
        "compressor": current().compressor,
    }
    (args.folder / f"{rank}.json").write_text(json.dumps(found))
    if size > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
