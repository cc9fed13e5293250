"""List docstrings, comments, messages and names that do not read like plain technical English.

    python tools/plain_english.py                    totals by folder of src/talka
    python tools/plain_english.py src/talka/graph    every place in a folder or file, with its rule
    python tools/plain_english.py --check            places in changed files; fails beyond the budget

A row is a place to look at, not a verdict: a word may be right where it is. The budget is 1.5 places
per 1,000 lines of src/talka and 3 per document. For comparison: rich has 0.1 places per 1,000 lines,
networkx 0.5, dask.distributed 0.6, hypothesis 1.5.
"""

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src/talka")
MAX_PER_1000_LINES = 1.5
MAX_PER_DOCUMENT = 3

FRAGMENT = re.compile(
    r"^(And|Of|That|Which|Who|Whom|Whose|Whoever|By|With|Without|In|Into|On|At|From|For|To|As|So|Or|"
    r"But|Where|When|How|What|Whether|Nothing|Nobody|Everybody|Its|Their|Those|Such)\b"
    r"(?!.*\b(is|are|was|were|has|have|return|returns|raise|raises|must|can|may)\b)"
)
COMPARED = "longer|more|different|better|worse|less|faster|slower|need|way|such"
PATTERNS = {
    rule: re.compile(pattern, re.IGNORECASE)
    for rule, pattern in {
        "speech": r"\b(says?|said|saying|speaks?|spoken|tells?|told|hears?|heard|whispers?)\b",
        "person": r"\b(whoever|nobody|everybody|somebody|anybody)\b",
        "is no": rf"\b(is|are|was|were) no\b(?! ({COMPARED}))",
        "else": r"(?<!or )\belse\b"
        r"(?=[.,;:)]|$| (is|are|was|were|would|they|it|nothing|a|the|this|of)\b)",
        "so many": r"\bso (many|few|much)\b(?! (that|as))",
        "goes on": r"\b(go|goes|going|went) on\b",
        "look": r"\b(looks?) (at|into) (it )?again\b",
        "for ever": r"\b(for ever|whatsoever|lest|whence|thereof|beforehand)\b",
        "as it says": r"\b(as (it|they) (is|are) said|what was said|what is said|of its own)\b",
    }.items()
}
NAMES = {"did", "hears", "nothing", "said", "say", "speak", "told", "untold", "whoever"}


class Place(NamedTuple):
    """A line that may read oddly."""

    line: int
    rule: str
    text: str


def places_in(path: Path) -> list[Place]:
    """Return the places of a Python file or a Markdown document, in order."""
    source = path.read_text()
    if path.suffix == ".md":
        return _places_in_document(source)
    tree = ast.parse(source)
    texts = dict(_docstrings(tree))
    found = {
        *_in_docstrings(texts),
        *_in_comments(source),
        *_in_messages(tree, set(texts.values())),
        *_in_names(tree),
    }
    return sorted(found)


def _docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of every docstring, those of attributes included."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else []:
            value = getattr(statement, "value", None)
            is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
            if isinstance(statement, ast.Expr) and is_text:
                yield statement.lineno, value.value


def _in_docstrings(texts: dict[int, str]) -> Iterator[Place]:
    for line, text in texts.items():
        first = text.strip().partition("\n")[0]
        if FRAGMENT.match(first):
            yield Place(line, "fragment", first)
        for rule in _broken(_prose(text)):
            lines = _prose(text).splitlines()
            shown = next((row for row in lines if PATTERNS[rule].search(row)), first)
            yield Place(line, rule, shown.strip())


def _in_comments(source: str) -> Iterator[Place]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            for rule in _broken(_prose(token.string)):
                yield Place(token.start[0], rule, token.string)


