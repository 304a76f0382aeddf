"""A result with places as a map with arrows, and its rollouts as an animation."""

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Canvas
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from imm.experiments import Map, Row

GAP, HEAD = 12, 16
"""Pixels between two worlds of an animation, and above them for their names."""


def draw_map(result: Mapping[str, Any], figure: Map) -> Canvas:
    """The landscape by itself, and below each policy; the figure is not yet saved."""
    below = _field(result["rows"], figure.panels[0])
    canvas = Canvas(figsize=(3.4 * len(figure.panels) + 0.6, 3.9), layout="constrained")
    for axes, panel in zip(canvas.subplots(1, len(figure.panels), squeeze=False).flat, figure.panels, strict=True):
        image = axes.imshow(below, cmap="YlGn", origin="upper")
        cells = [row for row in _cells(result["rows"], panel) if all(key in row for key in figure.moves)]
        if cells:
            steps = [[sum(row[key] * move[i] for key, move in figure.moves.items()) for row in cells] for i in (0, 1)]
            places = [[row[key] for row in cells] for key in ("x", "y")]
            arrow = {"angles": "xy", "scale_units": "xy", "scale": 1.2, "pivot": "mid", "width": 0.008}
            axes.quiver(*places, *steps, color="#333333", **arrow)
        axes.set_title(panel, fontsize=10)
        axes.set_xlabel("x")
        axes.set_ylabel("y")
    canvas.colorbar(image, ax=canvas.axes, shrink=0.7, label="reward")
    canvas.suptitle(f"{result['title']}\n{figure.note}", fontsize=9)
    return canvas


def animated(result: Mapping[str, Any], figure: Map, milliseconds: int = 250) -> bytes:
    """A GIF: the rollouts of all methods that have one, side by side."""
    from imm.control.picture import pixels  # brings torch, which a page does without

    below = _field(result["rows"], figure.panels[0])
    rollouts = {}
    for panel in figure.panels:
        steps = sorted((row for row in result["rows"] if row["method"] == panel and "step" in row), key=_step)
        if steps:
            rollouts[panel] = [(row["y"], row["x"]) for row in steps]
    frames = []
    for places in zip(*rollouts.values(), strict=True):
        worlds = [Image.fromarray(pixels(below, place)) for place in places]
        width, height = worlds[0].size
        frame = Image.new("RGB", (len(worlds) * (width + GAP) - GAP, height + HEAD), "white")
        for number, (name, world) in enumerate(zip(rollouts, worlds, strict=True)):
            frame.paste(world, (number * (width + GAP), HEAD))
            ImageDraw.Draw(frame).text((number * (width + GAP) + 2, 2), name, fill="black")
        frames.append(frame)
    buffer = io.BytesIO()
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:], duration=milliseconds, loop=0)
    return buffer.getvalue()


def _step(row: Row) -> int:
    return int(row["step"])


def _cells(rows: list[Row], method: str) -> list[Row]:
    return [row for row in rows if row["method"] == method and "step" not in row]


def _field(rows: list[Row], method: str) -> NDArray[np.float64]:
    cells = _cells(rows, method)
    out = np.zeros((1 + max(row["y"] for row in cells), 1 + max(row["x"] for row in cells)))
    for row in cells:
        out[row["y"], row["x"]] = row["value"]
    return out
