"""A coloured table says what the rows say."""

from imm.experiments import Scorecard
from imm.report.scorecard import draw_scorecard

FIGURE = Scorecard(
    panels=("old",),
    lines=("data", "n"),
    columns="method",
    value="gain",
    marked="verdict",
    marks={"best": "*", "tied": "+"},
    note="how to read it",
)


def row(old, data, method, gain, verdict):
    return {"old": old, "data": data, "n": 50, "method": method, "gain": gain, "verdict": verdict}


def drawn():
    rows = [
        row("good", "a", "imm", 3.21, "best"),
        row("good", "a", "offset", -250.0, "behind"),
        row("good", "b", "imm", -0.5, "tied"),
        row("wrong", "a", "imm", 0.0, "behind"),
        {"method": "imm", "value": 1.0},
    ]
    return draw_scorecard({"title": "a title", "rows": rows}, FIGURE)


def test_each_figure_stands_in_its_cell_with_its_mark():
    good, wrong = drawn().axes
    texts = {text.get_position(): text.get_text() for text in good.texts}
    assert texts == {(0, 0): "+3.2*", (1, 0): "< -99", (0, 1): "-0.5+"}
    assert [tick.get_text() for tick in good.get_xticklabels()] == ["imm", "offset"]
    assert [tick.get_text() for tick in good.get_yticklabels()] == ["a n = 50", "b n = 50"]
    assert [text.get_text() for text in wrong.texts] == ["+0.0"]
    assert [axes.get_title(loc="left") for axes in (good, wrong)] == ["old: good", "old: wrong"]


def test_better_is_green_and_worse_is_not():
    good, _ = drawn().axes
    (image,) = good.images
    red, green, _, _ = image.to_rgba(image.get_array())[0, 0]
    assert green > red
    red, green, _, _ = image.to_rgba(image.get_array())[1, 0]
    assert red > green


def test_panels_do_not_overlap():
    good, wrong = (axes.get_position() for axes in drawn().axes)
    assert good.x1 < wrong.x0 or wrong.y1 < good.y0
    assert min(good.x0, good.y0, wrong.x0, wrong.y0) > 0
    assert max(good.x1, good.y1, wrong.x1, wrong.y1) < 1
