"""The words whose vectors point most nearly the same way."""

import argparse

from talka.cli.numbers import Number, count
from talka.cli.options import SHOWN, add_format


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dir", metavar="DIR", help="what `talka embed --out DIR` wrote")
    parser.add_argument("words", metavar="WORD", nargs="+")
    parser.add_argument(
        "-k",
        action=Number,
        parse=count(),
        default="10",
        help=f"neighbours of each {SHOWN}",
    )
    add_format(parser)


def run(args: argparse.Namespace) -> int:
    from talka.cli.tables import print_json, print_table
    from talka.cli.words import known_word
    from talka.jobs.embeddings.vectors import Embeddings

    embeddings = Embeddings.load(args.dir)
    known = {word: known_word(embeddings, word, command="similar") for word in args.words}
    found = {word: embeddings.similar(known[word], args.k) for word in args.words}
    if args.format == "json":
        print_json(
            {known[word]: [near._asdict() for near in nearest] for word, nearest in found.items()}
        )
        return 0
    for word, nearest in found.items():
        rows = [{"word": near.word, "similarity": f"{near.similarity:.3f}"} for near in nearest]
        print_table(rows, title=_title(word, known[word]), right=("similarity",))
    return 0


def _title(typed: str, known: str) -> str:
    return known if known == typed else f"{known} (for {typed})"
