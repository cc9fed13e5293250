"""Answer "A is to B as C is to what?": print the words nearest to B - A + C.

`talka analogy DIR man king woman` computes king - man + woman.
"""

import argparse

from talka.cli.numbers import Number, count
from talka.cli.options import SHOWN, add_format


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dir", metavar="DIR", help="output folder of `talka embed`")
    parser.add_argument("a", metavar="A", help="first word of the known pair")
    parser.add_argument("b", metavar="B", help="second word of the known pair")
    parser.add_argument("c", metavar="C", help="first word of the pair to complete")
    parser.add_argument("-k", action=Number, parse=count(), default="5", metavar="N",
                        help=f"number of answers {SHOWN}")  # fmt: skip
    add_format(parser)


def run(args: argparse.Namespace) -> int:
    from talka.cli.commands.similar import known_word
    from talka.cli.tables import print_json, print_table
    from talka.jobs.embeddings.vectors import Embeddings

    embeddings = Embeddings.load(args.dir)
    a, b, c = (known_word(embeddings, word, command="analogy") for word in (args.a, args.b, args.c))
    answers = embeddings.analogy(a, b, c, args.k)
    if args.format == "json":
        print_json([near._asdict() for near in answers])
    else:
        rows = [{"word": near.word, "similarity": f"{near.similarity:.3f}"} for near in answers]
        print_table(rows, right=("similarity",))
    return 0
