"""The planes that are drawn are the study's own fits, and their angles are what they are called."""

import pytest
import torch

from imm.experiments.logistic import planes as logistic_planes
from imm.experiments.logistic import runs as logistic
from imm.strength import Linear

SETTINGS = {**logistic_planes.STUDY.settings, "n": 5, "runs": 7, "steps": 40, "curve": 5, "grid": 60}
ROWS = logistic_planes.run(SETTINGS, {"method": "all"})


def rows_of(quantity, method):
    return [row for row in ROWS if (row["quantity"], row["method"]) == (quantity, method)]


def test_a_drawn_plane_is_that_of_training_on_the_drawn_rows():
    points = rows_of(logistic_planes.POINT, "data")
    x = torch.tensor([[[row[name] for name in ("x1", "x2", "x3")] for row in points]])
    y = torch.tensor([[row["value"] for row in points]])
    data = logistic.Data(x, y, logistic.bayes(SETTINGS, x[..., 0]))
    ratio = Linear(*SETTINGS["schedule"]).ratio(5)
    for method in logistic_planes.METHODS:
        drawn = torch.tensor([row["value"] for row in rows_of(logistic_planes.PLANE, method)])
        torch.testing.assert_close(drawn, logistic.train(SETTINGS, data, method, ratio)[0], rtol=1e-4, atol=1e-4)
    *normal, offset = SETTINGS["plane"]
    assert [row["value"] for row in rows_of(logistic_planes.PLANE, "true")] == [offset, *normal]
    above = x[0] @ torch.tensor(normal) + offset > 0
    assert above.float().tolist() == y[0].tolist()


def test_a_curve_is_the_models_mean_over_the_slice():
    weights = torch.tensor([row["value"] for row in rows_of(logistic_planes.PLANE, "imm")])
    rest = torch.rand(100_000, 2, generator=torch.Generator().manual_seed(0))
    for row in rows_of(logistic_planes.INDUCED, "imm"):
        mean = torch.sigmoid(weights[0] + weights[1] * row["x1"] + rest @ weights[2:]).mean().item()
        assert row["value"] == pytest.approx(mean, abs=5e-3)
    places = torch.tensor([row["x1"] for row in rows_of(logistic_planes.INDUCED, "restricted")])
    values = torch.tensor([row["value"] for row in rows_of(logistic_planes.INDUCED, "restricted")])
    torch.testing.assert_close(values, logistic.bayes(SETTINGS, places))


def test_angles_of_planes_turned_by_hand():
    true = torch.tensor([0.0, 1.0, 1.0, 0.0])  # 45 degrees from the x1-axis
    weights = torch.tensor([[5.0, 0.0, 3.0, 0.0], [0.0, 2.0, 0.0, 2.0], [0.0, -1.0, -1.0, 0.0]])
    found = logistic_planes.angles(weights, true)
    torch.testing.assert_close(found[logistic_planes.LEAN], torch.tensor([45.0, 0.0, 90.0]))
    torch.testing.assert_close(found[logistic_planes.TURN], torch.tensor([0.0, 90.0, 180.0]))


def test_what_is_drawn_is_in_the_middle_of_every_figure():
    figures = [torch.tensor([1.0, 9.0, 5.0]), torch.tensor([30.0, 10.0, 20.0])]
    assert logistic_planes.nearest_to_medians(figures) == 2
