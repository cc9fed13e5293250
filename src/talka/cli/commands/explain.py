"""Predict what something would cost in bytes and seconds, without running it."""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from talka.cli.commands import explain_collectives, explain_train

    topics = parser.add_subparsers(dest="topic", metavar="TOPIC", required=True)
    for name, module in {"collectives": explain_collectives, "train": explain_train}.items():
        topic = topics.add_parser(name, help=module.HELP, description=module.__doc__)
        module.add_arguments(topic)
        topic.set_defaults(run=module.run)


def run(args: argparse.Namespace) -> int:
    raise AssertionError("every topic sets its own run")
