"""From rows to a trained full model: the problem of some rows, its strengths, its solution."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from imm.tabular.contexts import Pairs, find_pairs
from imm.tabular.distinct_rows import Array, parts
from imm.tabular.engines.base import Fitted, Problem, Solver, Trainer
from imm.tabular.old_model import Old
from imm.tabular.selection import LAMS, SHARES, Choice, averaged, choose, folds, held_out, weigh
from imm.tabular.tasks import Task

Rows = NDArray[np.intp]

ENOUGH = 20_000
"""Rows on which strengths are chosen at most."""

MATCHED = 50_000
"""Rows over whose short contexts the IMM risk is averaged at most: a mean over more would hardly differ."""


@dataclass(frozen=True)
class Scaling:
    """``(x - mean) / scale``."""

    mean: Array
    scale: Array

    @classmethod
    def of(cls, x: Array, weight: Array, standardize: bool) -> Self:
        """Mean 0 and deviation 1, a constant column left as wide as it is; or no change."""
        if not standardize:
            return cls(np.zeros(x.shape[1]), np.ones(x.shape[1]))
        share = weight / weight.sum()
        mean: Array = sum(share[part] @ x[part] for part in parts(len(x)))
        deviation = np.sqrt(sum(share[part] @ (x[part] - mean) ** 2 for part in parts(len(x))))
        constant = deviation <= 10 * np.finfo(x.dtype).eps * np.abs(mean)
        return cls(mean, np.where(constant, 1.0, deviation))

    def __call__(self, x: Array) -> Array:
        """A scaled copy, in the type of ``x``."""
        scaled: Array = x - self.mean.astype(x.dtype)
        scaled /= self.scale.astype(x.dtype)
        return scaled


@dataclass(frozen=True)
class Data:
    """Different rows, each with its weight; ``order`` is one that depends on their content only."""

    x: Array
    y: Array
    weight: Array
    old: Old | None
    order: Rows


@dataclass(frozen=True)
class Setup:
    """All settings of a fit but the strengths."""

    task: Task
    engine: Trainer
    short: NDArray[np.bool_]
    keep_old: bool
    n_neighbors: int | None
    alpha: float
    standardize: bool
    seed: int

    def with_old(self, x: Array, old: Array | None) -> Array:
        """The full model's features: those of the table, and the old model's word if it is kept."""
        if not self.keep_old or old is None:
            return x
        return np.hstack([x, self.task.old_features(old).astype(x.dtype)])

    def pose(self, data: Data, train: Rows, test: Rows, matching: bool = True) -> "Posed":
        """The problem of some rows, and other rows to ask its solution about."""
        known, unknown = (None, None) if data.old is None else data.old.on(train, test)
        whole = len(train) == len(data.x)
        x = self.with_old(data.x if whole else data.x[train], known)
        weight = data.weight[train]
        scaling = Scaling.of(x, weight, self.standardize)
        x = scaling(x)
        n_old = x.shape[1] - len(self.short)
        short = np.append(self.short, np.ones(n_old, dtype=bool))
        problem = Problem(x, data.y[train], weight, self.task.n_classes, short, n_old=n_old)
        if matching and known is not None:
            # Without short columns the old model's own word is the short context.
            contexts = x[:, short] if short.any() else self.task.old_features(known).astype(x.dtype)
            pairs = self.pairs(contexts, weight, bool(short.all()))
            some = pairs.code >= 0
            code, mass = pairs.code[some], weight[some]
            sums = [np.bincount(code, weights=mass * column) for column in known[some].T]
            target = np.stack(sums, axis=1) / np.bincount(code, weights=mass)[:, None]
            problem = replace(problem, pairs=pairs, target=target)
        return Posed(scaling, problem, scaling(self.with_old(data.x[test], unknown)), unknown)

    def pairs(self, contexts: Array, weight: Array, alone: bool = False, asked: Array | None = None) -> Pairs:
        """The extended contexts of short ones, ``[n, ...]``; of some, drawn by the seed, if they are very many."""
        n = len(contexts)
        some = np.arange(n)
        if n > MATCHED:
            some = np.sort(np.random.default_rng(self.seed).choice(n, MATCHED, replace=False))
            contexts = contexts[some]
        found = find_pairs(contexts, weight[some].astype(contexts.dtype), self.n_neighbors, self.alpha, alone, asked)
        return found if n <= MATCHED else found.among(some, n)

    def train(self, data: Data, l2: float, lam: float, matching: bool = True) -> tuple[Scaling, Fitted, Problem]:
        """The full model of all rows."""
        posed = self.pose(data, np.arange(len(data.x)), np.arange(0), matching and lam != 0)
        return posed.scaling, self.engine.prepare(posed.problem, self.seed).solve(l2, lam), posed.problem

    def choose(
        self,
        data: Data,
        l2: float | None,
        lams: tuple[float, ...] = LAMS,
        matching: bool = True,
        known: dict[float, Array] | None = None,
    ) -> tuple[float, Choice]:
        """λ for all rows, and what cross-validation found on some: all of them, if they are not too many.

        Args:
            data: the rows.
            l2: the penalty; chosen too if None.
            lams: candidates, ascending.
            matching: whether λ is that of matching an old model, which must not mislead.
            known: see :func:`imm.tabular.selection.choose`.
        """
        l2s = self.engine.l2s if l2 is None else (l2,)
        held = self.held(data, matching)
        misleading = matching and data.old is not None and self._misleads(held, data.weight)
        found = choose(held, data.weight, l2s, lams[:1] if misleading else lams, self.task.log_likelihood, known)
        found = replace(found, misleading=misleading)
        # λ n is what the old model counts for, in rows: the same for all rows as for those it was chosen on.
        return found.lam * min(1.0, ENOUGH / len(data.x)), found

    def choose_share(self, data: Data, l2: float, lam: float) -> float:
        """The old model's share in a mixture with the full model of these strengths, from the same folds, as λ is."""
        held = self.held(data, matching=lam != 0)
        if self._misleads(held, data.weight):
            return 0.0
        losses = []
        for fold in held:
            scores = fold.solve(l2, lam, None).scores(fold.x)
            assert fold.old is not None
            mixed = [self.task.mixed(scores, fold.old, share) for share in SHARES]
            losses.append(np.array([self.task.losses(each, fold.y) for each in mixed]))
        counts = weigh(averaged(held, losses), data.weight[held_out(held)], self.task.log_likelihood)
        return float(counts @ SHARES)

    def _misleads(self, held: list["Held"], weight: Array) -> bool:
        """Whether a model without features predicts held-out rows worse with the first bit of the old one mixed in."""
        return bool(weight[held_out(held)] @ averaged(held, [fold.slopes() for fold in held]) > 0)

    def held(self, data: Data, matching: bool = True) -> list["Held"]:
        """The folds on which strengths are chosen: of all rows, or of some where they are very many."""
        some = data.order
        if len(some) > ENOUGH:
            some = some[np.random.default_rng(self.seed).permutation(len(some))[:ENOUGH]]
        splits, repeats = self.engine.folds(len(some))
        found = folds(data.y[some], min(splits, len(some)), repeats, self.seed)
        return [Held(self, data, some[train], some[test], matching) for train, test in found]


