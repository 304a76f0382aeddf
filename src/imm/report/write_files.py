"""Writes what stands beside a ``result.json``."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure as Canvas

from imm.experiments import Figure, Map, Planes, Scorecard, Study, write_whole
from imm.report.figures import draw
from imm.report.grid_map import animated, draw_map
from imm.report.planes import draw_planes
from imm.report.scorecard import draw_scorecard
from imm.report.tables import markdown


def write_all(result: Mapping[str, Any], study: Study, folder: Path) -> list[Path]:
    """``table.md``, ``figure.png`` and ``figure.svg`` of a figure, ``rollout.gif`` of a map; gives their paths."""
    written = [folder / "table.md"]
    write_whole(written[0], markdown(result, study.changed(result["settings"])))
    if study.figure is not None:
        canvas = _drawn(result, study.figure)
        for kind in ("png", "svg"):
            written.append(folder / f"figure.{kind}")
            write_whole(written[-1], rendered(canvas, kind))
    if isinstance(study.figure, Map):
        written.append(folder / "rollout.gif")
        write_whole(written[-1], animated(result, study.figure))
    return written


def _drawn(result: Mapping[str, Any], figure: Figure | Map | Planes | Scorecard) -> Canvas:
    if isinstance(figure, Map):
        return draw_map(result, figure)
    if isinstance(figure, Planes):
        return draw_planes(result, figure)
    return draw_scorecard(result, figure) if isinstance(figure, Scorecard) else draw(result, figure)


def rendered(canvas: Canvas, kind: str) -> bytes:
    """A figure as PNG or SVG; no date and a fixed salt for identifiers: the same figure gives the same file."""
    import matplotlib as mpl

    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "imm"}):
        canvas.savefig(buffer, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    return buffer.getvalue()
