"""Linear full models: logistic regression by L-BFGS, and ridge regression in closed form."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import BaseEstimator

from imm.tabular.distinct_rows import parts
from imm.tabular.engines.base import Problem
from imm.tabular.engines.linear_risk import SplitRisk

Array = NDArray[Any]

WIDEST = 2000
"""Features up to which second moments of all pairs are used."""


@dataclass(frozen=True)
class LinearFit:
    """Weights ``[d, outputs]`` and intercepts ``[outputs]``."""

    weight: Array
    bias: Array

    def scores(self, x: Array) -> Array:
        """``x @ weight + bias``."""
        found: Array = x @ self.weight.astype(x.dtype, copy=False) + self.bias.astype(x.dtype, copy=False)
        return found

    def arrays(self) -> dict[str, Array]:
        """Both."""
        return {"weight": self.weight, "bias": self.bias}


MEMORY = 20
"""Steps that L-BFGS remembers."""


class Linear(BaseEstimator):  # type: ignore[misc]
    """``mean cross-entropy + ½ l2 |w|² / n + λ · IMM``, or half the squared error; the intercept is not penalised.

    With λ = 0 it is scikit-learn's ``LogisticRegression(C=1/l2)`` or ``Ridge(alpha=l2)``. Deterministic.

    Args:
        max_iter: L-BFGS steps at most.
        tol: the length of the gradient at the end, in coordinates in which the curvature is about one.
    """

    l2s = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)

    def __init__(self, max_iter: int = 500, tol: float = 1e-6) -> None:
        self.max_iter = max_iter
        self.tol = tol

    def folds(self, n: int) -> tuple[int, int]:
        """Five, dealt twice where rows are few: more often takes longer and chooses no better."""
        return 5, 2 if n <= 2000 else 1

    def prepare(self, problem: Problem, seed: int = 0) -> "Logistic | Ridge":  # noqa: ARG002 - nothing is random
        """What every strength shares."""
        return Logistic(problem, self.max_iter, self.tol) if problem.n_classes else Ridge(problem)

    def restore(self, arrays: dict[str, Array], n_features: int, n_classes: int) -> LinearFit:  # noqa: ARG002
        """From :meth:`LinearFit.arrays`."""
        return LinearFit(arrays["weight"], arrays["bias"])


class Logistic:
    """Logistic regression on one problem; two classes have one vector of weights, more have one each."""

    def __init__(self, problem: Problem, max_iter: int, tol: float) -> None:
        self.problem, self.max_iter, self.tol = problem, max_iter, tol
        x = problem.x
        self._share = problem.weight / problem.weight.sum()
        self._short = np.flatnonzero(problem.short)
        self._x_short = np.ascontiguousarray(x[:, self._short])
        self._risk = None
        if problem.pairs is not None and problem.target is not None:
            self._risk = SplitRisk(problem.pairs, problem.target)
        self._moments = second_moments(x, self._share)

    def value_and_gradient(self, fit: LinearFit, l2: float, lam: float) -> tuple[float, LinearFit]:
        """The objective   (Eq. main-objective) and its gradient."""
        x, short, dtype = self.problem.x, self._short, self.problem.x.dtype
        n = self.problem.weight.sum()
        z = fit.scores(x)
        value, back = self._cross_entropy(z if self.problem.offset is None else z + self.problem.offset)
        back_short = back
        if lam and self._risk is not None and self.problem.pairs is not None:
            part = self._x_short @ fit.weight[short].astype(dtype, copy=False)
            risk, by_short, by_extended = self._risk(part[self.problem.pairs.row], z - part)
            value += lam * risk
            back_short = back.copy()
            back_short[self.problem.pairs.row] += lam * by_short
            back = back + lam * by_extended
        gradient = x.T @ back.astype(dtype, copy=False)
        if back_short is not back:
            gradient[short] = self._x_short.T @ back_short.astype(dtype, copy=False)
        value += 0.5 * l2 / n * float(np.vdot(fit.weight, fit.weight))
        return value, LinearFit(gradient + l2 / n * fit.weight, back.sum(0))

    def _cross_entropy(self, z: Array) -> tuple[float, Array]:
        share, y = self._share, self.problem.y
        if z.shape[1] == 1:
            z = z[:, 0]
            value = share @ (np.logaddexp(0, z) - y * z)
            return float(value), (share * (expit(z) - y))[:, None]
        rows = np.arange(len(z))
        z = z - z.max(1, keepdims=True)
        q = np.exp(z)
        total = q.sum(1)
        back = q * (share / total)[:, None]
        back[rows, y] -= share
        return float(share @ (np.log(total) - z[rows, y])), back

    def solve(self, l2: float, lam: float, start: LinearFit | None = None, precise: bool = True) -> LinearFit:
        """L-BFGS from ``start``, in coordinates in which the objective's curvature is about one."""
        d, k = self.problem.x.shape[1], self.problem.n_outputs
        to_weights = self._coordinates(l2, lam)

        def unpack(u: Array) -> LinearFit:
            both = to_weights @ u.reshape(d + 1, k)
            return LinearFit(both[:-1], both[-1])

        def objective(u: Array) -> tuple[float, Array]:
            value, gradient = self.value_and_gradient(unpack(u), l2, lam)
            both = np.empty((d + 1, k))
            both[:-1], both[-1] = gradient.weight, gradient.bias
            return value, (to_weights.T @ both).ravel()

        u = np.zeros((d + 1) * k)
        if start is not None:
            u = self._to_coordinates(to_weights, np.vstack([start.weight, start.bias])).ravel()
        # Strengths are compared by losses added up over rows: the more rows, the less may each be off.
        tol = self.tol if precise else max(self.tol, 0.01 / len(self.problem.x))
        tol = max(tol, 10 * float(np.finfo(self.problem.x.dtype).eps))  # float32 rows cannot be summed more exactly
        options = {"maxcor": MEMORY, "gtol": tol / np.sqrt(len(u)), "ftol": 1e-3 * tol, "maxiter": self.max_iter}
        return unpack(minimize(objective, u, jac=True, method="L-BFGS-B", options=options).x)

    def _coordinates(self, l2: float, lam: float) -> Any:
        """``[d + 1, d + 1]``: coordinates u to weights, so that the quarter of the second moments becomes one."""
        d = self.problem.x.shape[1]
        penalty = np.full(d + 1, l2 / self.problem.weight.sum())
        penalty[-1] = 0.0
        if self._moments.ndim == 1:
            return sparse.diags_array(1 / np.sqrt(0.25 * self._moments + penalty + 1e-9))
        curvature = 0.25 * self._moments
        if self._risk is not None:
            block = np.ix_([*self._short, d], [*self._short, d])
            curvature[block] *= 1 + lam
        curvature[np.diag_indices(d + 1)] += penalty + 1e-9 * (1 + np.diag(curvature))
        lower = linalg.cholesky(curvature, lower=True, check_finite=False)
        return linalg.solve_triangular(lower, np.eye(d + 1), lower=True, trans="T", check_finite=False)

    @staticmethod
    def _to_coordinates(to_weights: Any, both: Array) -> Array:
        if sparse.issparse(to_weights):
            scaled: Array = both / to_weights.diagonal()[:, None]
            return scaled
        found: Array = linalg.solve_triangular(to_weights, both, lower=False, check_finite=False)
        return found


