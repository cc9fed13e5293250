"""Configuration of `talka embed`, checked when it is created."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

from talka.data.text import PairOptions, Tokenizer
from talka.data.text.resources import default_memory_bytes
from talka.errors import InvalidValueError
from talka.machine import num_cores
from talka.train.models.glove import GloVeConfig

Parallel = Literal["threads", "dimensions"]

MAX_DIM = 10_000  # kernels are compiled per length: this one takes 10 s, 20,000 fails
MAX_WINDOW = 10_000  # takes seconds for its weights alone
MAX_THREADS = 1_024  # each thread has its own tables, 700 kB even without any words


@dataclass(frozen=True, kw_only=True, slots=True)
class TextConfig:
    """Options for turning text into pairs of words."""

    corpus: tuple[str, ...]
    """Files (plain, .gz, .zst), folders, or `-` for standard input."""

    tokenizer: Tokenizer = "words"
    """Name of a built-in tokenizer, or a function from a line to its words."""

    min_count: int = 5
    """Occurrences a word needs to get a vector."""

    pairs: PairOptions = field(default_factory=PairOptions)

    def __post_init__(self) -> None:
        if not self.corpus:
            raise InvalidValueError("corpus", self.corpus, "at least one file, folder or -")
        _check_range("min_count", self.min_count)
        _check_range("window", self.pairs.window, MAX_WINDOW)


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbedConfig:
    """All options of an embeddings job."""

    text: TextConfig
    dim: int = 100
    epochs: int = 15
    glove: GloVeConfig = field(default_factory=GloVeConfig)

    parallel: Parallel = "threads"
    """Kind of parallelism: `threads` share one model; with `dimensions` each of `workers`
    processes holds a slice of the coordinates of all vectors."""

    workers: int = 2

    threads: int = field(default_factory=num_cores)
    memory_bytes: int = field(default_factory=default_memory_bytes)
    """Memory budget for arrays that grow with the text; arrays beyond it are moved to disk."""

    def __post_init__(self) -> None:
        for name in ("epochs", "workers", "memory_bytes"):
            _check_range(name, getattr(self, name))
        _check_range("dim", self.dim, MAX_DIM)
        _check_range("threads", self.threads, MAX_THREADS)
        if self.parallel == "dimensions" and self.workers > self.dim + 2:
            allowed = f"at most {self.dim + 2}, so that each has at least one coordinate"
            raise InvalidValueError("--workers", self.workers, allowed)

    @property
    def seed(self) -> int:
        return self.text.pairs.seed

    def resolved(self) -> dict[str, Any]:
        """Return plain values for config.json and for comparing with an unfinished run."""
        plain = dataclasses.asdict(self)
        if callable(self.text.tokenizer):
            plain["text"]["tokenizer"] = getattr(self.text.tokenizer, "__qualname__", "a function")
        plain["text"]["corpus"] = [str(path) for path in self.text.corpus]
        return plain


def _check_range(name: str, value: int, most: int | None = None) -> None:
    if value < 1 or (most is not None and value > most):
        allowed = "of at least 1" if most is None else f"from 1 to {most:,}"
        option = f"--{name.removesuffix('_bytes').replace('_', '-')}"
        raise InvalidValueError(option, value, f"a whole number {allowed}")
