"""The HTML page: sections in order, one style sheet and plotly's script, with no external files."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from talka import __version__
from talka.errors import OutputError, output_error
from talka.events import RunRecord, read_run
from talka.files import write_whole
from talka.report.base import PageSection, ReportSection
from talka.report.markup import escaped
from talka.report.sections import SECTIONS
from talka.report.style import STYLE

# Makes the browser refuse every request, in case a script on the page attempts one.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; form-action 'none'; base-uri 'none'"
)


def write_report(run_dir: Path, out: Path | None = None) -> Path:
    """Write the page of a run, which may still be running, and return its path.

    The page is one file (about 1.2 MB, most of it plotly's script) that needs no network. Without
    `out` it is `report.html` in the run's own folder.
    """
    return write_page(read_run(run_dir), out)


def write_page(record: RunRecord, out: Path | None = None) -> Path:
    """Write the page of a run that was read already, and return its path."""
    path = record.dir / "report.html" if out is None else out
    try:
        _check_target(path)
        write_whole(path, page(record))
    except OSError as error:
        raise output_error(path, error, "Choose another place with --out.") from error
    return path


def page(record: RunRecord, *, sections: Sequence[PageSection] = SECTIONS) -> str:
    """Return the whole page as HTML."""
    pillars = {"", *record.pillars}
    made = [section.make(record) for section in sections if section.pillar in pillars]
    shown = [section for section in made if section is not None]
    body = "".join(_section(section, is_first=index == 0) for index, section in enumerate(shown))
    script = f"<script>{_plotly_script()}</script>" if "Plotly.newPlot(" in body else ""
    folder = escaped(record.dir.resolve())
    title = shown[0].title if shown else record.dir.name
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escaped(title)} · {record.status}</title><style>{STYLE}</style>{script}</head>\n"
        f"<body>{body}<footer>talka {escaped(__version__)} · {folder}</footer></body></html>\n"
    )


def _section(section: ReportSection, *, is_first: bool) -> str:
    level = "h1" if is_first else "h2"
    return f"<section><{level}>{escaped(section.title)}</{level}>{section.body}</section>\n"


def _plotly_script() -> str:
    """Return the bundle `plotly.js-basic-dist-min` of npm, which has bars and curves."""
    return (files("talka.report") / "scripts" / "plotly-basic.min.js").read_text(encoding="utf-8")


def _check_target(path: Path) -> None:
    """Raise OutputError unless `path` is or can become an ordinary file.

    The page is written by a rename, which would replace a device such as /dev/null.
    """
    if path.is_dir():
        raise OutputError(str(path), "is a folder", "Give the name of a file, such as report.html.")
    if path.exists() and not path.is_file():
        raise OutputError(str(path), "is not an ordinary file", "Give another name.")
    if not path.parent.is_dir():
        raise OutputError(str(path), "is not in an existing folder", f"Make {path.parent} first.")
