"""Planes through a cube, a slice of it, the induced curves, and how far planes lean the wrong way."""

import itertools
import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MultipleLocator
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from mpl_toolkits.mplot3d.axes3d import Axes3D
from numpy.typing import NDArray

from imm.experiments import Planes, Row
from imm.report.figures import COLOURS, LETTERS

LABELS = {1.0: "#2f6db5", 0.0: "#d1495b"}
"""Of the two labels: the paper's blue and red."""

BLACK = "#222222"

Coefficients = Mapping[str, NDArray[np.float64]]


def draw_planes(result: Mapping[str, Any], figure: Planes) -> Canvas:
    """The figure, not yet saved."""
    rows = result["rows"]
    planes = {method: _coefficients(rows, method, figure) for method in figure.planes}
    canvas = Canvas(figsize=(11, 9.4), layout="constrained")
    cube = canvas.add_subplot(2, 2, 1, projection="3d")
    assert isinstance(cube, Axes3D)
    _cube(cube, rows, planes, figure)
    _slice(canvas.add_subplot(2, 2, 2), rows, planes, figure)
    _curves(canvas.add_subplot(2, 2, 3), rows, figure)
    _angles(canvas.add_subplot(2, 2, 4), rows, figure)
    title = textwrap.fill(result["title"], int(LETTERS * canvas.get_figwidth()))
    canvas.suptitle(f"{title}\n{figure.note}", fontsize=9)
    return canvas


def _coefficients(rows: list[Row], method: str, figure: Planes) -> NDArray[np.float64]:
    mine = [row for row in rows if (row["method"], row["quantity"]) == (method, figure.plane)]
    by_term = {row["term"]: row["value"] for row in mine}
    return np.array([by_term[term] for term in figure.terms])


def cut(plane: NDArray[np.float64], cube: tuple[float, float]) -> NDArray[np.float64]:
    """The corners of a plane within a cube, in order around their middle, ``[corners, 3]``; none if it is outside."""
    found = []
    for axis, others in ((axis, [other for other in range(3) if other != axis]) for axis in range(3)):
        for corner in itertools.product(cube, repeat=2):
            rest = plane[0] + sum(plane[1 + other] * at for other, at in zip(others, corner, strict=True))
            if plane[1 + axis] and cube[0] <= (place := -rest / plane[1 + axis]) <= cube[1]:
                point = np.empty(3)
                point[axis], point[others] = place, corner
                found.append(point)
    if len(found) < 3:
        return np.empty((0, 3))
    corners = np.array(found)
    middle = corners - corners.mean(0)
    normal = plane[1:] / np.linalg.norm(plane[1:])
    first = middle[np.argmax(np.linalg.norm(middle, axis=1))]
    second = np.cross(normal, first)
    return corners[np.argsort(np.arctan2(middle @ second, middle @ first))]


def _colour(method: str) -> str:
    return COLOURS.get(method, BLACK)


def _cube(axes: Axes3D, rows: list[Row], planes: Coefficients, figure: Planes) -> None:
    low, high = figure.cube
    true = next(iter(planes.values()))
    for label, part in _parts(true, figure).items():
        shape = Poly3DCollection([part], facecolor=LABELS[label], alpha=0.3, edgecolor="#777777", linewidth=0.8)
        axes.add_collection3d(shape)
    for method, plane in planes.items():
        corners, colour = cut(plane, figure.cube), _colour(method)
        if len(corners):
            axes.add_collection3d(Poly3DCollection([corners], facecolor=colour, alpha=0.14))
            axes.plot(*np.vstack([corners, corners[:1]]).T, color=colour, linewidth=2.2)
    for label, colour in LABELS.items():
        mine = [row for row in rows if (row["quantity"], row.get("value")) == (figure.point, label)]
        places = [[row[name] for row in mine] for name in figure.terms[1:]]
        axes.plot(*places, "o", color=colour, markersize=6.5, markeredgecolor="white", label=f"label {label:g}")
    for axis, name in zip((axes.xaxis, axes.yaxis, axes.zaxis), figure.terms[1:], strict=True):
        axis.set_label_text(name)
        axis.set_major_locator(MultipleLocator((high - low) / 2))
    axes.set(xlim=figure.cube, ylim=figure.cube, zlim=figure.cube)
    axes.view_init(elev=22, azim=-62)
    axes.set_box_aspect((1.3, 1, 1), zoom=0.98)
    axes.legend(fontsize=8, loc="lower left", bbox_to_anchor=(-0.05, 0.0))
    axes.set_title(f"The rows, the planes, and the slice at {figure.terms[1]} = {figure.at:g}", fontsize=10)


