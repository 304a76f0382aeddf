"""A plane's part within the cube, and what the four panels show."""

import numpy as np
import pytest

from imm.experiments import Planes
from imm.report.planes import cut, draw_planes

TERMS = ("constant", "x1", "x2", "x3")
FIGURE = Planes(
    cube=(0.0, 1.0),
    terms=TERMS,
    planes={"true": "true plane", "imm": "with IMM"},
    curves={"restricted": "restricted", "imm": "induced"},
    plane="plane",
    point="point",
    curve="share",
    angles=("lean",),
    at=0.5,
    note="how to read it",
)


@pytest.mark.parametrize("plane", [[-2.5, 1, 2, 2], [-1.5, 1, 1, 1], [-0.5, 1, 0, 0], [0.2, -1, 0.5, 0]])
def test_corners_lie_on_the_plane_and_on_edges_of_the_cube(plane):
    plane = np.array(plane, dtype=float)
    corners = cut(plane, (0.0, 1.0))
    assert len(corners) >= 4
    np.testing.assert_allclose(plane[0] + corners @ plane[1:], 0, atol=1e-12)
    assert (((corners == 0) | (corners == 1)).sum(1) >= 2).all()


def test_corners_go_once_around():
    corners = cut(np.array([-1.5, 1.0, 1.0, 1.0]), (0.0, 1.0))  # a regular hexagon
    sides = np.linalg.norm(corners - np.roll(corners, 1, 0), axis=1)
    np.testing.assert_allclose(sides, np.full(6, 0.5**0.5))


def test_a_plane_outside_has_no_corners():
    assert len(cut(np.array([5.0, 1.0, 1.0, 1.0]), (0.0, 1.0))) == 0


def rows():
    coefficients = {"true": [-1.0, 0.0, 1.0, 1.0], "imm": [-1.5, 1.0, 1.0, 1.0]}
    yield from (
        {"method": method, "quantity": "plane", "term": term, "value": value}
        for method, values in coefficients.items()
        for term, value in zip(TERMS, values, strict=True)
    )
    yield {"method": "data", "quantity": "point", "x1": 0.1, "x2": 0.9, "x3": 0.8, "value": 1.0}
    for method in ("restricted", "imm"):
        yield from ({"method": method, "quantity": "share", "x1": x, "value": 0.25 + x / 4} for x in (0.0, 1.0))
    yield from ({"method": m, "quantity": "lean", "mean": 4.0, "p10": 1.0, "p90": 9.0, "runs": 3} for m in ("imm",))


def test_each_panel_shows_its_rows():
    _, square, curves, angles = draw_planes({"title": "a title", "rows": list(rows())}, FIGURE).axes
    true, learned = square.lines
    for line, rest in ((true, 1.0), (learned, 1.0)):  # at x1 = 0.5 both cut the slice along its diagonal
        np.testing.assert_allclose(np.sum(line.get_data(), axis=0), rest)
    assert "38%" in square.get_title()
    assert [text.get_text() for text in curves.get_legend().get_texts()] == ["restricted", "induced"]
    assert [text.get_text() for text in angles.get_legend().get_texts()] == ["imm"]
