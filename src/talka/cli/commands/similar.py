"""Print the nearest neighbours of words, by the cosine similarity of their vectors."""

import argparse
import sys
from typing import TYPE_CHECKING

from talka.cli.numbers import Number, count
from talka.cli.options import SHOWN, add_format

if TYPE_CHECKING:
    from talka.jobs.embeddings.vectors import Embeddings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dir", metavar="DIR", help="output folder of `talka embed`")
    parser.add_argument("words", metavar="WORD", nargs="+", help="a word of the vocabulary")
    parser.add_argument(
        "-k",
        action=Number,
        parse=count(),
        default="10",
        metavar="N",
        help=f"number of neighbours per word {SHOWN}",
    )
    add_format(parser)


def run(args: argparse.Namespace) -> int:
    from talka.cli.tables import print_json, print_table
    from talka.jobs.embeddings.vectors import Embeddings

    embeddings = Embeddings.load(args.dir)
    known = {word: known_word(embeddings, word, command="similar") for word in args.words}
    neighbours = {word: embeddings.similar(known[word], args.k) for word in args.words}
    if args.format == "json":
        print_json(
            {
                known[word]: [near._asdict() for near in nearest]
                for word, nearest in neighbours.items()
            }
        )
        return 0
    for word, nearest in neighbours.items():
        rows = [{"word": near.word, "similarity": f"{near.similarity:.3f}"} for near in nearest]
        print_table(rows, title=_title(word, known[word]), right=("similarity",))
    return 0


def known_word(embeddings: "Embeddings", word: str, *, command: str) -> str:
    """Return the word, or its lower-case form if the vocabulary is all lower case.

    The substitution is reported on standard error. An unknown word is returned unchanged; looking
    it up raises the error.
    """
    lower = word.lower()
    if word in embeddings or lower not in embeddings or not embeddings.is_lower_cased:
        return word
    print(f"talka {command}: using {lower!r} for {word!r}: all words of these vectors are "
          "lower case", file=sys.stderr)  # fmt: skip
    return lower


def _title(typed: str, known: str) -> str:
    return known if known == typed else f"{known} (for {typed})"
