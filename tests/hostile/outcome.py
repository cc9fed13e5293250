"""What an attack with forged input found; any other end than these two is a defect."""

from typing import NamedTuple


class Outcome(NamedTuple):
    accepted: int
    """Number of inputs that were read as if they were good."""

    refused: int
    """Number of inputs that were refused by an error of ours."""
