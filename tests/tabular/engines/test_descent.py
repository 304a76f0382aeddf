"""The minimiser against SciPy's, and where it stops."""

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from imm.tabular.engines.descent import minimise


def logistic(seed, n=40, d=6, l2=0.1):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, d)), rng.integers(2, size=n)

    def objective(w):
        z = x @ w
        value = (np.logaddexp(0, z) - y * z).mean() + 0.5 * l2 * w @ w
        return value, x.T @ (1 / (1 + np.exp(-z)) - y) / n + l2 * w

    return objective, np.zeros(d)


def counted(objective):
    def count(x):
        count.times += 1
        return objective(x)

    count.times = 0
    return count


def test_it_finds_what_scipy_finds(seed):
    objective, start = logistic(seed)
    found = minimise(objective, start, 1e-8, 0.0, 200)
    twin = minimize(objective, start, jac=True, method="L-BFGS-B", options={"gtol": 1e-10, "ftol": 0.0})
    np.testing.assert_allclose(found, twin.x, atol=1e-7)
    assert np.linalg.norm(objective(found)[1]) <= 1e-8


def test_a_curved_valley():
    found = minimise(lambda x: (rosen(x), rosen_der(x)), np.array([-1.2, 1.0, 0.5]), 1e-8, 0.0, 500)
    np.testing.assert_allclose(found, 1.0, atol=1e-7)


def test_a_quadratic_of_curvature_one_takes_one_step():
    objective = counted(lambda x: (0.5 * x @ x, x))
    np.testing.assert_array_equal(minimise(objective, np.array([3.0, -4.0]), 1e-9, 0.0, 50), 0.0)
    assert objective.times == 2


@pytest.mark.parametrize(("tol", "flat"), [(1e-1, 0.0), (0.0, 1e-3)])
def test_it_stops_early_where_it_may(tol, flat):
    objective, start = logistic(0)
    early, late = counted(objective), counted(objective)
    minimise(early, start, tol, flat, 200)
    minimise(late, start, 1e-8, 0.0, 200)
    assert early.times < late.times


def test_as_many_steps_as_it_is_given():
    objective = counted(logistic(0)[0])
    minimise(objective, np.zeros(6), 0.0, 0.0, 1)
    assert objective.times == 2


def test_a_step_too_long_is_shortened():
    """Curvature 100 where 1 was promised."""
    found = minimise(lambda x: (50 * float(x @ x), 100 * x), np.array([1.0, 2.0]), 1e-8, 0.0, 100)
    np.testing.assert_allclose(found, 0.0, atol=1e-9)


def test_an_objective_that_is_no_number_ends():
    found = minimise(lambda w: (float(w @ w) if w[0] > 0.9 else np.nan, 2 * w), np.ones(2), 1e-6, 0.0, 100)
    assert found[0] > 0.9
