"""λ and l2 chosen on few rows."""

import numpy as np
import pytest

from imm.tabular import IMMClassifier, IMMRegressor
from imm.tabular.selection import SHARES, choose, deal, weigh
from imm.tabular.tasks import Classification, Regression
from tests.tabular.tables import table


class Made:
    """A fold whose losses are known."""

    def __init__(self, test, losses):
        self.test, self._losses = test, losses

    def solve(self, l2, lam, start):
        return l2, lam

    def losses(self, fit):
        return self._losses(*fit)[self.test]


def add_up(losses, n):
    return -losses


def chosen(losses, n=40, l2s=(1.0, 10.0, 100.0), lams=(0.0, 1.0, 10.0)):
    return choose([Made(np.arange(n)[i::2], losses) for i in (0, 1)], np.ones(n), l2s, lams, add_up)


def test_the_lowest_loss_wins_where_it_is_sure():
    found = chosen(lambda l2, lam: np.full(40, abs(np.log10(l2) - 1) + abs(lam - 10.0)))
    assert (found.lam, found.l2) == (pytest.approx(10.0), 10.0)
    assert found.mean == pytest.approx([10.0, 9.0, 0.0])
    assert found.counts == pytest.approx([0.0, 0.0, 1.0])


def test_lam_is_a_mean_where_nothing_is_sure():
    """Losses so near that all candidates count alike: the mean of the shares 0, 1/2 and 10/11."""
    found = chosen(lambda l2, lam: np.full(40, 1.0 - 1e-9 * (lam > 0)))
    share = (0 + 1 / 2 + 10 / 11) / 3
    assert found.counts == pytest.approx(np.full(3, 1 / 3))
    assert found.lam == pytest.approx(share / (1 - share))


def test_a_quarter_is_expected_of_the_old_models_share():
    assert (SHARES[0], SHARES[-1]) == (0.0, 1.0)
    assert np.all(np.diff(np.diff(SHARES)) > 0)
    assert np.mean(SHARES) == pytest.approx(1 / 4, abs=0.01)


def test_a_lead_because_of_one_row_counts_for_less():
    """The same mean loss, once from every row and once from a single one."""
    even, one = np.full(40, 0.2), np.eye(40)[0] * 8.0
    sure, doubtful = (weigh(np.stack([lead, np.zeros(40)]), np.ones(40), add_up) for lead in (even, one))
    assert sure[1] > 0.99
    assert 0.6 < doubtful[1] < 0.95


def test_candidates_count_by_their_likelihood_if_rows_are_alike():
    losses = np.tile([[0.5], [0.52], [0.6]], 10)
    expected = np.exp(-10 * losses[:, 0])
    assert weigh(losses, np.ones(10), Classification(np.arange(2)).log_likelihood) == pytest.approx(
        expected / expected.sum()
    )
    expected = losses[:, 0] ** -5.0
    assert weigh(losses, np.ones(10), Regression().log_likelihood) == pytest.approx(expected / expected.sum())


def test_weights_of_next_to_nothing_say_nothing():
    assert weigh(np.array([[1.0, 2.0], [0.0, 0.0]]), np.full(2, 1e-9), add_up) == pytest.approx([0.5, 0.5])


def test_the_order_of_rows_does_not_matter():
    rng = np.random.default_rng(0)
    losses, weight, order = rng.random((3, 20)), rng.random(20), rng.permutation(20)
    assert weigh(losses, weight, add_up) == pytest.approx(weigh(losses[:, order], weight[order], add_up), abs=1e-12)


@pytest.mark.parametrize("task", [Classification(np.arange(2)), Classification(np.arange(3)), Regression()])
def test_slopes_are_those_of_mixing(task):
    rng = np.random.default_rng(0)
    outputs = {2: 1, 3: 3}.get(task.n_classes, 1)
    scores = rng.normal(size=(10, outputs))
    old = rng.dirichlet(np.ones(task.n_classes), 10) if task.n_classes else rng.normal(size=(10, 1))
    y = rng.integers(task.n_classes, size=10) if task.n_classes else rng.normal(size=10)
    step = 1e-6
    expected = (task.losses(task.mixed(scores, old, step), y) - task.losses(scores, y)) / step
    np.testing.assert_allclose(task.slopes(scores, old, y), expected, rtol=1e-3, atol=1e-5)


def test_the_penalty_is_chosen_with_lam():
    """With λ the best penalty is another: the walk goes there."""
    found = chosen(lambda l2, lam: np.full(40, abs(np.log10(l2) - (0 if lam else 2)) - (lam > 0)))
    assert (found.l2, found.l2_without) == (1.0, 100.0)
    assert found.lam == pytest.approx(31 / 13)  # both λ are alike: the mean of the shares 1/2 and 10/11


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
    assert model.fit(t.x, t.y).choice_.misleading
    assert model.lam_ == 0


def test_a_wrong_old_model_that_is_kept_has_no_share(seed):
    t = table(seed, n=100, short=3)
    model = IMMClassifier(short_features=t.short, restricted_model=lambda x: 1 - t.old.predict_proba(x), keep_old=True)
    assert model.fit(t.x, t.y).share_ == 0
    model.set_params(restricted_model=t.old)
    assert model.fit(t.x, t.y).share_ > 0


def test_a_good_old_model_that_is_too_sure_of_itself_is_tried(seed):
    """It says 0 or 1, and is wrong now and then: infinitely surprised, but not misleading."""
    t = table(seed, n=60, features=20, short=3)
    model = IMMClassifier(short_features=t.short, restricted_model=lambda x: t.old.predict(x).astype(float))
    assert not model.fit(t.x, t.y).choice_.misleading
    assert model.lam_ > 0


def test_more_rows_than_are_needed_to_choose(monkeypatch):
    monkeypatch.setattr("imm.tabular.fitting.ENOUGH", 50)
    t = table(n=200)
    model = IMMClassifier(short_features=t.short, restricted_model=t.old).fit(t.x, t.y)
    assert model.lam_ == pytest.approx(model.choice_.lam * 50 / 200)


def test_the_order_of_very_many_rows_does_not_matter_either(monkeypatch):
    monkeypatch.setattr("imm.tabular.fitting.ENOUGH", 50)
    t = table(n=200)
    order = np.random.default_rng(0).permutation(200)
    model = IMMClassifier(short_features=t.short, restricted_model=t.old)
    assert model.fit(t.x, t.y).lam_ == pytest.approx(model.fit(t.x[order], t.y[order]).lam_, rel=1e-3)
