"""The part of an engine that starts gangs; all engines share it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from talka.channels.options import MailboxOptions
from talka.engine.base import Engine, Gang
from talka.engine.gangs.local import is_under_torchrun
from talka.engine.gangs.running import Ranks, RunningGangs
from talka.engine.gangs.spec import GangSpec, Main, OnFailure, gang_spec
from talka.events import Stream


class GangStarter(Engine, ABC):
    """Base class of engines: starts gangs, and stops those that run when the engine is closed."""

    events: Stream

    def __init__(self) -> None:
        self._gangs = RunningGangs()

    def start_gang(
        self,
        main: Main,
        *args: Any,
        size: int | Mapping[str, int],
        timeout_s: float | None = None,
        backend: str | None = "gloo",
        on_failure: OnFailure = "end",
        args_of: Mapping[str, Sequence[Any]] | None = None,
        channels: MailboxOptions | None = None,
    ) -> Gang:
        spec = gang_spec(
            main,
            args,
            size=size,
            timeout_s=timeout_s,
            backend=backend,
            on_failure=on_failure,
            args_of=args_of,
            channels=channels,
        )
        if self._joins_torchrun and is_under_torchrun():
            from talka.engine.gangs.torchrun import ExistingGang

            return ExistingGang(spec, self.events)
        return self._gangs.start(spec, self._ranks_of(spec), self.events)

    _joins_torchrun = False
    """True if a gang inside torchrun consists of the ranks that torchrun started."""

    @abstractmethod
    def _ranks_of(self, spec: GangSpec) -> Ranks:
        """Return the ranks of a gang, which the thread of the gang starts.

        Called by `start_gang`, which raises what this raises.
        """
