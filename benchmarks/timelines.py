"""Draw what each worker did in the last rounds of a training run, from its events, as an SVG.

    python -m benchmarks.timelines runs/2026-11-18T12-00-00-train --svg timeline.svg --rounds 4

The same timeline is on the page of `talka report`. The upper bars of a worker are its computing, the
lower ones its exchange: encoding, waiting for others, the network, decoding.
"""

import argparse
import math
import sys
from pathlib import Path
from xml.sax.saxutils import escape

from talka.events import read_run
from talka.report.rounds.section import COLORS
from talka.report.rounds.series import RoundSeries
from talka.report.rounds.spans import COMPUTING, spans_of
from talka.units import format_seconds

WIDTH, LABEL_WIDTH, RIGHT = 760, 76, 14
ROW_HEIGHT, BAR_HEIGHT, LEGEND_HEIGHT, AXIS_HEIGHT = 40, 14, 26, 24
MAX_TICKS = 6
INK, QUIET, LINE = "#1f2328", "#57606a", "#d0d7de"


def chart(series, *, title, max_rounds, max_workers=4):
    """Return the SVG of the last rounds in a series; None if it has none."""
    workers = series.workers[:max_workers]
    spans = spans_of(series.window(workers, max_rounds))
    if not spans:
        return None
    top = LEGEND_HEIGHT + (26 if title else 0)
    start_s = min(span.start_s for span in spans)
    end_s = max(span.end_s for span in spans)
    pixels_per_s = (WIDTH - LABEL_WIDTH - RIGHT) / (end_s - start_s)
    bottom = top + ROW_HEIGHT * len(workers)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + AXIS_HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="13" role="img">',
        f"<title>{escape(title or 'Timeline of the workers')}</title>",
        f'<rect width="{WIDTH}" height="{bottom + AXIS_HEIGHT}" fill="#ffffff"/>',
    ]
    if title:
        lines.append(f'<text x="8" y="20" font-weight="600" fill="{INK}">{escape(title)}</text>')
    lines += _legend(top - 10)
    lines += _axis(end_s - start_s, pixels_per_s, top, bottom)
    for place, worker in enumerate(workers):
        y = top + ROW_HEIGHT * place
        lines.append(
            f'<text x="{LABEL_WIDTH - 8}" y="{y + 22}" text-anchor="end" fill="{INK}">'
            f"{escape(worker)}</text>"
        )
        for span in spans:
            if span.worker == worker:
                x = LABEL_WIDTH + pixels_per_s * (span.start_s - start_s)
                width = max(0.3, pixels_per_s * (span.end_s - span.start_s))
                bar_y = y + (3 if span.work == COMPUTING else 3 + BAR_HEIGHT + 2)
                lines.append(
                    f'<rect x="{x:.1f}" y="{bar_y}" width="{width:.1f}" height="{BAR_HEIGHT}" '
                    f'fill="{COLORS[span.work]}"/>'
                )
    return "\n".join([*lines, "</svg>", ""])


def _legend(y):
    lines, x = [], LABEL_WIDTH
    for work, color in COLORS.items():
        lines.append(f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{color}"/>')
        lines.append(f'<text x="{x + 17}" y="{y}" fill="{QUIET}">{escape(work)}</text>')
        x += 40 + 7 * len(work)
    return lines


def _axis(seconds, pixels_per_s, top, bottom):
    lines = []
    tick_s = _round_number(seconds / MAX_TICKS)
    for tick in range(math.floor(seconds / tick_s) + 1):
        x = LABEL_WIDTH + pixels_per_s * tick * tick_s
        anchor = "end" if x > WIDTH - 30 else "middle"
        lines.append(f'<path d="M{x:.1f} {top}V{bottom}" stroke="{LINE}"/>')
        lines.append(
            f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="{anchor}" fill="{QUIET}">'
            f"{format_seconds(tick * tick_s)}</text>"
        )
    return lines


def _round_number(least):
    """Return the smallest of 1, 2 and 5 times a power of ten that is at least `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= least)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="run directory")
    parser.add_argument("--svg", type=Path, required=True, help="file to write")
    parser.add_argument("--rounds", type=int, default=6, help="number of rounds, at most 32")
    parser.add_argument("--title", default="", help="heading inside the image")
    args = parser.parse_args()
    svg = chart(read_run(args.run).fold(RoundSeries), title=args.title, max_rounds=args.rounds)
    if svg is None:
        sys.exit(f"{args.run} has no rounds that all workers have finished")
    args.svg.write_text(svg)


if __name__ == "__main__":
    main()
