"""Run by torchrun, by Python alone and in a lab: a rhythm without a process group."""

import os
from pathlib import Path

import talka
from tests.train.rhythms import tasks


def main():
    rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    model = tasks.new_model()
    optimizer = tasks.new_optimizer("sgd", model)
    with talka.train.LocalSGD(model, optimizer, every=4, compressor="onebit+ef") as rhythm:
        for step in range(10):
            tasks.gradient_step(model, optimizer, *tasks.part(step, rank, size))
    total = float(tasks.flat(model).double().sum())
    folder = Path(os.environ["TALKA_TEST_OUT"])
    (folder / f"{rank}-of-{size}").write_text(f"{rhythm.num_workers} {rhythm.num_rounds} {total}")


if __name__ == "__main__":
    main()
