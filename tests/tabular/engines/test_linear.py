"""The linear objective: against scikit-learn, against ``imm.functional``, numerically, and its identities."""

import numpy as np
import pytest
import torch
from scipy.optimize import approx_fprime
from sklearn.linear_model import LogisticRegression, Ridge

from imm import baselines, functional
from imm.inducers import Kernel
from imm.tabular import IMMClassifier, IMMRegressor
from imm.tabular.contexts import find_pairs
from imm.tabular.engines.base import Problem
from imm.tabular.engines.linear import Linear, LinearFit
from tests.tabular.tables import table

two_or_more = pytest.mark.parametrize("classes", [2, 3])


def problem(classes: int, seed: int = 0, n_neighbors: int | None = 5, n: int = 30, discrete: bool = False) -> Problem:
    t = table(seed, n=n, features=5, classes=classes)
    x = t.x.copy()
    if discrete:
        x[:, :2] = np.round(x[:, :2]).clip(-1, 0)
    weight = np.random.default_rng(seed).integers(1, 4, n).astype(float)
    short = np.arange(5) < 2
    pairs = find_pairs(x[:, short], weight, n_neighbors)
    old = t.old.predict_proba(x[pairs.row][:, short])
    return Problem(x, t.y, weight, classes, short, pairs, old)


def random_fit(p: Problem, seed: int, size: float = 1.0) -> LinearFit:
    rng = np.random.default_rng(seed)
    return LinearFit(size * rng.normal(size=(p.x.shape[1], p.n_outputs)), rng.normal(size=p.n_outputs))


@two_or_more
def test_without_imm_it_is_scikit_learns_logistic_regression(classes, seed):
    t = table(seed, n=80, classes=classes)
    weight = np.random.default_rng(seed).uniform(0.5, 2, 80)
    ours = IMMClassifier(lam=0.0, l2=2.0, standardize=False).fit(t.x, t.y, weight)
    theirs = LogisticRegression(C=0.5, tol=1e-10, max_iter=10_000).fit(t.x, t.y, weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(t.x), theirs.predict_proba(t.x), atol=1e-4)


def test_without_imm_it_is_scikit_learns_ridge(seed):
    t = table(seed, classes=0)
    weight = np.random.default_rng(seed).uniform(0.5, 2, 60)
    ours = IMMRegressor(lam=0.0, l2=2.0, standardize=False).fit(t.x, t.y, weight)
    theirs = Ridge(alpha=2.0).fit(t.x, t.y, weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-8)
    assert ours.intercept_ == pytest.approx(theirs.intercept_)


@two_or_more
@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("size", [1.0, 40.0])
def test_the_gradient_is_the_numerical_one(classes, discrete, size, seed):
    p = problem(classes, seed, discrete=discrete)
    solver, fit = Linear().prepare(p), random_fit(p, seed, size)

    def value(u):
        both = u.reshape(6, -1)
        return solver.value_and_gradient(LinearFit(both[:-1], both[-1]), 0.7, 1.3)[0]

    gradient = solver.value_and_gradient(fit, 0.7, 1.3)[1]
    numerical = approx_fprime(np.vstack([fit.weight, fit.bias]).ravel(), value, 1e-6)
    exact = np.vstack([gradient.weight, gradient.bias]).ravel()
    np.testing.assert_allclose(exact, numerical, atol=2e-5 * size)


