"""The rows of `talka explain train --rhythm`: one per rhythm and compressor."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from talka.cli.tables import print_table
from talka.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from talka.train.rhythms.predictions import RhythmPrediction

RHYTHM_NOTES: Final = (
    "A delayed exchange encodes and decodes on the core that computes; only the network overlaps.",
    "How many additional steps a rhythm needs for the same loss is not predicted: averages of fewer "
    "rounds, late averages and lossy compression may all reduce the loss less per step.",
)


def print_rhythms(predictions: "Sequence[RhythmPrediction]") -> None:
    from talka.train.rhythms.predictions import fastest_rhythm

    best = fastest_rhythm(predictions)
    print_table(
        [_cells(row, is_best=row is best) for row in predictions],
        right=(
            *("sent per round", "sent per step", "codec", "network", "step"),
            *("vs one machine", "vs DDP"),
        ),
    )
    print("* the shortest step; codec and network are those of a round")


def _cells(row: "RhythmPrediction", *, is_best: bool) -> dict[str, str]:
    from talka.report.comparison import format_ratio

    price = row.price
    return {
        "rhythm": str(price.rhythm) + (" *" if is_best else ""),
        "compressor": price.spec,
        "exchange": price.exchange,
        "sent per round": format_bytes(price.round_bytes),
        "sent per step": format_bytes(price.step_bytes),
        "codec": format_seconds(price.codec_s),
        "network": format_seconds(price.network_s),
        "step": format_seconds(price.step_s),
        "vs one machine": format_ratio(row.speed_vs_one),
        "vs DDP": format_ratio(row.speed_vs_ddp),
    }


def rhythm_fields(predictions: "Sequence[RhythmPrediction]") -> list[dict[str, Any]]:
    """Return the rows as plain values for JSON."""
    from talka.train.rhythms.predictions import fastest_rhythm

    best = fastest_rhythm(predictions) if predictions else None
    return [
        {
            "rhythm": str(row.price.rhythm),
            "compressor": row.price.spec,
            "exchange": row.price.exchange,
            "steps_per_round": row.price.steps_per_round,
            "sent_bytes_per_round": row.price.round_bytes,
            "sent_bytes_per_step": row.price.step_bytes,
            "compute_s": row.price.compute_s,
            "codec_s_per_round": row.price.codec_s,
            "network_s_per_round": row.price.network_s,
            "step_s": row.price.step_s,
            "speed_vs_one_machine": row.speed_vs_one,
            "speed_vs_ddp": row.speed_vs_ddp,
            "best": row is best,
        }
        for row in predictions
    ]
