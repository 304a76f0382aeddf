"""Report: figures, tables, and one HTML page, from what the experiments wrote."""

from imm.report.figure import draw
from imm.report.page import write_page
from imm.report.table import markdown, records
from imm.report.write import write_all

__all__ = ["draw", "markdown", "records", "write_all", "write_page"]