@dataclass(frozen=True)
class Posed:
    """A problem, and other rows.

    Attributes:
        scaling: of the problem's features.
        problem: what is to be solved.
        x: other rows, as the solution must be shown them.
        old: the old model's word there; None if there is none.
    """

    scaling: Scaling
    problem: Problem
    x: Array
    old: Array | None


class Held:
    """A fold: see :class:`imm.tabular.selection.Fold`."""

    def __init__(self, setup: Setup, data: Data, train: Rows, test: Rows, matching: bool = True) -> None:
        self.test = test
        self._task, self.y = setup.task, data.y[test]
        posed = setup.pose(data, train, test, matching)
        self.x, self.old = posed.x, posed.old
        self._constant = posed.problem.constant()
        self._solver: Solver = setup.engine.prepare(posed.problem, setup.seed)

    def solve(self, l2: float, lam: float, start: Any) -> Any:
        """Less precisely than in the end, but so that what is off does not decide between strengths."""
        return self._solver.solve(l2, lam, start, precise=False)

    def losses(self, fit: Fitted) -> Array:
        """Of the test rows."""
        return self._task.losses(fit.scores(self.x), self.y)

    def slopes(self) -> Array:
        """Of the test rows' losses, as the old model begins to be mixed into one without features."""
        assert self.old is not None
        return self._task.slopes(np.tile(self._constant, (len(self.y), 1)), self.old, self.y)
