"""The models that the training benchmarks share."""

import torch
from torch import nn


def mlp():
    """2.91 million parameters."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Flatten(),
        *(nn.Linear(784, 1024), nn.ReLU()),
        *(nn.Linear(1024, 1024), nn.ReLU()),
        *(nn.Linear(1024, 1024), nn.ReLU()),
        nn.Linear(1024, 10),
    )


def small_mlp():
    """0.27 million parameters, for runs of many epochs."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Flatten(),
        *(nn.Linear(784, 256), nn.ReLU()),
        *(nn.Linear(256, 256), nn.ReLU()),
        nn.Linear(256, 10),
    )


def cnn():
    """0.42 million parameters, most of them in one matrix."""
    torch.manual_seed(0)
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        nn.Flatten(),
        *(nn.Linear(32 * 7 * 7, 256), nn.ReLU()),
        nn.Linear(256, 10),
    )


MODELS = {"mlp": mlp, "small mlp": small_mlp, "cnn": cnn}
BATCH = 32
