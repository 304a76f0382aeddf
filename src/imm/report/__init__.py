"""Report: figures, tables, and one HTML page, from what the experiments wrote."""

from imm.report.figures import draw
from imm.report.pages import write_page
from imm.report.tables import markdown, records
from imm.report.write_files import write_all

__all__ = ["draw", "markdown", "records", "write_all", "write_page"]
