"""What is to C as B is to A: the words nearest to B - A + C.

`talka analogy DIR man king woman` asks for king - man + woman.
"""

import argparse

from talka.cli.numbers import Number, count

HELP = "a is to b as c is to what, by embeddings"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dir", metavar="DIR", help="what `talka embed --out DIR` wrote")
    parser.add_argument("a", metavar="A")
    parser.add_argument("b", metavar="B")
    parser.add_argument("c", metavar="C")
    parser.add_argument(
        "-k", action=Number, parse=count(), default="5", help="answers (default: %(default)s)"
    )
    parser.add_argument(
        "--format", choices=("table", "json"), default="table", help="default: %(default)s"
    )


def run(args: argparse.Namespace) -> int:
    from talka.cli.tables import print_json, print_table
    from talka.jobs.embeddings.vectors import Embeddings

    found = Embeddings.load(args.dir).analogy(args.a, args.b, args.c, args.k)
    if args.format == "json":
        print_json([near._asdict() for near in found])
    else:
        rows = [{"word": near.word, "cosine": f"{near.similarity:.3f}"} for near in found]
        print_table(rows, right=("cosine",))
    return 0
