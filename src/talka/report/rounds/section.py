"""The section of rounds: who waited for whom, bytes, staleness, and a timeline of the last rounds."""

from collections.abc import Sequence
from statistics import fmean
from typing import Final

from talka.events import RunRecord
from talka.report.base import PageSection, ReportSection
from talka.report.markup import Column, escaped, note, table
from talka.report.plotting.figure import Figure
from talka.report.plotting.plots import (
    NEUTRAL,
    PALETTE,
    horizontal_bars,
    label,
    row_labels,
    seconds_axis,
    step_plot,
)
from talka.report.plotting.thinning import thinned
from talka.report.rounds.series import RoundKey, RoundSeries, TrainingRound, WorkerRound
from talka.report.rounds.spans import COMPUTING, WORKS, WorkSpan, spans_of
from talka.units import format_bytes, format_seconds

MAX_DRAWN: Final = 8
"""Workers in the timeline."""
WINDOW: Final = 8
"""Rounds in the timeline."""
COLORS: Final = dict(zip(WORKS, (*PALETTE[:2], NEUTRAL, *PALETTE[2:4]), strict=True))
"""Color of each kind of work."""
_MAX_ROWS: Final = 100
_COLUMNS: Final = (
    Column("worker"),
    *(Column(work, "number") for work in WORKS),
    Column("others waited for it", "number"),
    Column("sent", "number"),
)


def rounds_section(record: RunRecord) -> ReportSection | None:
    """Build the section of rounds; None for a run without rounds and steps."""
    series = record.fold(RoundSeries)
    if not series.totals:
        return None
    rounds = series.rounds()
    timed = [each for each in rounds if each.key.number > 1] or rounds
    body = f"<p>{escaped(_in_words(series, timed))}</p>"
    if timed:
        body += note(_explanation(series, timed)) + _workers_table(series, timed)
    return ReportSection(
        "Rounds", body + _timeline(series, timed) + _waits_plot(series.workers, timed)
    )


ROUNDS = PageSection(rounds_section, (RoundSeries,), pillar="train")


def _in_words(series: RoundSeries, timed: Sequence[TrainingRound]) -> str:
    totals = series.totals.values()
    sent_bytes = sum(total.sent_bytes for total in totals)
    num_parts = sum(total.num_rounds for total in totals)
    kinds = " and ".join(
        f"{count:,} {_plural('round', count)} of {rhythm}"
        for rhythm, count in series.num_rounds.items()
    )
    text = (
        f"{len(totals)} {_plural('worker', len(totals))} had {kinds}, with "
        f"{_range({done.num_steps for done in _parts(timed)}, 'step')} each, and sent "
        f"{format_bytes(sent_bytes)} in all, {format_bytes(sent_bytes / num_parts)} per worker and "
        "round."
    )
    staleness = {done.staleness for done in _parts(timed)} - {0}
    if staleness:
        text += f" Averages were applied {_range(staleness, 'step')} late."
    return text + _awaited_in_words(timed)


def _parts(rounds: Sequence[TrainingRound]) -> list[WorkerRound]:
    return [done for each in rounds for done in each.workers.values()]


def _awaited_in_words(timed: Sequence[TrainingRound]) -> str:
    shared = [each for each in timed if each.awaited is not None]
    if not shared:
        return ""
    network_s = fmean(each.network_s for each in shared)
    others_s = fmean(each.others_s(worker) for each in shared for worker in each.workers)
    counts = _awaited_counts(shared)
    most = max(counts, key=lambda worker: len(counts[worker]))
    return (
        f" In a round, a worker waited {format_seconds(network_s)} for the network and "
        f"{format_seconds(others_s)} for others, most often for {most} "
        f"({len(counts[most]) / len(shared):.0%} of the rounds)."
    )


def _awaited_counts(rounds: Sequence[TrainingRound]) -> dict[str, list[TrainingRound]]:
    """Return the rounds in which the others waited for each worker."""
    counts: dict[str, list[TrainingRound]] = {}
    for each in rounds:
        if each.awaited is not None:
            counts.setdefault(each.awaited, []).append(each)
    return counts


def _range(values: set[int], unit: str) -> str:
    least, most = min(values, default=0), max(values, default=0)
    if least == most:
        return f"{most:,} {_plural(unit, most)}"
    return f"{least:,} to {most:,} {_plural(unit, most)}"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def _explanation(series: RoundSeries, timed: Sequence[TrainingRound]) -> str:
    text = (
        "Mean seconds of a round. The worker that waits least in a round is the one that the others "
        "wait for: its wait is the network."
    )
    if any(each.key.number == 1 for each in series.rounds()) and timed[0].key.number > 1:
        text += " Without first rounds, which include the start."
    if series.kept_every > 1:
        text += f" From every {series.kept_every}th round; bytes are those of all."
    return text


def _workers_table(series: RoundSeries, timed: Sequence[TrainingRound]) -> str:
    awaited = _awaited_counts(timed)
    rows = [_row(series, timed, worker, awaited) for worker in series.workers[:_MAX_ROWS]]
    cut = ""
    if len(rows) < len(series.workers):
        cut = note(f"The first {len(rows)} of {len(series.workers)} workers.")
    return table(_COLUMNS, rows) + cut


