"""Word vectors from Python in one call: `talka.embed("corpus/", out="vectors")`."""

from collections.abc import Sequence
from pathlib import Path

from talka.data.text import PairOptions, Tokenizer
from talka.jobs.base import execute
from talka.jobs.embeddings.config import EmbedConfig, TextConfig
from talka.jobs.embeddings.plan import EmbedPlan
from talka.jobs.embeddings.vectors import Embeddings


def embed(
    corpus: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    dim: int = 100,
    epochs: int = 15,
    window: int = 10,
    min_count: int = 5,
    tokenizer: Tokenizer = "words",
    resume: bool = False,
    force: bool = False,
) -> Embeddings:
    """Train word vectors (GloVe) on text and return them; `talka embed` does the same.

    For other options build an `EmbedConfig` and an `Embed` job (`talka.jobs.embeddings`).

    Parameters
    ----------
    corpus
        Text in UTF-8: a file (plain, .gz, .zst), a folder, or several of them.
    out
        Folder for `vectors.txt`, `vectors.arrow` and `result.json`. It appears when all are
        complete; until then `OUT.unfinished` holds the work that `resume` continues.
    dim, epochs
        Length of a vector, and number of passes over all pairs of words.
    window
        Words on either side that count as neighbours of a word.
    min_count
        Words that occur less often get no vector.
    tokenizer
        `words`, `letters`, `whitespace`, or a function from a line to its words.
    resume, force
        Continue an unfinished run with the same options, or replace it and existing output.
    """
    paths = [corpus] if isinstance(corpus, (str, Path)) else corpus
    text = TextConfig(
        corpus=tuple(map(str, paths)),
        tokenizer=tokenizer,
        min_count=min_count,
        pairs=PairOptions(window=window),
    )
    config = EmbedConfig(text=text, dim=dim, epochs=epochs)
    execute(EmbedPlan(config, Path(out), resume=resume, force=force))
    return Embeddings.load(out)
