"""The study of rivals on tables: its rows, its old models, its verdicts."""

import numpy as np
import pytest
from studies.tabular import rivals as tabular_rivals
from studies.tabular import tables as tabular_data
from studies.tabular.old_models import old_model
from studies.tabular.verdicts import FREE, SEEN, SETS, standard_error, verdicts

from imm.experiments.data import data_folder
from imm.tabular.rivals import METHODS, NEED_OLD, WITH_OLD_DATA

SETTINGS = tabular_rivals.STUDY.settings


def needs_data(name):
    if name in SEEN and not (data_folder() / "tabular").is_dir():
        pytest.skip(f"{name} is not in the data folder")


@pytest.mark.parametrize("name", SETTINGS["sets"])
def test_rows_are_for_one_thing_only_and_fewer_are_the_first_of_more(name):
    needs_data(name)
    about = SETTINGS["sets"][name]
    most, fewer = (tabular_data.draw(SETTINGS, name, n, 3) for n in (about["sizes"][-1], about["sizes"][0]))
    rows = np.concatenate([most.test, most.pool, most.few])
    assert len(np.unique(rows)) == len(rows)
    assert (len(most.test), len(most.pool), len(most.few)) == (about["test"], about["pool"], about["sizes"][-1])
    np.testing.assert_array_equal(most.few[: len(fewer.few)], fewer.few)
    np.testing.assert_array_equal(most.test, fewer.test)
    assert most.short.sum() == len(about["short"])
    assert not most.short[most.shift]
    assert np.isfinite(most.x).all()
    assert set(np.unique(most.y)) == {0, 1}
    other = tabular_data.draw(SETTINGS, name, about["sizes"][0], 4)
    assert not np.array_equal(other.few, fewer.few)


def test_the_label_is_not_among_the_features():
    """No column alone tells the label."""
    for name in SETTINGS["sets"]:
        if name in SEEN and not (data_folder() / "tabular").is_dir():
            continue
        whole = tabular_data.load(name)
        correlation = [abs(np.corrcoef(column, whole.y)[0, 1]) for column in whole.x.T if np.ptp(column)]
        assert max(correlation) < 0.85


def test_old_models_are_what_they_are_called():
    made = tabular_data.draw(SETTINGS, "breast-cancer", 50, 0)
    y = made.y[made.test]
    accuracy = {}
    for kind in ("good", "weak", "shifted", "wrong"):
        proba, rows = old_model(SETTINGS, kind, made)
        assert proba.shape == (len(made.y), 2)
        accuracy[kind] = (proba[made.test].argmax(1) == y).mean()
        sizes = {"weak": SETTINGS["weak"], "shifted": len(made.pool) // 2}
        assert rows.short.shape == (sizes.get(kind, len(made.pool)), 2)
    assert accuracy["good"] > 0.8
    assert accuracy["wrong"] == pytest.approx(1 - accuracy["good"])
    _, shifted = old_model(SETTINGS, "shifted", made)
    _, good = old_model(SETTINGS, "good", made)
    assert abs(shifted.y.mean() - good.y.mean()) > 0.1


def test_figures_of_predictions():
    y = np.array([0, 1, 1, 0])
    sure = tabular_rivals.figures(np.array([0.0, 1.0, 1.0, 0.0]), y)
    assert sure == {"log_loss": 0.0, "auc": 1.0, "accuracy": 1.0, "calibration_error": 0.0}
    half = tabular_rivals.figures(np.full(4, 0.5), y)
    assert half["log_loss"] == pytest.approx(np.log(2))
    assert half["calibration_error"] == 0.0
    off = tabular_rivals.figures(np.array([0.2, 0.2, 0.2, 0.2]), y)
    assert off["calibration_error"] == pytest.approx(0.3)


def drawn(losses, **cell):
    """Rows of one cell from losses by method and draw."""
    cell = {"model": "linear", "data": "diabetes", "n": 50, "old": "good", **cell}
    other = {"auc": 0.5, "accuracy": 0.5, "calibration_error": 0.0, "seconds": 1.0, "strength": None, "share": 0.0}
    return [
        {**cell, "method": method, "draw": draw, "log_loss": loss, **other}
        for method, values in losses.items()
        for draw, loss in enumerate(values)
    ]


def test_verdicts_are_by_paired_differences():
    """Draws differ by much more than methods do, and a method that is always a little better is better."""
    base = np.array([0.3, 0.5, 0.7, 0.4])
    rows = drawn(
        {
            "full-only": base,
            "imm": base - 0.02,
            "stacking": base - 0.02 + np.array([0.03, -0.03, 0.02, -0.015]),
            "reverse-kd": base + 0.01,
        }
    )
    found = {row["method"]: row for row in verdicts(rows) if "verdict" in row}
    assert {name: row["verdict"] for name, row in found.items()} == {
        "full-only": "behind",
        "imm": "best",
        "stacking": "tied",
        "reverse-kd": "behind",
    }
    assert {name: row["against_full_only"] for name, row in found.items()} == {
        "full-only": "same",
        "imm": "better",
        "stacking": "better",
        "reverse-kd": "worse",
    }
    assert found["imm"]["gain"] == pytest.approx(100 * 0.02 / base.mean())
    assert found["imm"]["gain_error"] == pytest.approx(0.0, abs=1e-9)
    assert "verdict_of_free" not in found["stacking"]
    assert found["stacking"]["gain_error"] == pytest.approx(
        100 * np.std([0.03, -0.03, 0.02, -0.015], ddof=1) / 2 / base.mean()
    )


def test_counts_are_of_cells_and_keep_the_honest_sets_apart():
    rows = [
        *drawn({"full-only": [0.5, 0.5], "imm": [0.4, 0.4]}),
        *drawn({"full-only": [0.5, 0.5], "imm": [0.6, 0.6]}, data="adult"),
        *drawn({"full-only": [0.5, 0.6], "imm": [0.4, 0.7]}, data="adult", n=100),
    ]
    counts = {row["data"]: row for row in verdicts(rows) if "cells" in row and row["method"] == "imm"}
    assert {
        data: (row["cells"], row["best"], row["tied"], row["better"], row["worse"]) for data, row in counts.items()
    } == {
        "all sets": (3, 1, 1, 1, 1),
        "sets the rule was made on": (2, 0, 1, 0, 1),
        "other sets": (1, 1, 0, 1, 0),
    }
    assert counts["all sets"]["value"] == pytest.approx(200 / 3)


def test_the_same_model_is_neither_better_nor_worse():
    """It is trained to a tolerance only."""
    rows = drawn({"full-only": [0.5, 0.6], "imm": [0.5 - 1e-8, 0.6 - 1e-8]})
    found = {row["method"]: row for row in verdicts(rows) if "verdict" in row}
    assert found["imm"]["against_full_only"] == "same"
    assert found["full-only"]["verdict"] == "tied"


def test_one_draw_has_no_error():
    assert standard_error(np.array([0.3])) == 0.0


def test_names_are_the_rivals():
    assert set(tabular_rivals.ALL) == {*METHODS, *WITH_OLD_DATA}
    assert set(FREE) == set(METHODS) - NEED_OLD
    assert tuple(SETTINGS["sets"]) == SETS