def _row(
    series: RoundSeries,
    timed: Sequence[TrainingRound],
    worker: str,
    awaited: dict[str, list[TrainingRound]],
) -> list[str]:
    own = [each for each in timed if worker in each.workers]
    name = f"<code>{escaped(worker)}</code>"
    sent = format_bytes(series.totals[worker].sent_bytes)
    if not own:
        return [name, *[""] * (len(_COLUMNS) - 2), sent]
    done = [each.workers[worker] for each in own]
    others_s = fmean(each.others_s(worker) for each in own)
    means = (
        fmean(part.compute_s for part in done),
        fmean(part.encode_s for part in done),
        others_s,
        fmean(part.wait_s for part in done) - others_s,
        fmean(part.decode_s for part in done),
    )
    waited = f"{len(awaited.get(worker, ()))} of {len(own)}"
    return [name, *map(format_seconds, means), waited, sent]


def drawn_workers(
    series: RoundSeries, rounds: Sequence[TrainingRound], max_workers: int
) -> list[str]:
    """Return the first workers, and among them the one that the others waited for most often."""
    workers = series.workers
    counts = _awaited_counts(rounds)
    if len(workers) > max_workers and counts:
        most = max(counts, key=lambda worker: len(counts[worker]))
        if most not in workers[:max_workers]:
            return [*workers[: max_workers - 1], most]
    return workers[:max_workers]


def _timeline(series: RoundSeries, timed: Sequence[TrainingRound]) -> str:
    workers = drawn_workers(series, timed, MAX_DRAWN)
    window = series.window(workers, WINDOW + 1)
    window = [each for each in window if each.key.number > 1] or window
    spans = spans_of(window[-WINDOW:])
    if not spans:
        return ""
    rows = row_labels(workers)
    start_s = min(span.start_s for span in spans)
    figure = horizontal_bars(num_rows=len(rows), row_px=44, barmode="overlay")
    figure.update_yaxes(categoryorder="array", categoryarray=list(rows.values()))
    seconds_axis(figure, max(span.end_s for span in spans) - start_s)
    for work in WORKS:
        _add(figure, work, [span for span in spans if span.work == work], rows, start_s)
    text = (
        f"The last {_range({len(window[-WINDOW:])}, 'round')} that all of them finished. The upper bars "
        "of a worker are its computing, the lower ones its exchange, in which each kind of work is "
        "drawn as one bar. Times are those of the clocks of the workers."
    )
    if len(workers) < len(series.workers):
        text += f" {len(workers)} of {len(series.workers)} workers."
    title = "<h3>Timeline of the last rounds</h3>"
    return f"{title}{note(text)}{figure.as_html('round-timeline')}"


def _add(
    figure: Figure, work: str, spans: Sequence[WorkSpan], rows: dict[str, str], start_s: float
) -> None:
    figure.add_bar(
        name=work,
        y=[rows[span.worker] for span in spans],
        base=[span.start_s - start_s for span in spans],
        x=[span.end_s - span.start_s for span in spans],
        orientation="h",
        width=0.36,
        offset=-0.38 if work == COMPUTING else 0.02,
        marker={"color": COLORS[work], "line": {"width": 0}},
        customdata=[
            f"{rows[span.worker]}, round {span.key.number:,}<br>{work} "
            f"{format_seconds(span.end_s - span.start_s)}"
            for span in spans
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _waits_plot(workers: Sequence[str], timed: Sequence[TrainingRound]) -> str:
    """Plot what each worker waited for others, over rounds."""
    shared = [each for each in timed if each.awaited is not None]
    if len(shared) < 2:
        return ""
    figure = step_plot(
        unit="s",
        most=max(each.others_s(worker) for each in shared for worker in each.workers),
    )
    figure.update_xaxes(title={"text": "round", "font": {"size": 13}})
    for worker, color in zip(workers, PALETTE, strict=False):
        points = thinned(
            [
                (float(place), each.others_s(worker))
                for place, each in _numbered(shared)
                if worker in each.workers
            ],
            lambda group: (group[-1][0], fmean(seconds for _, seconds in group)),
        )
        figure.add_scatter(
            name=label(worker),
            x=[place for place, _ in points],
            y=[seconds for _, seconds in points],
            mode="lines" if len(points) > 2 else "lines+markers",
            line={"color": color, "width": 2},
            customdata=[format_seconds(seconds) for _, seconds in points],
            hovertemplate="%{customdata}",
        )
    text = "Seconds that each worker waited for others; the curve at 0 is the one they waited for."
    if len(workers) > len(PALETTE):
        text += f" The first {len(PALETTE)} of {len(workers)} workers."
    return f"<h3>Waiting for others</h3>{note(text)}{figure.as_html('round-waits')}"


def _numbered(rounds: Sequence[TrainingRound]) -> list[tuple[int, TrainingRound]]:
    """Number rounds so that those of a later part continue from the last one before."""
    numbered = []
    before, last = 0, RoundKey(0, 0)
    for each in rounds:
        if each.key.part != last.part and each.key.number <= last.number:
            before += last.number
        last = each.key
        numbered.append((before + each.key.number, each))
    return numbered
