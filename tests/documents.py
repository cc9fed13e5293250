"""Code blocks of a document, and how they are run: `python -m tests.documents README.md`.

Blocks run from top to bottom in one empty folder that has links to the repository's `docs` and `examples`.
Python blocks of a page share their names; in README.md each stands alone. A console block has
commands behind `$ `, and what they print. A `text` block right behind a Python block is what that
prints. Numbers may differ, `...` stands for anything. A comment `<!-- two machines -->` before a
block has its commands run on two hosts of a lab, `first$` on one and `second$` on the other. A comment
`<!-- not run here: TEST ... -->` names the test that does what the block shows.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LINKS = ("docs", "examples")
_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*) -->\n)?^```(?P<kind>python|console|text)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_NUMBER = re.compile(
    r"[+-]?\d[\d,.]*(?:e[+-]?\d+)?(?:\s?(?:ns|us|µs|ms|s|min|h|[kMGT]?B|[kMGT]|x|%)\b)?"
)


class Block(NamedTuple):
    kind: str
    text: str
    mark: str | None
    printed: str | None
    """The `text` block right behind a Python block."""
    line: int


class Command(NamedTuple):
    prompt: str
    """Empty, or the name of a machine."""
    text: str
    printed: str


def blocks_of(document: str) -> list[Block]:
    found = list(_BLOCK.finditer(document))
    blocks = []
    for number, match in enumerate(found):
        after = found[number + 1] if number + 1 < len(found) else None
        is_output = (
            after is not None
            and after["kind"] == "text"
            and document[match.end() : after.start()].strip() == ""
        )
        if match["kind"] != "text":
            line = document.count("\n", 0, match.start()) + 1
            printed = after["text"] if is_output and match["kind"] == "python" else None
            blocks.append(Block(match["kind"], match["text"], match["mark"], printed, line))
    return blocks


def commands_of(text: str) -> list[Command]:
    r"""Commands of a console block, each with what it prints.

    >>> commands_of("$ ls \\\n    -l\nfile\nfirst$ date\n")
    [Command(prompt='', text='ls \\\n    -l', printed='file\n'), Command(prompt='first', text='date', printed='')]
    """
    commands: list[Command] = []
    lines = iter(text.splitlines())
    for line in lines:
        prompt = re.match(r"(\w*)\$ +(.*)", line)
        if prompt is None:
            last = commands.pop()  # output, of the command before
            commands.append(last._replace(printed=f"{last.printed}{line}\n"))
            continue
        command = prompt[2]
        while command.endswith("\\"):
            command += "\n" + next(lines)
        commands.append(Command(prompt[1], command, ""))
    return commands


def is_like(shown: str, printed: str) -> bool:
    """Whether a text is what was shown, but for numbers, spaces and `...`.

    >>> is_like("a  1.5 ms\\n...\\nend", "a 20 s\\nb\\nc\\nend\\n"), is_like("a 1", "b 1")
    (True, False)
    """
    pieces = [_words(piece) for piece in re.split(r"^\.\.\.\n?", f"{shown}\n", flags=re.MULTILINE)]
    pattern = r"(?:.* )?".join(re.escape(piece) for piece in pieces)
    return re.fullmatch(pattern, _words(printed)) is not None


def _words(text: str) -> str:
    return "".join(f"{word} " for word in _NUMBER.sub("#", text).split())


class Failed(Exception):
    """A block did not run, or printed something else."""


def run_document(path: Path) -> int:
    """Run all blocks of a document; returns how many there are."""
    blocks = blocks_of(path.read_text())
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name in LINKS:
            Path(name).symlink_to(ROOT / name)
        names: dict[str, object] = {"__name__": "__main__"}
        for block in blocks:
            if block.mark is not None and block.mark.startswith("not run here"):
                continue
            try:
                if block.kind == "python":
                    if path.name == "README.md":
                        names = {"__name__": "__main__"}
                    _run_python(block, names)
                elif block.mark == "two machines":
                    _run_on_two_hosts(block)
                else:
                    _run_console(block)
            except Failed as problem:
                raise Failed(f"{path.name}, line {block.line}: {problem}") from None
    return len(blocks)


def _run_python(block: Block, names: dict[str, object]) -> None:
    source = Path(f"block_{block.line}.py").resolve()  # compiled programs ask for their source
    source.write_text(block.text)
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(block.text, str(source), "exec"), names)
    _compare(block.printed, output.getvalue(), "the block")


def _run_console(block: Block) -> None:
    for command in commands_of(block.text):
        if command.prompt:
            raise Failed(
                f"`{command.prompt}$` needs the mark `<!-- two machines -->` before its block"
            )
        done = subprocess.run(
            ["bash", "-c", command.text],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=_environment(),
            check=False,
        )
        if done.returncode != 0:
            raise Failed(f"`{command.text}` ended with {done.returncode}:\n{done.stdout}")
        _compare(command.printed or None, done.stdout, f"`{command.text}`")


def _run_on_two_hosts(block: Block) -> None:
    """Run `first$` commands on host 0 and `second$` commands on host 1 of a lab, at the same time."""
    from talka.lab import LabConfig, LabRunOptions, run_lab

    commands = commands_of(block.text)
    scripts = {
        host: " && ".join(command.text for command in commands if command.prompt in (name, ""))
        for host, name in enumerate(("first", "second"))
    }
    cases = "\n".join(f"{host}) {script};;" for host, script in scripts.items())
    text = f"case $GROUP_RANK in\n{cases}\nesac".replace("192.168.1.10", "10.0.0.1")
    options = LabRunOptions(timeout_s=250, environment=_environment())
    config = LabConfig(num_hosts=2, rate_bits_per_s=1e9)
    run_lab(config, ["bash", "-c", text], options)


def _environment() -> dict[str, str]:
    folder = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "COLUMNS": "80"}


def _compare(shown: str | None, printed: str, what: str) -> None:
    if shown is not None and not is_like(shown, printed):
        raise Failed(f"{what} printed\n{printed}\nbut the document shows\n{shown}")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(shlex.quote(argument), run_document(Path(argument)), "blocks")
