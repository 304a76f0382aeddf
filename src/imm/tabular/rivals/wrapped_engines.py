"""Full models around a full model: what rivals change of its problem before it is trained."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from imm.tabular.distinct_rows import Array
from imm.tabular.engines.base import Fitted, Problem, Solver, Trainer
from imm.tabular.fitting import Scaling


@dataclass(frozen=True)
class Around(ABC):
    """A full model that makes another problem of the one it is given; penalties and folds are the inner model's."""

    inner: Trainer

    @property
    def l2s(self) -> tuple[float, ...]:
        """The inner model's."""
        return self.inner.l2s

    def folds(self, n: int) -> tuple[int, int]:
        """The inner model's."""
        return self.inner.folds(n)

    @abstractmethod
    def prepare(self, problem: Problem, seed: int) -> Solver:
        """A solver of the other problem."""


@dataclass(frozen=True)
class Noised(Around):
    """``mean cross-entropy((1 - ratio) y + ratio P̂, Q) + ½ l2 |w|² / n`` with ``ratio = λ/(1+λ)``   (Eq. noising).

    It is ``1 / (1 + λ)`` times the objective of reverse KD with ``1 + λ`` times the penalty.
    """

    def prepare(self, problem: Problem, seed: int) -> Solver:
        """The inner model's solver, its penalty scaled."""
        return _Scaled(self.inner.prepare(problem, seed))


@dataclass(frozen=True)
class _Scaled:
    inner: Solver

    def solve(self, l2: float, lam: float, start: Any = None, precise: bool = True) -> Any:
        return self.inner.solve(l2 * (1 + lam), lam, start, precise)


@dataclass(frozen=True)
class AsFeature(Around):
    """The old model's word, where it is kept, is a feature like any other: trees do not begin from it."""

    def prepare(self, problem: Problem, seed: int) -> Solver:
        """The inner model's solver."""
        return self.inner.prepare(replace(problem, n_old=0), seed)


@dataclass(frozen=True)
class Added(Around):
    """A full model that is added to scores given in the last columns; they have no weights of their own.

    The strength is how many times harder than the others a linear model's short weights are pulled to 0: short
    columns are divided by its root.

    Args:
        inner: the full model.
        n_scores: how many columns the given scores are.
        standardize: whether the other columns are scaled here; the given scores must not be.
    """

    n_scores: int
    standardize: bool

    def prepare(self, problem: Problem, seed: int) -> Solver:
        """A solver that makes the inner one's problem for each strength when it is asked for."""
        return _Adding(self, problem, seed)


class _Adding:
    def __init__(self, engine: Added, problem: Problem, seed: int) -> None:
        self._engine, self._seed = engine, seed
        x = problem.x[:, : -engine.n_scores]
        self._scaling = Scaling.of(x, problem.weight, engine.standardize)
        scores = problem.x[:, -engine.n_scores :]
        self._problem = replace(problem, x=x, short=problem.short[: -engine.n_scores], offset=scores, n_old=0)
        self._solvers: dict[float, tuple[Scaling, Solver]] = {}

    def solve(self, l2: float, lam: float, start: Any = None, precise: bool = True) -> "_Sum":
        if lam not in self._solvers:
            pull = np.where(self._problem.short, lam**0.5, 1.0)
            scaling = replace(self._scaling, scale=self._scaling.scale * pull)
            problem = replace(self._problem, x=scaling(self._problem.x))
            self._solvers[lam] = scaling, self._engine.inner.prepare(problem, self._seed)
        scaling, solver = self._solvers[lam]
        begin = start.inner if start is not None and start.scaling is scaling else None
        return _Sum(solver.solve(l2, lam, begin, precise), scaling, self._engine.n_scores)


@dataclass(frozen=True)
class _Sum:
    inner: Fitted
    scaling: Scaling
    n_scores: int

    def scores(self, x: Array) -> Array:
        return self.inner.scores(self.scaling(x[:, : -self.n_scores])) + x[:, -self.n_scores :]