@two_or_more
@pytest.mark.parametrize("n_neighbors", [5, None])
@pytest.mark.parametrize("discrete", [False, True])
def test_the_objective_is_the_cores(classes, n_neighbors, discrete, seed):
    """Pairs of features made one by one, ``induce``, ``matching_loss``, ``objective``."""
    p = problem(classes, seed, n_neighbors, discrete=discrete)
    fit = random_fit(p, seed)

    def log_q(x):
        z = torch.from_numpy(fit.scores(x))
        return torch.log_softmax(torch.cat([torch.zeros_like(z), z], 1) if classes == 2 else z, -1)

    risk = 0.0
    for t, row in enumerate(p.pairs.row):
        extended = p.pairs.extended[p.pairs.start[t] : p.pairs.start[t + 1]]
        mixed = p.x[extended].copy()
        mixed[:, p.short] = p.x[row, p.short]
        weights = torch.from_numpy(p.pairs.weight[p.pairs.start[t] : p.pairs.start[t + 1]])
        induced = functional.induce(log_q(mixed)[None], weights[None])
        risk += p.pairs.share[t] * functional.matching_loss(induced, torch.from_numpy(p.target[t : t + 1]))
    share = torch.from_numpy(p.weight)
    entropy = functional.weighted_mean(-log_q(p.x)[np.arange(len(p.y)), p.y], share)
    expected = functional.objective(entropy, risk, 1.7) + 0.5 * 0.3 / p.weight.sum() * (fit.weight**2).sum()
    assert Linear().prepare(p).value_and_gradient(fit, 0.3, 1.7)[0] == pytest.approx(float(expected), rel=1e-10)


@two_or_more
def test_many_parts_are_one(classes, monkeypatch):
    p = problem(classes)
    fit = random_fit(p, 0)
    whole = Linear().prepare(p).value_and_gradient(fit, 0.3, 1.7)
    monkeypatch.setattr("imm.tabular.engines.linear_risk.PART", 7)
    parts = Linear().prepare(p).value_and_gradient(fit, 0.3, 1.7)
    assert parts[0] == pytest.approx(whole[0], rel=1e-12)
    np.testing.assert_allclose(parts[1].weight, whole[1].weight, atol=1e-12)


def test_scores_beyond_all_digits_stay_finite():
    p = problem(2)
    fit = LinearFit(np.full((5, 1), 500.0), np.zeros(1))
    value, gradient = Linear().prepare(p).value_and_gradient(fit, 0.0, 1.0)
    assert np.isfinite(value)
    assert np.isfinite(gradient.weight).all()


@two_or_more
def test_one_context_is_reverse_kd(classes, seed):
    t = table(seed, n=20, classes=classes)
    p = problem(classes, seed, n_neighbors=1)
    fit = random_fit(p, seed)
    solver = Linear().prepare(p)
    z = torch.from_numpy(fit.scores(p.x))
    log_q = torch.log_softmax(torch.cat([torch.zeros_like(z), z], 1) if classes == 2 else z, -1)
    target = torch.from_numpy(p.target[p.pairs.code])
    weight = torch.from_numpy(p.weight)
    kd = baselines.reverse_kd(log_q, target, sample_weight=weight)
    kd = kd - functional.weighted_mean((target * target.log()).sum(-1), weight)
    with_imm, without = (solver.value_and_gradient(fit, 0.0, lam)[0] for lam in (1.0, 0.0))
    assert with_imm - without == pytest.approx(float(kd), rel=1e-9)
    # Where all columns are short the number of neighbours says nothing.
    alone, few = (
        IMMClassifier(restricted_model=lambda x: np.full((len(x), classes), 1 / classes), lam=1.0, n_neighbors=k)
        for k in (1, 8)
    )
    np.testing.assert_array_equal(alone.fit(t.x, t.y).coef_, few.fit(t.x, t.y).coef_)


def test_all_neighbours_are_the_dense_kernel(seed):
    t = table(seed, n=40)
    fits = [
        IMMClassifier(short_features=t.short, restricted_model=t.old, lam=2.0, n_neighbors=k).fit(t.x, t.y)
        for k in (40, None)
    ]
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, atol=1e-8)
    short = (t.x[:, :2] - t.x[:, :2].mean(0)) / t.x[:, :2].std(0)
    kernel = Kernel(short, alpha=1.0).every(short)
    pairs = find_pairs(t.x[:, :2], np.ones(40), None)
    np.testing.assert_allclose(pairs.weight.reshape(40, 40), kernel.weights.numpy()[pairs.row], atol=1e-12)


