"""λ and l2 chosen on few rows."""

import numpy as np
import pytest

from imm.tabular import IMMClassifier, IMMRegressor
from imm.tabular.choosing import SHARES, choose, choose_share, deal
from tests.tabular.tables import table


class Made:
    """A fold whose losses are known."""

    def __init__(self, test, losses):
        self.test, self._losses = test, losses

    def solve(self, l2, lam, start):
        return l2, lam

    def losses(self, fit):
        return self._losses(*fit)[self.test]


def chosen(losses, n=40, l2s=(1.0, 10.0, 100.0), lams=(0.0, 1.0, 10.0)):
    return choose([Made(np.arange(n)[i::2], losses) for i in (0, 1)], np.ones(n), l2s, lams)


def test_the_lowest_loss_wins_where_it_is_sure():
    found = chosen(lambda l2, lam: np.full(40, abs(np.log10(l2) - 1) + abs(lam - 10.0)))
    assert (found.lam, found.l2) == (10.0, 10.0)
    assert found.gain == pytest.approx([0.0, 1.0, 10.0])


def test_a_gain_within_its_error_is_none():
    noise = np.random.default_rng(0).normal(size=40)
    noise -= noise.mean()
    found = chosen(lambda l2, lam: 1.0 + (lam > 0) * (noise - 0.02))
    assert found.lam == 0.0
    assert (found.gain[1:] > 0).all()


def test_the_penalty_is_chosen_with_lam():
    """With λ the best penalty is another: the walk goes there."""
    found = chosen(lambda l2, lam: np.full(40, abs(np.log10(l2) - (0 if lam else 2)) - (lam > 0)))
    assert (found.lam, found.l2, found.l2_without) == (1.0, 1.0, 100.0)


def test_every_stratum_is_spread():
    y = np.repeat([0, 1, 2], [50, 7, 1])
    fold = deal(y, 5, seed=0)
    assert np.ptp(np.bincount(fold)) <= 1
    assert np.ptp(np.bincount(fold[y == 1], minlength=5)) <= 1
    values = np.linspace(0, 1, 50)
    means = [values[deal(values, 5, seed=0) == i].mean() for i in range(5)]
    assert np.ptp(means) < 0.1


def loss(model, t):
    return -model.predict_log_proba(t.x_test)[np.arange(len(t.y_test)), t.y_test].mean()


def test_a_good_old_model_is_used(seed):
    t = table(seed, n=40, features=20, short=3)
    model = IMMClassifier(short_features=t.short, restricted_model=t.old).fit(t.x, t.y)
    assert model.lam_ > 0
    assert loss(model, t) < loss(
        IMMClassifier(short_features=t.short, lam=0.0, l2=model.choice_.l2_without).fit(t.x, t.y), t
    )


@pytest.mark.parametrize("kind", ["classifier", "regressor"])
def test_a_wrong_old_model_is_not(kind, seed):
    t = table(seed, n=100, classes=2 if kind == "classifier" else 0, short=3)
    if kind == "classifier":
        model = IMMClassifier(short_features=t.short, restricted_model=lambda x: 1 - t.old.predict_proba(x))
    else:
        model = IMMRegressor(short_features=t.short, restricted_model=lambda x: -t.old.predict(x))
    assert model.fit(t.x, t.y).lam_ <= 0.1


def test_more_rows_than_are_needed_to_choose(monkeypatch):
    monkeypatch.setattr("imm.tabular.training.ENOUGH", 50)
    t = table(n=200)
    model = IMMClassifier(short_features=t.short, restricted_model=t.old).fit(t.x, t.y)
    assert model.lam_ == pytest.approx(model.choice_.lam * 50 / 200)


def test_a_share_is_the_mean_by_likelihood_and_none_where_none_is_best():
    shares = np.array(SHARES)
    assert choose_share(-10 * shares) == 0.0
    assert choose_share(np.zeros(21)) == 0.0
    assert choose_share(-1e6 * (shares - 0.3) ** 2) == pytest.approx(0.3)
    assert choose_share(np.where(shares == 0, -1e-9, 0.0)) == pytest.approx(0.5)
    flat = choose_share(-2 * (shares - 0.3) ** 2)  # few rows: nothing is sure
    assert 0.3 < flat < 0.5
