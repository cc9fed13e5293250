"""Errors of workers that train one model together."""

from talka.errors.base import TalkaError


class ModelsDifferError(TalkaError, ValueError):
    """The workers of a rhythm were started with different models, options or versions.

    >>> print(ModelsDifferError("the shape of 'fc.weight'", {0: "(10, 4)", 1: "(10, 5)"}))
    the workers differ in the shape of 'fc.weight': (10, 4) on rank 0, (10, 5) on rank 1. All of them \
must build the same model, with the same options and version of talka.
    """

    def __init__(self, what: str, values: dict[int, str]) -> None:
        super().__init__(what, values)
        self.what, self.values = what, values

    def __str__(self) -> str:
        listed = ", ".join(f"{value} on rank {rank}" for rank, value in self.values.items())
        return (
            f"the workers differ in {self.what}: {listed}. All of them must build the same model, "
            "with the same options and version of talka."
        )


class UnevenRoundsError(TalkaError):
    """A worker left the rhythm after fewer rounds than another one needs.

    >>> print(UnevenRoundsError(2, 12, 13))
    rank 2 left the rhythm after 12 rounds, but this worker needs it in round 13: its loader probably \
ended early. Give all workers the same number of batches per epoch.
    """

    def __init__(self, rank: int, their_rounds: int, rounds: int) -> None:
        super().__init__(rank, their_rounds, rounds)
        self.rank, self.their_rounds, self.rounds = rank, their_rounds, rounds

    def __str__(self) -> str:
        return (
            f"rank {self.rank} left the rhythm after {self.their_rounds} rounds, but this worker needs "
            f"it in round {self.rounds}: its loader probably ended early. Give all workers the same "
            "number of batches per epoch."
        )


class PeerFailedError(TalkaError):
    """Another worker of the rhythm raised an error, so this one cannot continue.

    >>> print(PeerFailedError(1, "NonFiniteError: 'fc.weight' holds NaN"))
    rank 1 failed, so this worker cannot continue. It raised NonFiniteError: 'fc.weight' holds NaN
    """

    def __init__(self, rank: int, problem: str) -> None:
        super().__init__(rank, problem)
        self.rank, self.problem = rank, problem

    def __str__(self) -> str:
        return f"rank {self.rank} failed, so this worker cannot continue. It raised {self.problem}"


class WorkerDivergedError(TalkaError, ArithmeticError):
    """A gradient or parameter of one worker became NaN or infinite.

    >>> print(WorkerDivergedError(2, 120, "fc.weight"))
    in step 120, 'fc.weight' became NaN or infinite on rank 2. Lower the learning rate, clip \
gradients, or look at the batch of that step.
    """

    def __init__(self, rank: int, step: int, tensor: str) -> None:
        super().__init__(rank, step, tensor)
        self.rank, self.step, self.tensor = rank, step, tensor

    def __str__(self) -> str:
        return (
            f"in step {self.step}, {self.tensor!r} became NaN or infinite on rank {self.rank}. Lower "
            "the learning rate, clip gradients, or look at the batch of that step."
        )
