import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from imm.tabular import IMMClassifier, IMMRegressor, Linear
from imm.tabular.engines import engine_for
from imm.tabular.rivals import METHODS, NEED_OLD, RATIOS, Table, full_only_and_imm, losses_of
from imm.tabular.tasks import Classification, Regression
from imm.tabular.training import Setup
from tests.tabular.tables import table


@pytest.fixture(autouse=True)
def two_folds(monkeypatch):
    monkeypatch.setattr(Linear, "folds", lambda self, n: (2, 2))


def problem(classes=2, n=60, seed=0):
    made = table(seed, n=n, features=5, classes=classes)
    task = Classification(np.arange(classes)) if classes else Regression()
    short = np.arange(5) < 2
    x_test, y_test = made.x_test[:300], made.y_test[:300]
    old, old_test = (task.ask(made.old, x[:, :2]) for x in (made.x, x_test))
    setup = Setup(task, engine_for("linear"), short, False, 32, 1.0, True, 0)
    return Table(made.x, made.y, old), Table(x_test, y_test, old_test), setup


@pytest.mark.parametrize(
    ("name", "classes"), [*((name, classes) for name in METHODS for classes in (0, 2)), ("imm", 3), ("stacking", 3)]
)
def test_every_method_predicts_and_is_above_chance(name, classes):
    rows, test, setup = problem(classes)
    found = METHODS[name](rows, setup).predict(test.x, test.old)
    assert found.shape == (300, max(classes, 1))
    if classes:
        np.testing.assert_allclose(found.sum(1), 1)
    chance = np.full_like(test.old, 1 / classes if classes else rows.y.mean())
    assert losses_of(found, test.y).mean() < losses_of(chance, test.y).mean()


@pytest.mark.parametrize("name", METHODS)
def test_the_old_model_is_asked_only_where_it_is_said(name):
    rows, test, setup = problem(n=30)
    good = 0.1 + 0.8 * (np.arange(2) == rows.y[:, None])  # so good that it is mixed in
    predict = METHODS[name](Table(rows.x, rows.y, good), setup).predict
    same = np.array_equal(predict(test.x, test.old), predict(test.x, test.old[::-1]))
    assert same == (name not in NEED_OLD)


def test_full_only_is_scikit_learns_model_with_some_penalty():
    rows, test, setup = problem()
    found = METHODS["full-only"](rows, setup).predict(test.x, test.old)
    scale = StandardScaler().fit(rows.x)
    distances = []
    for l2 in setup.engine.l2s:
        twin = LogisticRegression(C=1 / l2, tol=1e-8).fit(scale.transform(rows.x), rows.y)
        distances.append(np.abs(twin.predict_proba(scale.transform(test.x)) - found).max())
    assert min(distances) < 1e-4


def test_imm_is_the_estimator():
    rows, test, setup = problem()
    twin = IMMClassifier(short_features=[0, 1], random_state=0).fit(rows.x, rows.y, restricted_proba=rows.old)
    exact = Setup(**{**vars(setup), "seed": twin._setup.seed})
    found = METHODS["imm"](rows, exact).predict(test.x, test.old)
    np.testing.assert_array_equal(found, twin.predict_proba(test.x))


def test_reverse_kd_is_the_estimator_with_all_columns_short():
    rows, test, setup = problem(classes=0)
    twin = IMMRegressor(random_state=0).fit(rows.x, rows.y, restricted_pred=rows.old[:, 0])
    exact = Setup(**{**vars(setup), "seed": twin._setup.seed})
    found = METHODS["reverse-kd"](rows, exact)
    assert found.strength == twin.lam_
    np.testing.assert_allclose(found.predict(test.x, test.old)[:, 0], twin.predict(test.x))


def test_interpolation_is_full_only_where_the_old_model_is_noise_and_old_only_where_it_knows():
    rows, test, setup = problem()
    rng = np.random.default_rng(0)
    noise = rng.dirichlet([0.2, 0.2], size=len(rows.x))
    assert METHODS["interpolation"](Table(rows.x, rows.y, noise), setup).strength <= 0.2
    known = np.where(np.arange(2) == rows.y[:, None], 0.999, 0.001)
    found = METHODS["interpolation"](Table(rows.x, rows.y, known), setup)
    assert found.strength == RATIOS[-1]
    np.testing.assert_array_equal(found.predict(test.x, test.old), test.old)


def test_stacking_of_a_regression_is_ridge_with_one_more_column():
    rows, test, setup = problem(classes=0)
    found = METHODS["stacking"](rows, setup).predict(test.x, test.old)[:, 0]
    both, both_test = np.hstack([rows.x, rows.old]), np.hstack([test.x, test.old])
    scale = StandardScaler().fit(both)
    distances = []
    for l2 in setup.engine.l2s:
        twin = Ridge(alpha=l2).fit(scale.transform(both), rows.y)
        distances.append(np.abs(twin.predict(scale.transform(both_test)) - found).max())
    assert min(distances) < 1e-6


def test_full_only_and_imm_can_share_a_search():
    rows, test, setup = problem()
    for name, shared in zip(("full-only", "imm"), full_only_and_imm(rows, setup), strict=True):
        alone = METHODS[name](rows, setup)
        assert shared.strength == alone.strength
        np.testing.assert_array_equal(shared.predict(test.x, test.old), alone.predict(test.x, test.old))