def _in_messages(tree: ast.AST, docstrings: set[str]) -> Iterator[Place]:
    """Yield places in other strings of more than a few words: errors, warnings, help."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if node.value not in docstrings and node.value.count(" ") > 3:
            for rule in _broken(_prose(node.value)):
                yield Place(node.lineno, f"message: {rule}", node.value.strip())


def _in_names(tree: ast.AST) -> Iterator[Place]:
    for node in ast.walk(tree):
        is_stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        name = node.id if is_stored else node.arg if isinstance(node, ast.arg) else None
        if name in NAMES:
            yield Place(node.lineno, "name", name)


def _places_in_document(source: str) -> list[Place]:
    """Return the places in the prose of a document; blocks of code do not count."""
    found, in_code = [], False
    for number, line in enumerate(source.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code:
            found += [Place(number, rule, line.strip()) for rule in _broken(_prose(line))]
    return found


def _prose(text: str) -> str:
    """Drop code in backticks, indented blocks and doctests: names are checked by themselves."""
    lines = [line for line in text.splitlines() if not line.startswith("        ")]
    return re.sub(r"`[^`]*`", "`x`", "\n".join(line for line in lines if ">>>" not in line))


def _broken(prose: str) -> list[str]:
    return [rule for rule, pattern in PATTERNS.items() if pattern.search(prose)]


def texts_below(path: Path) -> list[Path]:
    """Return a file itself, or the Python files and documents below a folder."""
    if path.is_file():
        return [path]
    return sorted(file for file in path.rglob("*") if file.suffix in (".py", ".md"))


def show_totals() -> None:
    """Print the places per 1,000 lines of each folder of the package."""
    places: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for path in texts_below(ROOT / PACKAGE):
        folder = path.relative_to(ROOT / PACKAGE).parts[0]
        lines[folder] += len(path.read_text().splitlines())
        places[folder] += len(places_in(path))
    for folder, number in places.most_common():
        rate = 1000 * number / lines[folder]
        print(f"{folder:16} {number:5} places, {rate:5.1f} per 1,000 lines")
    rate = 1000 * places.total() / lines.total()
    print(f"{places.total()} places in {lines.total()} lines, {rate:.2f} per 1,000 lines")


def show_places(paths: list[Path]) -> None:
    for path in paths:
        for place in places_in(path):
            print(f"{path}:{place.line}: {place.rule}: {place.text[:100]}")


def changed_files() -> list[Path]:
    """Return files that differ from HEAD; in a clean tree, those of the last commit."""
    listed = _git("diff", "--name-only", "HEAD") or _git("diff", "--name-only", "HEAD~1", "HEAD")
    paths = [ROOT / name for name in listed]
    return [path for path in paths if path.suffix in (".py", ".md") and path.is_file()]


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.splitlines()


def is_watched(path: Path) -> bool:
    """Return whether a file counts: the package and the documents, not tests or results."""
    name = path.relative_to(ROOT)
    in_package = name.is_relative_to(PACKAGE)
    return in_package or (name.suffix == ".md" and not name.is_relative_to("benchmarks"))


def check() -> int:
    """List places in changed files; return 1 if the package or a document is beyond its budget."""
    show_places([path for path in changed_files() if is_watched(path)])
    files = texts_below(ROOT / PACKAGE)
    num_lines = sum(len(path.read_text().splitlines()) for path in files)
    rate = 1000 * sum(len(places_in(path)) for path in files) / num_lines
    problems = []
    if rate > MAX_PER_1000_LINES:
        problems.append(f"{PACKAGE} has {rate:.2f} places per 1,000 lines")
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        if (number := len(places_in(path))) > MAX_PER_DOCUMENT:
            problems.append(f"{path.relative_to(ROOT)} has {number} places")
    for problem in problems:
        print(f"plain English: {problem}; `python tools/plain_english.py PATH` lists them")
    if not problems:
        print(f"plain English: {rate:.2f} places per 1,000 lines")
    return 1 if problems else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", nargs="*", type=Path, help="folders or files to list")
    parser.add_argument("--check", action="store_true", help="check the budget, as `make check`")
    args = parser.parse_args()
    if args.check:
        return check()
    if args.path:
        show_places([file for path in args.path for file in texts_below(path)])
    else:
        show_totals()
    return 0


if __name__ == "__main__":
    sys.exit(main())