class Ridge:
    """Ridge regression on one problem: the induced mean is linear in the weights, so IMM only adds rows.

    ``½ mean (y - f)² + ½ l2 |w|² / n + ½ λ Σ_t share_t (Σ_i w_ti f(short_t, extended_i) - P̂(short_t))²``
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        share = problem.weight / problem.weight.sum()
        x = np.asarray(problem.x, dtype=np.float64)
        y = problem.y if problem.offset is None else problem.y - problem.offset[:, 0]
        self._moments, self._right = _moments(x, share, y)
        self._induced = None
        if problem.pairs is not None and problem.target is not None:
            pairs = problem.pairs
            shape = len(pairs.row), len(x)
            mean = sparse.csr_array((pairs.weight, pairs.extended, pairs.start), shape=shape) @ x
            mean[:, problem.short] = x[pairs.row][:, problem.short]
            self._induced = _moments(mean, pairs.share, problem.target[:, 0])

    def solve(self, l2: float, lam: float, start: LinearFit | None = None, precise: bool = True) -> LinearFit:  # noqa: ARG002
        """The minimum, from the normal equations."""
        left, right = self._moments.copy(), self._right.copy()
        if lam and self._induced is not None:
            left += lam * self._induced[0]
            right += lam * self._induced[1]
        d = len(left) - 1
        left[np.arange(d), np.arange(d)] += l2 / self.problem.weight.sum()
        try:
            found = linalg.solve(left, right, assume_a="pos", check_finite=False)
        except linalg.LinAlgError:
            found = linalg.lstsq(left, right)[0]
        return LinearFit(found[:-1, None], found[-1:])


def _moments(x: Array, share: Array, y: Array) -> tuple[Array, Array]:
    ones = np.column_stack([x, np.ones(len(x))])
    weighted = ones.T * share
    return weighted @ ones, weighted @ y


def second_moments(x: Array, share: Array) -> Array:
    """``Σ share x xᵀ`` with a last feature of ones, ``[d + 1, d + 1]``; its diagonal if features are very many."""
    d = x.shape[1]
    if d > WIDEST:
        return np.append(share @ x**2, 1.0)
    moments = np.zeros((d + 1, d + 1))
    for part in parts(len(x)):
        weighted = x[part] * share[part, None].astype(x.dtype, copy=False)
        moments[:d, :d] += weighted.T @ x[part]
        moments[d, :d] += weighted.sum(0)
    moments[:d, d] = moments[d, :d]
    moments[d, d] = 1.0
    return moments
