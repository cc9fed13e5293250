"""One HTML page per run: measured and predicted costs, a timeline of the workers, and failures."""

from talka.report.base import ReportSection
from talka.report.comparison import ComparisonRow, comparison_rows
from talka.report.page import SECTIONS, write_page, write_report

Section = ReportSection  # its former name

__all__ = [
    "SECTIONS",
    "ComparisonRow",
    "ReportSection",
    "Section",
    "comparison_rows",
    "write_page",
    "write_report",
]
