"""A result as a figure."""

import itertools
import textwrap
from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator, NullLocator

from imm.experiments import Figure, Row

COLOURS = {
    "none": "#800000",
    "full-only": "#800000",
    "noising": "#d98e04",
    "interpolation": "#3b6fb6",
    "imm": "#2e7d32",
    "imm-serialized": "#7cb342",
    "imm, published": "#7cb342",
    "warm-start": "#e06c9f",
    "imm-streaming": "#2e7d32",
    "imm-sampled": "#00897b",
    "imm-current": "#c62828",
    "kn-noising": "#d98e04",
    "kneser-ney": "#555555",
    "reverse-kd": "#7b3fa0",
}
"""The paper's where it names them: maroon without IMM, green with it."""

LETTERS = 15
"""Of a title, to an inch."""


def draw(result: Mapping[str, Any], figure: Figure) -> Canvas:
    """The figure, not yet saved."""
    rows = [row for row in result["rows"] if figure.y in row]
    panels = list(dict.fromkeys(row[figure.panel] for row in rows)) if figure.panel else [None]
    columns = len(panels) if len(panels) < 4 else 2
    lines = -(-len(panels) // columns)
    canvas = Canvas(figsize=(5.2 * columns + 0.6, 3.8 * lines + 0.4), layout="constrained")
    places = list(canvas.subplots(lines, columns, squeeze=False).flat)
    for empty in places[len(panels) :]:
        empty.set_visible(False)
    for axes, panel in zip(places, panels, strict=False):
        here = [row for row in rows if figure.panel is None or row[figure.panel] == panel]
        _categories(axes, here, figure) if figure.x == figure.series else _curves(axes, here, figure)
        if figure.beside:
            printed = [row for row in result["paper"] if panel is None or row.get(figure.panel, panel) == panel]
            _crosses(axes, printed, figure)
        axes.legend(fontsize=8) if figure.x != figure.series else None
        axes.set_xlabel(figure.x_label)
        axes.set_ylabel(figure.y_label)
        if figure.y_limits is not None:
            axes.set_ylim(figure.y_limits)
        if panel is not None:
            axes.set_title(panel, fontsize=10)
        axes.grid(alpha=0.3)
    title = textwrap.fill(result["title"], int(LETTERS * canvas.get_figwidth()))
    canvas.suptitle(f"{title}\n{figure.note}", fontsize=9)
    return canvas


def _curves(axes: Axes, rows: list[Row], figure: Figure) -> None:
    """One line for each series, shifted a little so that error bars can be told apart."""
    series = list(dict.fromkeys(row[figure.series] for row in rows))
    places = sorted({row[figure.x] for row in rows})
    gap = min((b - a for a, b in itertools.pairwise(places)), default=1)
    step = 0 if figure.log_x or figure.points else 0.4 * gap / len(series)
    if figure.log_x:
        axes.set_xscale("log")
        axes.set_xticks(places, [f"{place:g}" for place in places], minor=False)
        axes.minorticks_off()
    if figure.log_y:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_locator(NullLocator())
    for number, name in enumerate(series):
        mine = sorted((row for row in rows if row[figure.series] == name), key=lambda row: row[figure.x])
        shift = step * (number - (len(series) - 1) / 2)
        axes.errorbar(
            [row[figure.x] + shift for row in mine],
            [row[figure.y] for row in mine],
            yerr=_bars(mine, figure),
            label=f"{name}" if isinstance(name, str) else f"{figure.series} = {name}",
            color=COLOURS.get(name) if isinstance(name, str) else None,
            marker="o",
            markersize=3.5,
            capsize=2,
            linewidth=0 if figure.points else 1.4,
            elinewidth=0.7,
        )


def _crosses(axes: Axes, paper: list[Row], figure: Figure) -> None:
    """The paper's, in the colour of ours."""
    for name in dict.fromkeys(row[figure.series] for row in paper):
        mine = [row for row in paper if row[figure.series] == name]
        places, values = [row[figure.x] for row in mine], [row[figure.y] for row in mine]
        axes.plot(places, values, "x", color=COLOURS.get(name), markersize=6, label=f"{name}, paper")


def _categories(axes: Axes, rows: list[Row], figure: Figure) -> None:
    """One bar for each method."""
    for number, row in enumerate(rows):
        colour = COLOURS.get(row[figure.x], "#777777")
        axes.errorbar(row[figure.y], -number, xerr=_bars([row], figure), marker="o", capsize=3, color=colour)
    axes.set_yticks([-number for number in range(len(rows))], [row[figure.x] for row in rows])


def _bars(rows: list[Row], figure: Figure) -> list[list[float]]:
    """How far the percentiles are below and above, or the error; a skewed mean can lie outside percentiles."""
    if any(f"{figure.y}_error" in row for row in rows):
        return [[row.get(f"{figure.y}_error", 0.0) for row in rows]] * 2
    below = [max(0.0, row[figure.y] - row.get("p10", row[figure.y])) for row in rows]
    above = [max(0.0, row.get("p90", row[figure.y]) - row[figure.y]) for row in rows]
    return [below, above]
