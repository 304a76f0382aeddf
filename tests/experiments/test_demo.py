import numpy as np
from sklearn.linear_model import LogisticRegression

from imm.experiments.demo import fit_linear


def rows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    y = (x @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=n) > 0).astype(np.int64)
    return x, y, 1 / (1 + np.exp(-x[:, 0]))


def test_lambda_zero_is_scikit_learns_logistic_regression():
    x, y, old = rows()
    expected = LogisticRegression(C=1 / 2.0, tol=1e-10, max_iter=10_000).fit(x, y)
    for method in ("full-only", "imm", "reverse-kd"):
        found = fit_linear(x, y, old, [0], 2.0, method, 0.0)
        np.testing.assert_allclose(found, [*expected.coef_[0], expected.intercept_[0]], atol=1e-3)


def test_a_large_lambda_brings_the_induced_model_to_the_old_one():
    x, y, old = rows()

    def gap(lam):
        weights = fit_linear(x, y, old, [0], 1.0, "imm", lam)
        short = np.repeat(x[:, None, :1], len(x), 1)
        pairs = np.concatenate([short, np.repeat(x[None, :, 1:], len(x), 0)], 2)
        q = 1 / (1 + np.exp(-(pairs @ weights[:-1] + weights[-1])))
        near = np.exp(-np.abs(x[:, :1] - x[:, 0]))
        return np.abs((near * q).sum(1) / near.sum(1) - old).mean()

    assert gap(100.0) < 0.5 * gap(0.0)
