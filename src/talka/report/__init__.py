"""One HTML page that tells a run: what it cost, what was predicted, who worked when, what broke."""

from talka.report.base import Section
from talka.report.comparison import ComparisonRow, comparison_rows
from talka.report.page import SECTIONS, write_page, write_report

__all__ = [
    "SECTIONS",
    "ComparisonRow",
    "Section",
    "comparison_rows",
    "write_page",
    "write_report",
]
