"""Methods that need the rows the old model was fitted on: they are put among the new ones."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge

from imm.tabular.distinct_rows import Array, distinct
from imm.tabular.engines.base import Fitted, Problem, Solver
from imm.tabular.engines.boosting import Trees
from imm.tabular.fitting import Scaling, Setup
from imm.tabular.rivals.methods import Method, Predictor, trained
from imm.tabular.rivals.training_rows import Table
from imm.tabular.rivals.wrapped_engines import Around

WEIGHTS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
"""What an old row counts for, in new rows; 0 is full-only."""


def pooled(rows: Table, setup: Setup) -> Predictor:
    """Old rows are rows whose extended features are missing: trees know missing values; else mean and an indicator."""
    return _together(rows, setup, impute=False)


def imputed(rows: Table, setup: Setup) -> Predictor:
    """Old rows get the extended features that linear regression on the short ones expects."""
    return _together(rows, setup, impute=True)


WITH_OLD_DATA: Mapping[str, Method] = {"pooled": pooled, "imputed": imputed}


def _together(rows: Table, setup: Setup, impute: bool) -> Predictor:
    if rows.old_rows is None:
        raise ValueError("this method needs the rows the old model was fitted on")
    short, y = rows.old_rows.short, rows.old_rows.y
    same = distinct(short, y)
    weight = same.total(np.ones(len(y)))
    engine = Pooled(setup.engine, short[same.first], y[same.first], weight, impute, setup.standardize)
    return trained(rows, "full-only", replace(setup, engine=engine, standardize=False), WEIGHTS, matching=False)


@dataclass(frozen=True)
class Pooled(Around):
    """A full model that is trained on new and old rows together; the strength is an old row's weight.

    Args:
        inner: the full model.
        short: ``[m, short features]``.
        y: ``[m]``.
        weight: ``[m]``, how often each old row occurs.
        impute: whether extended features are imputed; they are missing otherwise.
        standardize: whether columns are scaled here, as the new rows are.
    """

    short: Array
    y: Array
    weight: Array
    impute: bool
    standardize: bool

    def prepare(self, problem: Problem, seed: int) -> Solver:
        """A solver that makes the inner one's problem for each weight when it is asked for."""
        return _Pooling(self, problem, seed)


class _Pooling:
    def __init__(self, engine: Pooled, problem: Problem, seed: int) -> None:
        self._engine, self._problem, self._seed = engine, problem, seed
        self._scaling = Scaling.of(problem.x, problem.weight, engine.standardize)
        x, short = self._scaling(problem.x), problem.short
        old = np.zeros((len(engine.y), x.shape[1]))
        old[:, short] = (engine.short - self._scaling.mean[short]) / self._scaling.scale[short]
        self._marked = not engine.impute and not isinstance(engine.inner, Trees)
        if engine.impute:
            if not short.all():
                expected = Ridge(alpha=1.0).fit(x[:, short], x[:, ~short], sample_weight=problem.weight)
                old[:, ~short] = expected.predict(old[:, short]).reshape(len(old), -1)
        elif not self._marked:
            old[:, ~short] = np.nan
        self._new: Array = _mark(x, 0.0) if self._marked else x
        self._old: Array = _mark(old, 1.0) if self._marked else old
        self._solvers: dict[float, Solver] = {}

    def solve(self, l2: float, lam: float, start: Any = None, precise: bool = True) -> "_Marked":
        if lam not in self._solvers:
            self._solvers[lam] = self._engine.inner.prepare(self._with_old_rows(lam), self._seed)
        begin = None if start is None else start.inner
        return _Marked(self._solvers[lam].solve(l2, 0.0, begin, precise), self._scaling, self._marked)

    def _with_old_rows(self, counts: float) -> Problem:
        engine, problem = self._engine, self._problem
        short = np.append(problem.short, np.zeros(self._new.shape[1] - len(problem.short), dtype=bool))
        if not counts:
            return replace(problem, x=self._new, short=short)
        return replace(
            problem,
            x=np.vstack([self._new, self._old]),
            y=np.concatenate([problem.y, engine.y]),
            weight=np.concatenate([problem.weight, counts * engine.weight]),
            short=short,
        )


@dataclass(frozen=True)
class _Marked:
    inner: Fitted
    scaling: Scaling
    marked: bool

    def scores(self, x: Array) -> Array:
        x = self.scaling(x)
        return self.inner.scores(_mark(x, 0.0) if self.marked else x)


def _mark(x: Array, value: float) -> Array:
    """One more column, which says whether a row is old."""
    return np.column_stack([x, np.full(len(x), value)])
