"""The grid studies: which trainings serve which curves, and what is drawn of them."""

import io
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from imm.control.picture import AGENT
from imm.experiments import STUDIES, reproduce
from imm.experiments.grid import heatmap as grid_heatmap
from imm.experiments.grid import reward as grid_reward
from imm.experiments.grid import runs as grid
from imm.experiments.grid import strength as grid_strength
from imm.report.grid_map import HEAD, animated, draw_map

TINY = {"size": 4, "steps": 5, "runs": 3, "epochs": [2, 4, 180]}


def study(name):
    return next(study for study in STUDIES if study.name == name)


def test_a_training_that_two_curves_share_is_made_once():
    trainings = grid.trainings(grid_reward.STUDY.settings)
    assert [(piece["training"], round(piece["strength"], 4)) for piece in trainings] == [
        ("none", 0.0),
        ("imm", 0.25),
        ("imm", 0.1111),
    ]
    quarter = trainings[1]["judged"]
    assert [judged["curve"] for judged in quarter] == ["imm", "imm, λ = 0.25"]
    assert quarter[0]["epochs"][-1] == 175
    assert quarter[1]["epochs"] == grid.EPOCHS


@pytest.mark.parametrize("name", ["grid-reward", "grid-quality", "grid-strength", "grid-rivals"])
def test_every_point_of_every_curve_is_judged_once(name):
    settings = study(name).settings
    judged = [
        (each["curve"], epochs)
        for piece in grid.trainings(settings)
        for each in piece["judged"]
        for epochs in each["epochs"]
    ]
    assert sorted(judged) == sorted((curve, epochs) for curve in settings["curves"] for epochs in settings["epochs"])


def test_a_quality_is_not_a_method(tmp_path):
    quality = study("grid-quality")
    result = reproduce(quality, {**quality.settings, **TINY}, tmp_path, 1, lambda done, total: None)
    pairs = dict.fromkeys((row["method"], row["quality"]) for row in result["rows"])
    assert list(pairs) == [("none", "none"), ("imm", "high"), ("imm", "medium"), ("imm", "low")]
    assert len(result["rows"]) == 4 * 3


def test_interpolation_is_the_training_without_help():
    curves = {
        "none": grid.curve("none"),
        "all": grid.curve("interpolation", [[500, 1.0]]),
        "nothing": grid.curve("interpolation", [[500, 0.0]]),
    }
    settings = {**grid.WORLD, **TINY, "epochs": [2], "curves": curves}
    (piece,) = grid.trainings(settings)
    none, all_of_it, nothing = grid.run(settings, piece)
    assert none["mean"] == nothing["mean"]
    assert none["mean"] != all_of_it["mean"]


def test_curves_without_help_are_the_same_in_every_study():
    """All trainings meet the same random numbers: none and λ = 0 are the same runs."""
    curves = {"none": grid.curve("none"), "imm": grid.curve("imm", [[500, 0.0]])}
    settings = {**grid.WORLD, **TINY, "epochs": [2, 4], "curves": curves}
    none, imm = (grid.run(settings, piece) for piece in grid.trainings(settings))
    assert [row["mean"] for row in none] == [row["mean"] for row in imm]


def test_rivals_use_the_best_strengths_and_those_lie_inside_what_was_tried():
    """But for interpolation's share of 0, which is a bound by nature."""
    rows = json.loads((Path(__file__).parents[2] / "results" / "grid-strength" / "result.json").read_text())["rows"]
    curves = study("grid-rivals").settings["curves"]
    for way, tries in grid_strength.TRIES.items():
        for part, (_, used) in zip(("up to 175 epochs", "from 200 epochs on"), curves[way]["strengths"], strict=True):
            mine = {row["tried"]: row["mean"] for row in rows if (row["method"], row["part"]) == (way, part)}
            assert list(mine) == pytest.approx(tries, abs=1e-4)
            assert used == pytest.approx(max(mine, key=mine.get), abs=1e-4)
            assert min(tries) < used < max(tries) or (way, used) == ("interpolation", 0.0)


class TestHeatmap:
    @pytest.fixture
    def result(self, tmp_path):
        settings = {**grid_heatmap.STUDY.settings, "size": 4, "epochs": 3}
        return reproduce(grid_heatmap.STUDY, settings, tmp_path, 1, lambda done, total: None)

    def test_rows(self, result):
        rows = result["rows"]
        assert sum("step" not in row for row in rows) == 4 * 16
        rollout = [row for row in rows if row["method"] == "imm" and "step" in row]
        assert [row["step"] for row in rollout] == list(range(23))
        assert rollout[0]["value"] == 0
        for before, after in itertools.pairwise(rollout):
            apart = abs(np.subtract([after["y"], after["x"]], [before["y"], before["x"]]))
            assert sorted(np.minimum(apart, 4 - apart)) == [0, 1]
            entered = next(row["value"] for row in rows if (row["y"], row["x"]) == (after["y"], after["x"]))
            assert after["value"] - before["value"] == pytest.approx(entered, abs=1e-6)

    def test_a_panel_for_each_with_arrows_over_the_landscape(self, result):
        canvas = draw_map(result, grid_heatmap.STUDY.figure)
        panels = canvas.axes[:4]
        assert [axes.get_title() for axes in panels] == ["landscape", "target", "none", "imm"]
        assert [len(axes.collections) for axes in panels] == [0, 1, 1, 1]

    def test_the_animation_shows_both_walks(self, result):
        gif = Image.open(io.BytesIO(animated(result, grid_heatmap.STUDY.figure)))
        assert gif.n_frames == 23
        for step in (0, 22):
            gif.seek(step)
            frame = np.asarray(gif.convert("RGB")).astype(int)
            for number, method in enumerate(("none", "imm")):
                (row,) = [row for row in result["rows"] if row["method"] == method and row.get("step") == step]
                y, x = HEAD + row["y"] * 24 + 12, number * (96 + 12) + row["x"] * 24 + 12
                assert abs(frame[y, x] - AGENT).max() < 30
