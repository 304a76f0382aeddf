"""A result as a coloured table."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure as Canvas

from imm.experiments import Row, Scorecard

LINE, COLUMN, HEAD = 0.21, 0.62, 1.2
"""Inches of a line and a column, and above the lines of a panel."""

FULL = 15.0
"""The value at which the colour is full."""

LEAST = 99
"""Below minus this, no more than that is said."""


def draw_scorecard(result: Mapping[str, Any], figure: Scorecard) -> Canvas:
    """Panels in two columns, filled so that both are about as long; the figure is not yet saved."""
    rows = [row for row in result["rows"] if figure.marked in row]
    panels = list(dict.fromkeys(tuple(row[key] for key in figure.panels) for row in rows))
    of = {panel: [row for row in rows if tuple(row[key] for key in figure.panels) == panel] for panel in panels}
    lengths = {panel: len(_lines(of[panel], figure)) * LINE + HEAD for panel in panels}
    stacks: tuple[list[Any], list[Any]] = [], []
    for panel in panels:
        min(stacks, key=lambda stack: sum(lengths[other] for other in stack)).append(panel)
    most = len({row[figure.columns] for row in rows})
    used = [stack for stack in stacks if stack]
    height = max(sum(lengths[panel] for panel in stack) for stack in used) + 0.15
    width = COLUMN * most + 1.9
    wide, high = width * len(used), height + 0.6
    canvas = Canvas(figsize=(wide, high))
    canvas.suptitle(f"{result['title']}\n{figure.note}", fontsize=9, y=1 - 0.12 / high, va="top")
    for number, stack in enumerate(used):
        top = height
        for panel in stack:
            inner = lengths[panel] - HEAD
            columns = list(dict.fromkeys(row[figure.columns] for row in of[panel]))
            left, bottom = (number * width + 1.5) / wide, (top - HEAD - inner) / high
            axes = canvas.add_axes((left, bottom, COLUMN * len(columns) / wide, inner / high))
            name = ", ".join(f"{key}: {value}" for key, value in zip(figure.panels, panel, strict=True))
            axes.set_title(name, fontsize=10, loc="left")
            _panel(axes, of[panel], columns, figure)
            top -= lengths[panel]
    return canvas


def _lines(rows: Sequence[Row], figure: Scorecard) -> list[tuple[Any, ...]]:
    return list(dict.fromkeys(tuple(row[key] for key in figure.lines) for row in rows))


def _panel(axes: Axes, rows: Sequence[Row], columns: Sequence[str], figure: Scorecard) -> None:
    lines = _lines(rows, figure)
    values = np.full((len(lines), len(columns)), np.nan)
    for row in rows:
        place = lines.index(tuple(row[key] for key in figure.lines)), columns.index(row[figure.columns])
        values[place] = row[figure.value]
        shown = f"{row[figure.value]:+.1f}" if row[figure.value] > -LEAST else f"< -{LEAST}"
        text = f"{shown}{figure.marks.get(row[figure.marked], '')}"
        weight = "bold" if row[figure.marked] in figure.marks else "normal"
        colour = "white" if abs(row[figure.value]) > 0.6 * FULL else "black"
        axes.text(place[1], place[0], text, ha="center", va="center", fontsize=7, fontweight=weight, color=colour)
    axes.imshow(values, cmap="PiYG", norm=TwoSlopeNorm(0.0, -FULL, FULL), aspect="auto")
    axes.set_xticks(range(len(columns)), columns, rotation=40, ha="left", fontsize=8)
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(lines)), [_name(line) for line in lines], fontsize=8)
    axes.tick_params(length=0)


def _name(line: tuple[Any, ...]) -> str:
    first, *others = line
    return " ".join([str(first), *(f"n = {other}" for other in others)])
