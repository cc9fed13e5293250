"""Words as they are typed, and as the vocabulary has them."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from talka.jobs.embeddings.vectors import Embeddings


def known_word(embeddings: "Embeddings", word: str, *, command: str) -> str:
    """The word itself, or its lower-case form if all words of these vectors are lower-cased.

    Standard error says so. A word that is not known either way is left for the vectors to refuse.
    """
    lower = word.lower()
    if word in embeddings or lower not in embeddings or not embeddings.is_lower_cased:
        return word
    print(f"talka {command}: looked up {lower!r} for {word!r}: all words of these vectors are "
          "lower-cased", file=sys.stderr)  # fmt: skip
    return lower
