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
from imm.report.tables import markdown, pivot

COLOURS = 256
"""Of a PNG's palette."""


def write_all(result: Mapping[str, Any], study: Study, folder: Path) -> list[Path]:
    """Writes ``table.md``, ``figure.png`` of a figure and ``rollout.gif`` of a map; returns their paths."""
    written = [folder / "table.md"]
    departs = study.changed(result["settings"])
    card = study.figure if isinstance(study.figure, Scorecard) else None
    write_whole(written[0], markdown(result, departs) if card is None else pivot(result, card, departs))
    if study.figure is not None:
        written.append(folder / "figure.png")
        write_whole(written[-1], as_png(_drawn(result, study.figure)))
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


def as_png(canvas: Canvas) -> bytes:
    """Returns a figure as PNG with a palette of its own, which is a third of the size."""
    from PIL import Image

    buffer, small = io.BytesIO(), io.BytesIO()
    canvas.savefig(buffer, format="png", dpi=150)
    Image.open(buffer).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(small, "png", optimize=True)
    return small.getvalue()


def as_svg(canvas: Canvas) -> bytes:
    """Returns a figure as SVG; no date and a fixed salt for identifiers: the same figure gives the same file."""
    import matplotlib as mpl

    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "imm"}):
        canvas.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