def _parts(plane: NDArray[np.float64], figure: Planes) -> dict[float, NDArray[np.float64]]:
    """The slice's parts above and below a plane, as polygons by label, ``[corners, 3]`` each; empty ones left out."""
    low, high = figure.cube
    square = np.array([[figure.at, a, b] for a, b in ((low, low), (high, low), (high, high), (low, high))])
    parts = {}
    for label, sign in ((1.0, 1), (0.0, -1)):
        corners = []
        for here, there in zip(square, np.roll(square, -1, 0), strict=True):
            a, b = (sign * (plane[0] + plane[1:] @ point) for point in (here, there))
            if a >= 0:
                corners.append(here)
            if a * b < 0:
                corners.append(here + (there - here) * a / (a - b))
        if len(corners) > 2:
            parts[label] = np.array(corners)
    return parts


def _slice(axes: Axes, rows: list[Row], planes: Coefficients, figure: Planes) -> None:
    """The square at one x1, shaded by the true label, and where each plane cuts it."""
    for label, part in _parts(next(iter(planes.values())), figure).items():
        axes.fill(part[:, 1], part[:, 2], color=LABELS[label], alpha=0.25, linewidth=0)
    ends = np.array(figure.cube)
    for method, plane in planes.items():
        rest, steep = plane[0] + plane[1] * figure.at, abs(plane[2]) > abs(plane[3])
        along = -(rest + plane[3 if steep else 2] * ends) / plane[2 if steep else 3]
        line = (along, ends) if steep else (ends, along)
        axes.plot(*line, color=_colour(method), linewidth=2.2, label=figure.planes[method])
    axes.set(xlim=figure.cube, ylim=figure.cube)
    axes.set(xlabel=figure.terms[2], ylabel=figure.terms[3], aspect="equal")
    axes.legend(fontsize=8, loc="upper right")
    text = f"The slice: the restricted model knows the blue part's share of the square, {_known(rows, figure):.0%}"
    axes.set_title(textwrap.fill(text, 48), fontsize=10)


def _known(rows: list[Row], figure: Planes) -> float:
    """The restricted model at the slice: the first curve."""
    first = next(iter(figure.curves))
    mine = [row for row in rows if (row["method"], row["quantity"]) == (first, figure.curve)]
    return float(np.interp(figure.at, [row["x1"] for row in mine], [row["value"] for row in mine]))


def _curves(axes: Axes, rows: list[Row], figure: Planes) -> None:
    for method, name in figure.curves.items():
        mine = [row for row in rows if (row["method"], row["quantity"]) == (method, figure.curve)]
        places, values = [row["x1"] for row in mine], [row["value"] for row in mine]
        axes.plot(places, values, color=_colour(method), linewidth=2.2, label=name)
    axes.axvline(figure.at, color="#777777", linewidth=1)
    axes.set(xlabel=figure.terms[1], ylabel=figure.curve, xlim=figure.cube, ylim=(0, 1))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    axes.set_title("Averages over each slice: IMM draws the green curve to the black one", fontsize=10)


def _angles(axes: Axes, rows: list[Row], figure: Planes) -> None:
    groups = {quantity: [row for row in rows if row["quantity"] == quantity] for quantity in figure.angles}
    for place, mine in enumerate(groups.values()):
        for number, row in enumerate(mine):
            at, mean = place + 0.18 * (number - (len(mine) - 1) / 2), row["mean"]
            bars = [[max(0.0, mean - row.get("p10", mean))], [max(0.0, row.get("p90", mean) - mean)]]
            label = None if place else row["method"]
            axes.errorbar(at, mean, yerr=bars, fmt="o", capsize=4, color=_colour(row["method"]), label=label)
    axes.set_xticks(range(len(groups)), list(groups))
    axes.set_xlim(-0.6, len(groups) - 0.4)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("error of the plane's normal, degrees")
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize=8)
    axes.set_title("How wrong the planes lie, over all data sets", fontsize=10)
