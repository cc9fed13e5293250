"""Every error that talka raises on purpose: `TalkaError` is their root."""

from talka.errors.base import InvalidValueError, TalkaError, UnknownNameError
from talka.errors.files import (
    CorpusError,
    ModelFileError,
    NothingToLearnError,
    OutputError,
    RunDirectoryError,
    SavedStateError,
    TokenizerError,
)
from talka.errors.graphs import (
    EdgeFileError,
    GraphError,
    GraphTooLargeError,
    NeverHaltsError,
    ProgramError,
    UnknownVertexError,
)
from talka.errors.payloads import NonFiniteError, PayloadError, SpecError
from talka.errors.work import (
    ClusterError,
    GangError,
    LabError,
    NotShippableError,
    NotStorableError,
    ReleasedError,
    StorageFullError,
    TaskDiedError,
    TaskError,
)

__all__ = [
    "ClusterError",
    "CorpusError",
    "EdgeFileError",
    "GangError",
    "GraphError",
    "GraphTooLargeError",
    "InvalidValueError",
    "LabError",
    "ModelFileError",
    "NeverHaltsError",
    "NonFiniteError",
    "NotShippableError",
    "NotStorableError",
    "NothingToLearnError",
    "OutputError",
    "PayloadError",
    "ProgramError",
    "ReleasedError",
    "RunDirectoryError",
    "SavedStateError",
    "SpecError",
    "StorageFullError",
    "TalkaError",
    "TaskDiedError",
    "TaskError",
    "TokenizerError",
    "UnknownNameError",
    "UnknownVertexError",
]
