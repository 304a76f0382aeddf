"""What must hold of the committed results, beside the paper's."""

import json
from pathlib import Path

import pytest

from imm.experiments import STUDIES, reproduce
from imm.experiments.data import data_file

RESULTS = Path(__file__).parents[2] / "results"


def means(name, series="method", **key):
    """``{(series, n): mean}`` of a committed result."""
    rows = json.loads((RESULTS / name / "result.json").read_text())["rows"]
    return {(row[series], row["n"]): row["mean"] for row in rows if "mean" in row and key.items() <= row.items()}


def sizes(found):
    return sorted({n for _, n in found})


def test_fixed_lambda_is_near_the_printed_table():
    found = means("logistic-fixed-lambda")
    printed = json.loads((RESULTS / "logistic-fixed-lambda" / "result.json").read_text())["paper"]
    assert len(printed) == 21
    for row in printed:
        bound = 4.0 if row["method"] == "noising" else 1.5
        assert abs(found[row["method"], row["n"]] - row["mean"]) <= bound, row


def test_noising_falls_below_none_from_fifteen_on():
    found = means("logistic-fixed-lambda")
    for n in sizes(found):
        if n >= 15:
            assert found["noising", n] < found["none", n]


def test_imm_is_above_none_everywhere_and_above_noising_from_five_on():
    found = means("logistic-accuracy")
    assert sizes(found)[0] == 2
    assert sizes(found)[-1] == 50
    for n in sizes(found):
        assert found["imm", n] > found["none", n]
        if n >= 5:
            assert found["imm", n] > found["noising", n]


def test_serialized_is_above_noising():
    found = means("logistic-serialized")
    for n in sizes(found):
        assert found["imm-serialized", n] > found["noising", n]


@pytest.mark.parametrize("quality", ["high", "medium", "low"])
def test_lower_quality_is_still_above_none(quality):
    found = means("logistic-quality", series="quality")
    for n in sizes(found):
        assert found[quality, n] > found["none", n]


def test_more_imm_improves_the_restricted_task():
    rows = json.loads((RESULTS / "logistic-restricted" / "result.json").read_text())["rows"]
    for split in ("train", "population"):
        curve = [row["mean"] for row in sorted(rows, key=lambda row: row["ratio"]) if row["split"] == split]
        assert curve[-1] < curve[0]
        assert min(curve) < 0.9 * curve[0]


def rewards(name, series="method"):
    rows = json.loads((RESULTS / name / "result.json").read_text())["rows"]
    return {(row[series], row["epochs"]): row for row in rows}


def test_the_grids_means_are_within_three_standard_errors_of_the_published_ones():
    """The published figures are means of 30 runs; IMM's at 50 epochs are low, many more give 9.7."""
    found = rewards("grid-reward")
    printed = json.loads((RESULTS / "grid-reward" / "result.json").read_text())["paper"]
    assert len(printed) == 30
    for row in printed:
        ours = found[row["method"], row["epochs"]]
        deviation = (ours["p90"] - ours["p10"]) / 2.563  # of a normal
        if (row["method"], row["epochs"]) == ("imm", 50):
            assert ours["mean"] == pytest.approx(9.7, abs=0.5)
        else:
            assert abs(ours["mean"] - row["mean"]) <= 3 * deviation / 30**0.5, row


def test_the_quoted_figures_are_those_of_the_file():
    try:
        lines = data_file("grid_reference.csv").read_text().split()[1:]
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    (study,) = [study for study in STUDIES if study.name == "grid-reward"]
    wanted = {(line.split(",")[0], int(line.split(",")[1])): float(line.split(",")[6]) for line in lines}
    assert {(row["method"], row["epochs"]): row["mean"] for row in study.paper} == pytest.approx(wanted, abs=0.006)


def test_imm_and_each_quality_are_above_none_on_the_grid():
    for name, series in (("grid-reward", "method"), ("grid-quality", "quality")):
        found = rewards(name, series)
        for (curve, epochs), row in found.items():
            if curve != "none":
                assert row["mean"] > found["none", epochs]["mean"], (name, curve, epochs)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["counterexample", "logistic-fixed-lambda", "logistic-planes", "logistic-serialized"])
def test_a_committed_result_can_be_made_again(name, tmp_path):
    (study,) = [study for study in STUDIES if study.name == name]
    again = reproduce(study, study.settings, tmp_path, 2, lambda done, total: None)
    committed = json.loads((RESULTS / name / "result.json").read_text())
    assert again["settings"] == committed["settings"]
    for ours, theirs in zip(again["rows"], committed["rows"], strict=True):
        figure = "mean" if "mean" in ours else "value"
        # Another processor rounds otherwise, and a test point or two may change sides.
        assert ours[figure] == pytest.approx(theirs[figure], abs=0.1)
