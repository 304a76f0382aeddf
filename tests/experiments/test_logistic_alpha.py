"""The cross-validation of α, by plain loops."""

import math

import pytest
import torch

from imm.experiments.logistic import alpha as logistic_alpha
from imm.experiments.logistic import runs as logistic
from imm.experiments.logistic.settings import WORLD
from imm.experiments.sampling import generator

SETTINGS = {**WORLD, **logistic_alpha.STUDY.settings, "runs": 4, "steps": 30, "folds": 3, "alphas": [0.1, 1.0, 10.0]}


def held_out_by_hand(alpha, run, data, ratio):
    """Cross-entropy and accuracy of each row, by a model that has seen only the other folds."""
    losses, right = [], []
    for row in range(data.x.shape[1]):
        others = [t for t in range(data.x.shape[1]) if t % 3 != row % 3]
        mine = logistic.Data(*(part[run : run + 1, others] for part in (data.x, data.y, data.target)))
        bias, *slopes = logistic.train({**SETTINGS, "alpha": alpha}, mine, "imm", ratio)[0].tolist()
        logit = bias + sum(w * x for w, x in zip(slopes, data.x[run, row].tolist(), strict=True))
        sign = 1 if data.y[run, row] > 0.5 else -1
        losses.append(math.log1p(math.exp(-sign * logit)))
        right.append(100.0 * (sign * logit > 0))
    return sum(losses) / len(losses), sum(right) / len(right)


@pytest.mark.parametrize("alpha", [0.1, 10.0])
def test_each_row_is_predicted_by_a_model_of_the_other_folds(alpha):
    data = logistic.draw(SETTINGS, 2, 7, generator(SETTINGS, "test"))
    risk, right = logistic_alpha.cross_validated({**SETTINGS, "alpha": alpha}, data, 0.6)
    for run in range(2):
        assert (risk[run].item(), right[run].item()) == pytest.approx(held_out_by_hand(alpha, run, data, 0.6), rel=1e-4)


def rows_of(quantity, rows, n):
    return [row for row in rows if row["quantity"] == quantity and row["n"] == n]


def test_each_data_set_chooses_the_alpha_of_least_held_out_risk():
    rows = logistic_alpha.run(SETTINGS, {"method": "imm", "n": 6})
    source = generator(SETTINGS, logistic_alpha.NAME, 6)
    data = logistic.draw(SETTINGS, 4, 6, source)
    test = logistic.draw(SETTINGS, 4, SETTINGS["test_points"], source)
    ratio = -0.0111 * 6 + 0.818
    chosen, gains = [], []
    for run in range(4):
        risks = {alpha: held_out_by_hand(alpha, run, data, ratio)[0] for alpha in SETTINGS["alphas"]}
        chosen.append(min(risks, key=risks.get))
        own, one = (
            100 * logistic.accuracy(logistic.train({**SETTINGS, "alpha": alpha}, data, "imm", ratio), test)[run]
            for alpha in (chosen[-1], 1.0)
        )
        gains.append(float(own - one))
    shares = {row["alpha"]: row["value"] for row in rows_of(logistic_alpha.CHOSEN, rows, 6)}
    assert shares == {alpha: 25.0 * chosen.count(alpha) for alpha in SETTINGS["alphas"]}
    (own,) = rows_of(logistic_alpha.OWN, rows, 6)
    assert own["value"] == pytest.approx(sum(gains) / 4, abs=1e-9)
    assert own["gain_error"] == pytest.approx(torch.tensor(gains).double().std().item() / 2, rel=1e-6)


def test_the_best_alpha_has_the_least_average_risk():
    risks = {5: {0.1: 0.5, 1.0: 0.4, 10.0: 0.6}, 10: {0.1: 0.1, 1.0: 0.3, 10.0: 0.2}}
    given = [
        {"method": "imm", "n": n, "quantity": logistic_alpha.RISK, "alpha": alpha, "mean": risk}
        for n, curve in risks.items()
        for alpha, risk in curve.items()
    ]
    rows = logistic_alpha.with_best(given)
    assert {row["n"]: row["value"] for row in rows[len(given) :]} == {5: 1.0, 10: 0.1, "all": 0.1}
