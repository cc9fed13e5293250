"""Draw the bar chart of the README from the results of `benchmarks.slow_network`.

    python -m benchmarks.chart benchmarks/results/slow_network_2xcpu_202611.json docs/slow_network.svg

Bars show seconds per step, from 0; labels also show the speed relative to plain DDP.
"""

import argparse
import json
from pathlib import Path
from xml.sax.saxutils import escape

TABLE = "mlp, 2,913,290 parameters, 100 Mbit/s"
TITLE = "Time of one training step: 2.9 M parameters, 4 hosts, links of 100 Mbit/s"
BARS = {  # mode in the results: label
    "ddp": "PyTorch DDP",
    "ddp fp16 hook": "DDP, fp16 hook",
    "onebit+ef": "talka, onebit+ef",
    "topk:0.01+ef": "talka, topk:0.01+ef",
    "powersgd:4": "talka, powersgd:4",
    "threshold:auto+ef": "talka, threshold:auto+ef",
    "no communication": "computing alone",
}
WIDTH, LABEL_WIDTH, BAR_WIDTH = 760, 190, 430
ROW_HEIGHT, BAR_HEIGHT, TOP = 30, 18, 44
PEER, OURS, LIMIT = "#9aa5b1", "#1f6feb", "#d0d7de"


def chart(results):
    """Return the SVG for the published JSON of the benchmark."""
    rows = {row["mode"]: row for row in results["tables"][TABLE]}
    longest_s = max(float(rows[mode]["s a step"]) for mode in BARS)
    height = TOP + ROW_HEIGHT * len(BARS) + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="system-ui, sans-serif" font-size="14" role="img">',
        f"<title>{escape(TITLE)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="8" y="24" font-weight="600" fill="#1f2328">{escape(TITLE)}</text>',
    ]
    for number, (mode, label) in enumerate(BARS.items()):
        lines += _bar(rows[mode], label, longest_s, TOP + ROW_HEIGHT * number)
    return "\n".join([*lines, "</svg>", ""])


def _bar(row, label, longest_s, top):
    seconds = float(row["s a step"])
    width = max(1.0, BAR_WIDTH * seconds / longest_s)
    fill = OURS if label.startswith("talka") else LIMIT if label == "computing alone" else PEER
    text_y = top + BAR_HEIGHT - 4
    speed = "" if row["mode"] in ("ddp", "no communication") else f", {float(row['x DDP']):.1f}x"
    return [
        f'<text x="{LABEL_WIDTH - 8}" y="{text_y}" text-anchor="end" fill="#1f2328">'
        f"{escape(label)}</text>",
        f'<rect x="{LABEL_WIDTH}" y="{top}" width="{width:.1f}" height="{BAR_HEIGHT}" '
        f'rx="2" fill="{fill}"/>',
        f'<text x="{LABEL_WIDTH + width + 8:.1f}" y="{text_y}" fill="#57606a">'
        f"{1000 * seconds:,.0f} ms{speed}</text>",
    ]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, help="JSON of benchmarks.slow_network --preset full")
    parser.add_argument("out", type=Path, help="SVG to write")
    args = parser.parse_args()
    args.out.write_text(chart(json.loads(args.results.read_text())))


if __name__ == "__main__":
    main()
