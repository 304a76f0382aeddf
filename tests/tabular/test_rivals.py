from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from imm.tabular import IMMClassifier, IMMRegressor
from imm.tabular.engines import engine_for
from imm.tabular.engines.network import Network
from imm.tabular.fitting import Setup
from imm.tabular.rivals import BEGINS, METHODS, NEED_OLD, WITH_OLD_DATA, Table, losses_of
from imm.tabular.rivals.training_rows import OldRows
from imm.tabular.tasks import Classification, Regression
from tests.tabular.tables import table

ALL = {**METHODS, **WITH_OLD_DATA}


def problem(classes=2, n=60, seed=0):
    made = table(seed, n=n, features=5, classes=classes)
    task = Classification(np.arange(classes)) if classes else Regression()
    short = np.arange(5) < 2
    x_test, y_test = made.x_test[:300], made.y_test[:300]
    old, old_test = (task.ask(made.old, x[:, :2]) for x in (made.x, x_test))
    setup = Setup(task, engine_for("linear"), short, False, 32, 1.0, True, 0)
    return Table(made.x, made.y, old, OldRows(*made.plenty)), Table(x_test, y_test, old_test), setup


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        *((name, classes) for name in ALL for classes in (0, 2)),
        *((name, 3) for name in ("imm", "stacking", "offset", "noising", "imputed")),
    ],
)
def test_every_method_predicts_and_is_above_chance(name, classes):
    rows, test, setup = problem(classes)
    found = ALL[name](rows, setup).predict(test.x, test.old)
    assert found.shape == (300, max(classes, 1))
    if classes:
        np.testing.assert_allclose(found.sum(1), 1)
    chance = np.full_like(test.old, 1 / classes if classes else rows.y.mean())
    assert losses_of(found, test.y).mean() < losses_of(chance, test.y).mean()


@pytest.mark.parametrize("name", ALL)
def test_the_old_model_is_asked_only_where_it_is_said(name):
    rows, test, setup = problem()
    knows = np.where(np.arange(2) == rows.y[:, None], 0.9, 0.1)  # so that no method leaves it aside
    predict = ALL[name](replace(rows, old=knows), setup).predict
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
    np.testing.assert_allclose(found, twin.predict_proba(test.x), rtol=1e-9)


def test_reverse_kd_is_the_estimator_with_all_columns_short():
    rows, test, setup = problem(classes=0)
    twin = IMMRegressor(random_state=0).fit(rows.x, rows.y, restricted_pred=rows.old[:, 0])
    exact = Setup(**{**vars(setup), "seed": twin._setup.seed})
    found = METHODS["reverse-kd"](rows, exact)
    assert found.strength == pytest.approx(twin.lam_, rel=1e-9)
    np.testing.assert_allclose(found.predict(test.x, test.old)[:, 0], twin.predict(test.x))


def test_interpolation_is_full_only_where_the_old_model_is_noise_and_old_only_where_it_knows():
    rows, test, setup = problem()
    rng = np.random.default_rng(0)
    noise = rng.dirichlet([0.2, 0.2], size=len(rows.x))
    assert METHODS["interpolation"](Table(rows.x, rows.y, noise), setup).strength <= 0.2
    known = np.where(np.arange(2) == rows.y[:, None], 0.999, 0.001)
    found = METHODS["interpolation"](Table(rows.x, rows.y, known), setup)
    assert found.strength > 0.9
    full = METHODS["full-only"](rows, setup).predict(test.x, test.old)
    mixed = (1 - found.strength) * full + found.strength * test.old
    np.testing.assert_allclose(found.predict(test.x, test.old), mixed, atol=1e-9)


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


def test_stacking_of_trees_is_full_only_with_one_more_column():
    pytest.importorskip("lightgbm")
    rows, test, setup = problem(n=80)
    setup = replace(setup, engine=engine_for("lightgbm").set_params(n_trees=15))
    found = METHODS["stacking"](rows, setup).predict(test.x, test.old)
    wider = replace(setup, short=np.append(setup.short, True))
    both, both_test = (np.hstack([each.x, setup.task.old_features(each.old)]) for each in (rows, test))
    twin = METHODS["full-only"](replace(rows, x=both), wider).predict(both_test, test.old)
    np.testing.assert_allclose(found, twin, rtol=1e-12)


def with_strengths(monkeypatch, setup, module, name, strengths, l2=3.0):
    """One penalty, and only these strengths."""
    monkeypatch.setattr(f"imm.tabular.rivals.{module}.{name}", strengths)
    monkeypatch.setattr(type(setup.engine), "l2s", (l2,))


def scikit_learns(x, y, offset, l2, x_test, offset_test):
    """Logistic regression that is added to an offset: scikit-learn has none, so by a general solver."""
    scale = StandardScaler().fit(x)
    x, x_test = scale.transform(x), scale.transform(x_test)

    def objective(w):
        z = x @ w[:-1] + w[-1] + offset
        return np.logaddexp(0, z).sum() - y @ z + 0.5 * l2 * w[:-1] @ w[:-1]

    w = minimize(objective, np.zeros(x.shape[1] + 1), method="BFGS", options={"gtol": 1e-4}).x
    return 1 / (1 + np.exp(-(x_test @ w[:-1] + w[-1] + offset_test)))


def test_offset_is_a_model_added_to_the_old_log_odds(monkeypatch):
    rows, test, setup = problem()
    with_strengths(monkeypatch, setup, "methods", "PULLS", (1.0,))
    found = METHODS["offset"](rows, setup).predict(test.x, test.old)[:, 1]
    old, old_test = (np.log(p[:, 1] / p[:, 0]) for p in (rows.old, test.old))
    np.testing.assert_allclose(found, scikit_learns(rows.x, rows.y, old, 3.0, test.x, old_test), atol=1e-4)


