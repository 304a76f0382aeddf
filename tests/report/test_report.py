import json
import re

import pytest

from imm.experiments import STUDIES, Figure, Study, write_whole
from imm.report import draw, markdown, records, write_all, write_page

RESULT = {
    "name": "toy",
    "title": "A <b>toy</b>",
    "settings": {"runs": 3},
    "rows": [
        {"method": "none", "n": 5, "mean": 70.0, "p10": 60.0, "p90": 80.0, "runs": 3},
        {"method": "imm", "n": 5, "mean": 75.25, "p10": 66.0, "p90": 81.0, "runs": 3},
        {"method": "imm", "quantity": "gain", "n": None, "value": 5.25},
    ],
    "paper": [{"method": "imm", "n": 5, "mean": 76.0, "p10": 61.0, "p90": 88.0}],
    "seconds": 1.0,
    "versions": {"imm": "0"},
}
FIGURE = Figure(x="n", x_label="n", y_label="accuracy")
STUDY = Study("toy", "A toy", {"runs": 3}, {}, pieces=lambda _: [], run=lambda *_: [], figure=FIGURE)


def test_the_papers_figure_stands_beside_ours_with_the_difference():
    none, imm, gain = records(RESULT)
    assert (none["ours"], none["paper"]) == ("70 [60, 80]", "")
    assert (imm["ours"], imm["paper"], imm["difference"]) == ("75.25 [66, 81]", "76 [61, 88]", "-0.75")
    assert gain["ours"] == "5.25"


def test_markdown_is_a_table_with_equal_columns():
    lines = [line for line in markdown(RESULT).splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(RESULT["rows"])
    assert len({line.count("|") for line in lines}) == 1


def test_figure_has_a_line_for_each_method_with_its_bars():
    (axes,) = draw(RESULT, FIGURE).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["none", "imm"]


def test_a_mean_outside_its_percentiles_still_draws():
    skewed = {**RESULT, "rows": [{"method": "imm", "n": 5, "mean": 90.0, "p10": 60.0, "p90": 80.0, "runs": 3}]}
    draw(skewed, FIGURE)


def test_a_long_title_stays_inside_the_figure():
    canvas = draw({**RESULT, "title": "a long title " * 12}, FIGURE)
    width = canvas.get_figwidth() * canvas.dpi
    (title,) = canvas.texts
    box = title.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= width


def test_page_is_self_contained_and_escapes(tmp_path):
    write_whole(tmp_path / "toy" / "result.json", json.dumps(RESULT))
    write_all(RESULT, STUDY, tmp_path / "toy")
    page = write_page(tmp_path).read_text()
    assert "A &lt;b&gt;toy&lt;/b&gt;" in page
    assert "75.25 [66, 81]" in page
    assert "data:image/png;base64," in page
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page)


def test_the_same_result_gives_the_same_files(tmp_path):
    first = [path.read_bytes() for path in write_all(RESULT, STUDY, tmp_path / "a")]
    assert first == [path.read_bytes() for path in write_all(RESULT, STUDY, tmp_path / "b")]


def test_no_results_and_a_broken_one_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"no result\.json below"):
        write_page(tmp_path)
    without = [{key: value for key, value in RESULT.items() if key != name} for name in RESULT if name != "paper"]
    for broken in ({}, [], {**RESULT, "rows": []}, *without):
        write_whole(tmp_path / "x" / "result.json", json.dumps(broken))
        with pytest.raises(ValueError, match=r"x/result\.json is not a result"):
            write_page(tmp_path)
    assert not (tmp_path / "index.html").exists()


def test_a_cell_of_the_paper_that_was_not_run_is_named():
    wide = {**RESULT, "paper": [*RESULT["paper"], {"method": "imm", "n": 1500, "value": 99.0}]}
    last = records(wide)[-1]
    assert (last["n"], last["ours"], last["paper"], last["difference"]) == ("1500", "not run here", "99", "")


def test_the_results_of_training_runs_are_no_results_of_studies(tmp_path):
    write_whole(tmp_path / "toy" / "result.json", json.dumps(RESULT))
    write_whole(tmp_path / "runs" / "abc" / "result.json", json.dumps({"valid_perplexity": 100.0}))
    assert "toy" in write_page(tmp_path).read_text()


def test_points_are_drawn_near_their_place_however_many_series_there_are():
    rows = [{"method": f"m{i}", "n": n, "mean": 1.0, "runs": 1} for i in range(7) for n in (5, 10, 25)]
    (axes,) = draw({**RESULT, "rows": rows}, FIGURE).axes
    for line in axes.get_lines():
        if len(line.get_xdata()) == 3:
            assert abs(line.get_xdata()[0] - 5) <= 1
    (axes,) = draw({**RESULT, "rows": rows}, Figure(x="n", x_label="n", y_label="accuracy", log_x=True)).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["5", "10", "25"]


def test_a_vertical_axis_may_be_logarithmic_with_plain_numbers():
    rows = [{"method": "m", "n": n, "mean": 100.0 * n, "runs": 1} for n in (5, 10, 25)]
    canvas = draw({**RESULT, "rows": rows}, Figure(x="n", x_label="n", y_label="perplexity", log_y=True))
    canvas.canvas.draw()
    (axes,) = canvas.axes
    assert axes.get_yscale() == "log"
    assert {"500", "1000", "2000"} <= {label.get_text() for label in axes.get_yticklabels()}


def test_the_page_says_which_result_is_not_the_full_study(tmp_path):
    study = next(study for study in STUDIES if study.name == "grid-reward")
    for name, settings in (("full", study.settings), ("quick", {**study.settings, **study.quick})):
        write_whole(tmp_path / name / "result.json", json.dumps({**RESULT, "name": study.name, "settings": settings}))
    assert "Not the full study" not in write_page(tmp_path / "full").read_text()
    assert "Not the full study: " in write_page(tmp_path / "quick").read_text()
