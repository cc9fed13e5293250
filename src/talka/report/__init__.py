"""One HTML page per run: measured and predicted costs, a timeline of the workers, and failures."""

from talka.report.base import PageSection, ReportSection
from talka.report.comparison import ComparisonRow, comparison_rows
from talka.report.page import write_page, write_report
from talka.report.sections import SECTIONS, folds_of

Section = ReportSection  # its former name

__all__ = [
    "SECTIONS",
    "ComparisonRow",
    "PageSection",
    "ReportSection",
    "Section",
    "comparison_rows",
    "folds_of",
    "write_page",
    "write_report",
]
