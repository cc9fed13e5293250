"""Train a small convolutional net without a loop: on two workers, with one bit per value.

    python examples/fit_images.py    # about ten seconds on a laptop
    talka train --workers 2 --rhythm local-sgd:10 examples/fit_images.py

You should see the loss fall and more than 90% of the images classified correctly. A training that
ended after two epochs continues where it was.
"""

import tempfile

import torch
from torch import nn

import talka.train


def images(number, seed):
    """Bars that are horizontal, vertical or diagonal, in noise; the class is the direction."""
    generator = torch.Generator().manual_seed(seed)
    shapes = torch.zeros(3, 1, 12, 12)
    shapes[0, 0, 5:7], shapes[1, 0, :, 5:7], shapes[2, 0] = 1, 1, torch.eye(12)
    y = torch.randint(3, (number,), generator=generator)
    return shapes[y] + 0.7 * torch.randn(number, 1, 12, 12, generator=generator), y


def make_model():
    torch.manual_seed(0)
    convolution = nn.Sequential(nn.Conv2d(1, 8, 5), nn.ReLU(), nn.MaxPool2d(2))
    return nn.Sequential(convolution, nn.Flatten(), nn.Linear(128, 3))


def train(folder, **options):
    result = talka.train.fit(
        make_model(),
        images(1000, seed=1),
        nn.functional.cross_entropy,
        validation=images(300, seed=2),
        accuracy=True,
        optimizer="sgd:0.02/0.9",
        compressor="onebit+ef",
        batch_size=50,
        checkpoint=folder,
        num_workers=2,
        **options,
    )
    print(result)
    return result


def main():
    with tempfile.TemporaryDirectory() as folder:
        train(folder, epochs=2)
        result = train(folder, epochs=4, resume=folder)
    assert result.losses[-1] < 0.5 * result.losses[0], "the loss fell too little"
    assert result.accuracy[-1] > 0.9, "too few images are classified correctly"


if __name__ == "__main__":
    main()
