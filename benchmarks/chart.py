"""Draw the README's bar chart from the JSON of a benchmark.

    python -m benchmarks.slow_network --preset full --json benchmarks/results/slow_network.json
    python -m benchmarks.chart benchmarks/results/slow_network.json docs/images/slow_network.svg

One bar per mode of training, as long as its step takes; the fastest is at the bottom.
"""

import argparse
import json
from html import escape
from pathlib import Path

TABLE = "100 Mbit/s"
MODES = {
    "ddp": "PyTorch DDP",
    "ddp fp16 hook": "PyTorch DDP, fp16 hook",
    "uniform:3/max/512+ef": "talka uniform:3/max/512+ef",
    "onebit+ef": "talka onebit+ef",
    "topk:0.01+ef": "talka topk:0.01+ef",
    "powersgd:4": "talka powersgd:4",
}
WIDTH, LABELS, BAR, GAP, TOP = 760, 230, 22, 10, 56
OURS, THEIRS = "#2f7d5b", "#9aa5ab"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("json", type=Path)
    parser.add_argument("svg", type=Path)
    args = parser.parse_args()
    args.svg.write_text(chart(json.loads(args.json.read_text())))


def chart(published):
    """The text of the SVG file."""
    title, rows = next(
        (title, rows) for title, rows in published["tables"].items() if title.endswith(TABLE)
    )
    seconds = {row["mode"]: float(row["s a step"]) for row in rows if row["mode"] in MODES}
    shown = sorted(seconds, key=seconds.get, reverse=True)
    longest, height = max(seconds.values()), TOP + len(shown) * (BAR + GAP) + 8
    where = published["environment"]
    note = f"{title}; four hosts of a lab on {where['cores']} cores, {where['time'][:10]}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="system-ui, sans-serif" font-size="14">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        '<text x="12" y="22" font-weight="600">Seconds per training step: shorter is better</text>',
        f'<text x="12" y="42" font-size="12" fill="#5c666b">{escape(note)}</text>',
    ]
    for place, mode in enumerate(shown):
        lines += bar(mode, seconds, TOP + place * (BAR + GAP), longest)
    return "\n".join([*lines, "</svg>", ""])


def bar(mode, seconds, y, longest):
    length = (WIDTH - LABELS - 130) * seconds[mode] / longest
    colour = THEIRS if mode.startswith("ddp") else OURS
    times = seconds["ddp"] / seconds[mode]
    figure = f"{seconds[mode]:.3f} s" + ("" if mode == "ddp" else f" ({times:.1f}x)")
    middle = y + BAR - 6
    return [
        f'<text x="{LABELS - 8}" y="{middle}" text-anchor="end">{escape(MODES[mode])}</text>',
        f'<rect x="{LABELS}" y="{y}" width="{length:.1f}" height="{BAR}" rx="2" fill="{colour}"/>',
        f'<text x="{LABELS + length + 8:.1f}" y="{middle}">{figure}</text>',
    ]


if __name__ == "__main__":
    main()
