"""The parser of all commands: argparse with short messages that show what to type.

Errors that argparse reports with a usage dump become a `UsageError`. Messages about unknown
commands, options and values suggest the nearest known one.
"""

import argparse
import itertools
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from talka.errors import TalkaError, UnknownNameError, did_you_mean

_ARGPARSE_MESSAGES = (
    (r"the following arguments are required: (.*)", r"missing: \1"),
    (r"argument (\S+): not allowed with argument (\S+)", r"\1 cannot be combined with \2"),
    (r"argument (\S+): ignored explicit argument (.*)", r"\1 takes no value, but got \2"),
    (r"ambiguous option: (\S+) could match (.*)", r"\1 is ambiguous: it could mean \2"),
    (r"argument (\S+): (.*)", r"\1: \2"),
)


class UsageError(TalkaError):
    """A command line that cannot be parsed.

    >>> print(UsageError("missing: --out.", "talka embed"))
    missing: --out. See `talka embed --help`.
    """

    exit_code = 2

    def __init__(self, problem: str, command: str) -> None:
        super().__init__(problem, command)
        self.problem, self.command = problem, command

    def __str__(self) -> str:
        return f"{self.problem} See `{self.command} --help`."


class CommandParser(argparse.ArgumentParser):
    """A parser that raises `UsageError`, and prints its help if no required argument is given."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", _HelpFormatter)
        super().__init__(**options)
        self.check_words: Callable[[Sequence[str]], None] | None = None
        """Function called with all words before they are parsed; raises if they are wrong."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        words = list(sys.argv[1:] if args is None else args)
        if not words and self._needs_arguments():
            self.print_help()
            self.exit()
        if self.check_words is not None:
            self.check_words(words)
        try:
            parsed, unknown = super().parse_known_args(words, namespace)
        except UsageError as error:
            misspelt = self._misspelt_options(words) if error.command == self.prog else []
            if not misspelt:
                raise
            raise UsageError(self._unknown(misspelt), self.prog) from None
        if unknown:
            raise UsageError(self._unknown(unknown), self.prog)
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        for pattern, replacement in _ARGPARSE_MESSAGES:
            if match := re.fullmatch(pattern, message, re.DOTALL):
                message = match.expand(replacement)
                break
        raise UsageError(f"{message}.", self.prog)

    def option_names(self) -> list[str]:
        """Return all options shown in the help."""
        shown = [action for action in self._actions if action.help != argparse.SUPPRESS]
        return [name for action in shown for name in action.option_strings]

    def commands(self) -> list["CommandParser"]:
        """Return the parsers of the subcommands."""
        groups = [
            action for action in self._actions if isinstance(action, argparse._SubParsersAction)
        ]
        return [parser for group in groups for parser in group.choices.values()]

    def takes_value(self, option: str) -> bool | None:
        """Return whether an option is followed by a value; None if there is no such option."""
        action = self._option_string_actions.get(option)
        return None if action is None else action.nargs != 0

    def _needs_arguments(self) -> bool:
        return any(action.required for action in self._actions)

    def _misspelt_options(self, words: Sequence[str]) -> list[str]:
        """Return options that do not exist: often the reason why another one seems missing."""
        before = itertools.takewhile(lambda word: word != "--", words)
        typed = [word.partition("=")[0] for word in before if word.startswith("--")]
        known = self._option_string_actions
        return [word for word in typed if not any(name.startswith(word) for name in known)]

    def _unknown(self, words: Sequence[str]) -> str:
        options = [word.partition("=")[0] for word in words if word.startswith("-")]
        if not options:
            several = "s" if len(words) > 1 else ""
            return f"unexpected argument{several}: {' '.join(words)}."
        hint = did_you_mean(options[0], self.option_names())
        return f"no option named {options[0]!r}.{hint}"

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        if isinstance(action, argparse._SubParsersAction):
            raise UnknownNameError(str(action.metavar).lower(), value, [*action.choices])
        problem = f"{_name_of(action)} is {value!r}, but must be {_listed(action.choices)}."
        raise UsageError(problem + did_you_mean(str(value), map(str, action.choices)), self.prog)

    def _match_argument(self, action: argparse.Action, arg_strings_pattern: str) -> int:
        try:
            return super()._match_argument(action, arg_strings_pattern)
        except argparse.ArgumentError:
            if not action.option_strings:
                raise
            wanted = action.metavar or " or ".join(action.choices or ()) or action.dest.upper()
            raise UsageError(f"{_name_of(action)} needs a value: {wanted}.", self.prog) from None


class _HelpFormatter(argparse.HelpFormatter):
    """Formatter that wraps paragraphs to the terminal width and keeps indented text unchanged."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = re.split(r"\n\s*\n", text.strip("\n"))
        return "\n\n".join(
            paragraph
            if "\n " in f"\n{paragraph}"
            else super(_HelpFormatter, self)._fill_text(paragraph, width, indent)
            for paragraph in paragraphs
        )


def _name_of(action: argparse.Action) -> str:
    return action.option_strings[0] if action.option_strings else str(action.metavar)


def _listed(names: Iterable[str]) -> str:
    """Join names with commas and a final "or".

    >>> _listed(["table", "json", "csv"])
    'table, json or csv'
    """
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last
