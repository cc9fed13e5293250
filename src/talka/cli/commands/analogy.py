"""What is to C as B is to A: the words nearest to B - A + C.

`talka analogy DIR man king woman` asks for king - man + woman.
"""

import argparse

from talka.cli.numbers import Number, count
from talka.cli.options import SHOWN, add_format


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dir", metavar="DIR", help="what `talka embed --out DIR` wrote")
    parser.add_argument("a", metavar="A")
    parser.add_argument("b", metavar="B")
    parser.add_argument("c", metavar="C")
    parser.add_argument("-k", action=Number, parse=count(), default="5", help=f"answers {SHOWN}")
    add_format(parser)


def run(args: argparse.Namespace) -> int:
    from talka.cli.tables import print_json, print_table
    from talka.cli.words import known_word
    from talka.jobs.embeddings.vectors import Embeddings

    embeddings = Embeddings.load(args.dir)
    a, b, c = (known_word(embeddings, word, command="analogy") for word in (args.a, args.b, args.c))
    found = embeddings.analogy(a, b, c, args.k)
    if args.format == "json":
        print_json([near._asdict() for near in found])
    else:
        rows = [{"word": near.word, "similarity": f"{near.similarity:.3f}"} for near in found]
        print_table(rows, right=("similarity",))
    return 0
