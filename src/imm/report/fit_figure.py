"""The methods of ``imm fit`` side by side."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from imm.fit.verdict import NAMES, gain_shown
from imm.report.figures import COLOURS

MORE = {
    "old-only": "#5c6bc0",
    "stacking": "#00838f",
    "imm-stacking": "#2e7d32",
    "label-smoothing": "#8d6e63",
    "offset": "#ad1457",
}


def draw_comparison(record: Mapping[str, Any]) -> Figure:
    """Left: the metric at every split, and its mean. Right: the gain over new rows only, with its standard error."""
    metric = record["rows"][0]["metric"]
    methods = list(record["splits"])
    figure = Figure(figsize=(9.2, 1.25 + 0.5 * len(methods)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1.15, 1))
    gains = [row for row in record["rows"] if "gain" in row and row["method"] != "old-only"]
    widest = max((1.2 * (abs(row["gain"]) + row["standard_error"]) for row in gains), default=0.0) or 1.0
    near = [
        abs(row["gain"]) + row["standard_error"] for row in record["rows"] if abs(row.get("gain", np.inf)) <= widest
    ]
    widest = max([widest, *near])
    rng = np.random.default_rng(0)
    for place, method in enumerate(methods):
        colour = COLOURS.get(method, MORE.get(method, "#777777"))
        values = np.array(record["splits"][method][metric])
        left.plot(values, place + rng.uniform(-0.16, 0.16, len(values)), "o", color=colour, alpha=0.28, markersize=4)
        left.plot([values.mean()] * 2, [place - 0.3, place + 0.3], color=colour, linewidth=2.6)
        row = next(row for row in record["rows"] if (row["method"], row["metric"]) == (method, metric))
        if "gain" not in row:
            continue
        if abs(row["gain"]) <= widest:
            bar = {"fmt": "o", "color": colour, "capsize": 3.5, "markersize": 6, "linewidth": 1.6}
            right.errorbar(row["gain"], place, xerr=row["standard_error"], **bar)
        else:  # far away: an arrow, so that the others can be told apart
            side = 1 if row["gain"] > 0 else -1
            right.plot(side * widest, place, marker=">" if side > 0 else "<", color=colour, markersize=7)
            where = {"ha": "right" if side > 0 else "left", "va": "center", "fontsize": 8.5, "color": colour}
            right.text(side * 0.92 * widest, place, " ± ".join(gain_shown(row)), **where)
    right.set_xlim(-1.05 * widest, 1.05 * widest)
    right.axvline(0, color="#800000", linewidth=1.2, alpha=0.7)
    left.set_yticks(range(len(methods)), [NAMES[method] for method in methods])
    left.invert_yaxis()
    _label(left, f"{metric} on hidden rows (lower is better)\na dot for each split, a line for the mean")
    _label(right, f"gain in {metric} over new rows only\nright of the line is better; mean and standard error")
    return figure


def _label(axes: Axes, text: str) -> None:
    axes.set_xlabel(text, fontsize=8.5)
    axes.grid(axis="x", alpha=0.3)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8.5)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
