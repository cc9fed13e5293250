"""The words whose vectors point most nearly the same way."""

import argparse

from talka.cli.numbers import Number, count

HELP = "nearest neighbours of words in embeddings"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dir", metavar="DIR", help="what `talka embed --out DIR` wrote")
    parser.add_argument("words", metavar="WORD", nargs="+")
    parser.add_argument(
        "-k",
        action=Number,
        parse=count(),
        default="10",
        help="neighbours of each (default: %(default)s)",
    )
    parser.add_argument(
        "--format", choices=("table", "json"), default="table", help="default: %(default)s"
    )


def run(args: argparse.Namespace) -> int:
    from talka.cli.tables import print_json, print_table
    from talka.jobs.embeddings.vectors import Embeddings

    embeddings = Embeddings.load(args.dir)
    found = {word: embeddings.similar(word, args.k) for word in args.words}
    if args.format == "json":
        print_json({word: [near._asdict() for near in nearest] for word, nearest in found.items()})
        return 0
    for word, nearest in found.items():
        rows = [{"word": near.word, "cosine": f"{near.similarity:.3f}"} for near in nearest]
        print_table(rows, title=word, right=("cosine",))
    return 0
