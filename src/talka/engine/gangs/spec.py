"""The arguments of a gang, checked, and prepared to be sent to its ranks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args

from talka.channels.options import MailboxOptions
from talka.channels.rendezvous import new_secret
from talka.engine.shipping import ship
from talka.errors import InvalidValueError, TalkaError, UnknownNameError
from talka.extras import require

Main: TypeAlias = Callable[..., Any] | Mapping[str, Callable[..., Any]]
OnFailure: TypeAlias = Literal["end", "report"]
WORKER: Final = "worker"
"""Role of all ranks of a gang without roles."""
BACKENDS: Final = ("gloo", "nccl", "ucc", "mpi", "xccl")
"""Backends of torch.distributed."""


class RankFailed(TalkaError):
    """Raised by a rank that describes its failure itself, such as `ended with exit code 3`.

    `GangError` contains this description. The rank has printed what there is to print: no traceback
    is added to its log.
    """

    def __init__(self, how: str) -> None:
        super().__init__(how)
        self.how = how


@dataclass(frozen=True, slots=True, kw_only=True)
class GangSpec:
    """A gang that can be started: its roles, and what each of them runs."""

    roles: tuple[str, ...]
    """Role of each rank."""
    mains: Mapping[str, Callable[..., Any]]
    """Function of each role."""
    arguments: Mapping[str, tuple[Any, ...]]
    """Arguments of each role, after the worker."""
    backend: str | None
    on_failure: OnFailure
    timeout_s: float | None
    channels: MailboxOptions = field(default_factory=MailboxOptions)
    secret: bytes = field(default_factory=new_secret, repr=False)

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.roles)

    def shipped(self) -> dict[str, bytes]:
        """Return the function and the arguments of each role as bytes.

        Raises NotShippableError if one of them cannot be sent to another process.
        """
        return {role: ship(main, (main, self.arguments[role])) for role, main in self.mains.items()}


def gang_spec(
    main: Main,
    args: Sequence[Any],
    *,
    size: int | Mapping[str, int],
    timeout_s: float | None = None,
    backend: str | None = "gloo",
    on_failure: OnFailure = "end",
    args_of: Mapping[str, Sequence[Any]] | None = None,
    channels: MailboxOptions | None = None,
) -> GangSpec:
    """Check the arguments of `Engine.start_gang`, which documents them."""
    roles = roles_of(size)
    names = tuple(dict.fromkeys(roles))
    mains = _mains(main, names)
    for role, own in (args_of or {}).items():
        if role not in names:
            raise UnknownNameError("role", role, names)
        if isinstance(own, str | bytes) or not isinstance(own, Sequence):
            raise InvalidValueError(f"args_of[{role!r}]", own, "a tuple or list of arguments")
    if on_failure not in get_args(OnFailure):
        raise InvalidValueError("on_failure", on_failure, "'end' or 'report'")
    _check_backend(backend)
    return GangSpec(
        roles=roles,
        mains=mains,
        arguments={role: (*args, *(args_of or {}).get(role, ())) for role in names},
        backend=backend,
        on_failure=on_failure,
        timeout_s=timeout_s,
        channels=MailboxOptions() if channels is None else channels,
    )


def roles_of(size: int | Mapping[str, int]) -> tuple[str, ...]:
    """Return the role of each rank of a gang of this size.

    >>> roles_of({"server": 2, "worker": 1})
    ('server', 'server', 'worker')
    """
    if not isinstance(size, Mapping):
        if not _is_count(size):
            raise InvalidValueError("size", size, "a whole number of at least 1")
        return (WORKER,) * size
    if not size:
        raise InvalidValueError(
            "size", dict(size), "a number, or roles with their numbers of ranks"
        )
    for role, count in size.items():
        if not role:
            raise InvalidValueError("a role in size", role, "a text that is not empty")
        if not _is_count(count):
            raise InvalidValueError(f"size[{role!r}]", count, "a whole number of at least 1")
    return tuple(role for role, count in size.items() for _ in range(count))


def _is_count(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 1


def _mains(main: Main, names: tuple[str, ...]) -> dict[str, Callable[..., Any]]:
    if not isinstance(main, Mapping):
        if not callable(main):
            raise InvalidValueError("main", main, "a function, or a function for each role")
        return dict.fromkeys(names, main)
    for role in main:
        if role not in names:
            raise UnknownNameError("role", role, names)
    for role in names:
        if not callable(main.get(role)):
            raise InvalidValueError(
                f"main[{role!r}]", main.get(role), "a function: each role of size needs one"
            )
    return dict(main)


def _check_backend(backend: str | None) -> None:
    """Raise UnknownNameError if torch has no such backend; `cpu:gloo,cuda:nccl` is one, too."""
    if backend is None:
        return
    if not isinstance(backend, str):
        raise InvalidValueError("backend", backend, f"None or one of {', '.join(BACKENDS)}")
    for part in backend.split(","):
        if part.rpartition(":")[2] not in BACKENDS:
            raise UnknownNameError("backend", backend, (*BACKENDS, "None (no process group)"))
    require("torch", by=f"a gang with the backend {backend}")