def test_shrinking_keeps_the_old_weights_where_the_pull_is_strong(monkeypatch):
    rows, test, setup = problem()
    with_strengths(monkeypatch, setup, "methods", "PULLS", (1e9,))
    found = METHODS["shrinking"](rows, setup).predict(test.x, test.old)[:, 1]
    old, old_test = (np.log(p[:, 1] / p[:, 0]) for p in (rows.old, test.old))
    twin = scikit_learns(rows.x[:, 2:], rows.y, old, 3.0, test.x[:, 2:], old_test)
    np.testing.assert_allclose(found, twin, atol=1e-4)


@pytest.mark.parametrize("lam", [0.5, 3.0])
def test_noising_is_training_on_labels_of_which_some_are_the_old_models(monkeypatch, lam):
    rows, test, setup = problem()
    with_strengths(monkeypatch, setup, "methods", "LAMS", (lam,))
    found = METHODS["noising"](rows, setup).predict(test.x, test.old)[:, 1]
    ratio = lam / (1 + lam)
    scale = StandardScaler().fit(rows.x)
    x = scale.transform(rows.x)
    soft = (1 - ratio) * rows.y + ratio * rows.old[:, 1]
    twin = LogisticRegression(C=1 / 3.0, tol=1e-8).fit(
        np.vstack([x, x]), np.repeat([0, 1], len(x)), sample_weight=np.concatenate([1 - soft, soft])
    )
    np.testing.assert_allclose(found, twin.predict_proba(scale.transform(test.x))[:, 1], atol=1e-4)


@pytest.mark.parametrize("name", WITH_OLD_DATA)
def test_old_rows_are_rows_among_the_new_ones(monkeypatch, name):
    rows, test, setup = problem()
    with_strengths(monkeypatch, setup, "old_data", "WEIGHTS", (0.1,))
    found = WITH_OLD_DATA[name](rows, setup).predict(test.x, test.old)[:, 1]
    scale = StandardScaler().fit(rows.x)
    x, x_test = scale.transform(rows.x), scale.transform(test.x)
    old = (rows.old_rows.short - scale.mean_[:2]) / scale.scale_[:2]
    if name == "imputed":
        old = np.hstack([old, Ridge(alpha=1.0).fit(x[:, :2], x[:, 2:]).predict(old)])
    else:
        old = np.hstack([old, np.zeros((len(old), 3)), np.ones((len(old), 1))])
        x, x_test = (np.hstack([part, np.zeros((len(part), 1))]) for part in (x, x_test))
    twin = LogisticRegression(C=1 / 3.0, tol=1e-8).fit(
        np.vstack([x, old]),
        np.concatenate([rows.y, rows.old_rows.y]),
        sample_weight=np.repeat([1.0, 0.1], [len(x), len(old)]),
    )
    np.testing.assert_allclose(found, twin.predict_proba(x_test)[:, 1], atol=1e-4)


def test_without_old_rows_it_is_said():
    rows, _, setup = problem()
    with pytest.raises(ValueError, match="needs the rows the old model was fitted on"):
        WITH_OLD_DATA["pooled"](Table(rows.x, rows.y, rows.old), setup)


@pytest.mark.parametrize("name", BEGINS)
def test_what_methods_begin_with_is_shared_and_changes_nothing(name):
    rows, test, setup = problem()
    alone = ALL[name](rows, setup)
    shared = Table(rows.x, rows.y, rows.old, rows.old_rows)
    METHODS[BEGINS[name]](shared, setup)
    before = {l2: losses.copy() for l2, losses in shared.known[BEGINS[name]].items()}
    assert set(before) == set(setup.engine.l2s)
    after = ALL[name](shared, setup)
    assert after.strength == pytest.approx(alone.strength, rel=1e-3)
    np.testing.assert_allclose(after.predict(test.x, test.old), alone.predict(test.x, test.old), atol=1e-3)
    for l2, losses in rows.known[BEGINS[name]].items():
        np.testing.assert_allclose(losses, before[l2], atol=1e-3)


def test_trees_take_old_rows_and_offsets():
    pytest.importorskip("lightgbm")
    rows, test, setup = problem(n=80)
    setup = replace(setup, engine=engine_for("lightgbm").set_params(n_trees=15))
    for name in ("offset", "pooled", "imputed"):
        found = ALL[name](rows, setup).predict(test.x, test.old)
        assert losses_of(found, test.y).mean() < np.log(2)


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_a_network_learns_what_to_add(classes):
    """What is to be learnt on top of an old model that knows all is nothing."""
    made = table(0, n=100, features=3, classes=classes, short=3, noise=0.1)
    task = Classification(np.arange(classes)) if classes else Regression()
    setup = Setup(task, Network(hidden=(4,), epochs=40, l2s=(1.0,)), np.ones(3, dtype=bool), False, 32, 1.0, True, 0)
    rows = Table(made.x, made.y, task.ask(made.old, made.x))
    found = METHODS["offset"](rows, setup).predict(made.x_test, task.ask(made.old, made.x_test))
    chance = np.full_like(found, 1 / classes if classes else made.y.mean())
    assert losses_of(found, made.y_test).mean() < 0.3 * losses_of(chance, made.y_test).mean()


def test_rows_that_only_the_old_model_tells_apart():
    """Label smoothing matches something else than its word, and must not take them for one."""
    rows, test, setup = problem(n=80)
    alike = replace(rows, x=np.round(rows.x / 3), known={})
    for name in ("full-only", "label-smoothing"):
        found = METHODS[name](alike, setup).predict(test.x, test.old)
        assert np.isfinite(found).all()