@pytest.mark.parametrize("lam", [2.0, "auto"])
@pytest.mark.parametrize("kind", ["reals", "groups"])
@pytest.mark.parametrize("classes", [0, 2])
def test_a_weight_of_two_is_the_row_twice(lam, kind, classes, seed):
    t = table(seed, n=50, classes=classes, features=4)
    x = t.x.copy()
    if kind == "groups":
        x[:, :2] = np.sign(x[:, :2])
    weight = np.random.default_rng(seed).integers(0, 4, 50)
    estimator = (IMMClassifier if classes else IMMRegressor)(
        short_features=t.short, restricted_model=t.old, lam=lam, n_neighbors=6
    )
    weighted = estimator.fit(x, t.y, weight).coef_
    rows = np.random.default_rng(seed).permutation(np.repeat(np.arange(50), weight))
    np.testing.assert_allclose(estimator.fit(x[rows], t.y[rows]).coef_, weighted, atol=1e-6)


def test_regression_matches_the_induced_mean(seed):
    """Against plain gradient descent's fixed point: the gradient of the definition is zero at the solution."""
    t = table(seed, n=30, classes=0, features=4)
    model = IMMRegressor(
        short_features=t.short, restricted_model=t.old, lam=3.0, l2=0.5, n_neighbors=7, standardize=False
    ).fit(t.x, t.y)
    pairs = find_pairs(t.x[:, :2], np.ones(30), 7)
    old = t.old.predict(t.x[:, :2])

    def objective(u):
        loss = 0.5 * np.mean((t.x @ u[:4] + u[4] - t.y) ** 2) + 0.5 * 0.5 / 30 * (u[:4] ** 2).sum()
        for c, row in enumerate(pairs.row):
            where = slice(pairs.start[c], pairs.start[c + 1])
            mixed = t.x[pairs.extended[where]].copy()
            mixed[:, :2] = t.x[row, :2]
            loss += 3.0 * 0.5 / 30 * (pairs.weight[where] @ (mixed @ u[:4] + u[4]) - old[row]) ** 2
        return loss

    at = np.append(model.coef_, model.intercept_)
    np.testing.assert_allclose(approx_fprime(at, objective, 1e-7), 0, atol=1e-5)
    assert objective(at) < min(objective(at + 1e-2 * d) for d in np.eye(5))


def test_the_order_of_rows_does_not_matter(seed):
    t = table(seed)
    estimator = IMMClassifier(short_features=t.short, restricted_model=t.old)
    order = np.random.default_rng(seed).permutation(len(t.y))
    first, second = estimator.fit(t.x, t.y).coef_, estimator.fit(t.x[order], t.y[order]).coef_
    # The old model is asked before rows are sorted, and may round otherwise where a row stands elsewhere.
    np.testing.assert_allclose(first, second, rtol=1e-6, atol=1e-9)


def test_float32_is_enough():
    t = table(n=200)
    estimator = IMMClassifier(short_features=t.short, restricted_model=t.old, lam=1.0)
    double, single = estimator.fit(t.x, t.y).coef_, estimator.fit(t.x.astype(np.float32), t.y).coef_
    np.testing.assert_allclose(double, single, atol=2e-3)


def test_equal_rows_are_one_even_if_the_old_models_answers_differ_by_rounding():
    t = table(0, n=30)
    x, y = np.vstack([t.x, t.x]), np.append(t.y, t.y)

    def asked_in_blocks(short):
        p = t.old.predict_proba(short)[:, 1]
        p[len(t.x) :] = np.nextafter(p[len(t.x) :], 1.0)
        return p

    twice = IMMClassifier(short_features=t.short, restricted_model=asked_in_blocks, lam=2.0, n_neighbors=6).fit(x, y)
    weighted = IMMClassifier(short_features=t.short, restricted_model=t.old, lam=2.0, n_neighbors=6)
    np.testing.assert_allclose(twice.coef_, weighted.fit(t.x, t.y, np.full(30, 2.0)).coef_, atol=1e-6)
