"""Writes what stands beside a ``result.json``."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from imm.experiments import Map, Study, write_whole
from imm.report.figure import draw
from imm.report.map import animated, draw_map
from imm.report.table import markdown


def write_all(result: Mapping[str, Any], study: Study, folder: Path) -> list[Path]:
    """``table.md``, ``figure.png`` and ``figure.svg`` of a figure, ``rollout.gif`` of a map; gives their paths."""
    written = [folder / "table.md"]
    write_whole(written[0], markdown(result, study.changed(result["settings"])))
    if study.figure is not None:
        canvas = draw_map(result, study.figure) if isinstance(study.figure, Map) else draw(result, study.figure)
        for kind in ("png", "svg"):
            written.append(folder / f"figure.{kind}")
            write_whole(written[-1], rendered(canvas, kind))
    if isinstance(study.figure, Map):
        written.append(folder / "rollout.gif")
        write_whole(written[-1], animated(result, study.figure))
    return written


def rendered(canvas: Figure, kind: str) -> bytes:
    """A figure as PNG or SVG; no date and a fixed salt for identifiers: the same figure gives the same file."""
    import matplotlib as mpl

    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "imm"}):
        canvas.savefig(buffer, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    return buffer.getvalue()
