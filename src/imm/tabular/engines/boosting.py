"""Gradient-boosted trees as full models: rows for the data, and rows for pairs of a short and an extended context.

The second kind carries the gradient of λ · IMM, one context at a time: P̂ times the crosstalk of its short context
(Eq. sequentializing-derivation). A library for trees sees an objective of its own and nothing else.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator

from imm.tabular.engines.base import Problem
from imm.tabular.engines.linear import Linear, LinearFit, Logistic, Ridge

Array = NDArray[Any]


@dataclass(frozen=True)
class Drawn:
    """Some extended contexts for each short context of a problem.

    Attributes:
        start: ``[T + 1]``, where the pairs of each short context begin.
        extended: ``[P]``, the row whose extended context it is.
        weight: ``[P]``, sums to one over the pairs of a short context.
    """

    start: NDArray[np.intp]
    extended: NDArray[np.intp]
    weight: Array

    @property
    def context(self) -> NDArray[np.intp]:
        """``[P]``, the short context of each pair."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))


def draw(problem: Problem, n_contexts: int, rng: np.random.Generator) -> Drawn:
    """All extended contexts of a short context that has at most ``n_contexts``, else as many drawn by their weight."""
    pairs = problem.pairs
    assert pairs is not None
    size = np.diff(pairs.start)
    few = size <= n_contexts
    taken = np.where(few, size, n_contexts)
    start = np.concatenate([[0], np.cumsum(taken)])
    context = np.repeat(np.arange(len(size)), taken)
    # The i-th pair of a short context with few; else the pair at which the running sum of weights passes a draw.
    own = pairs.start[context] + np.arange(start[-1]) - start[context]
    running = np.cumsum(pairs.weight, dtype=np.float64)
    before = np.concatenate([[0.0], running])[pairs.start[context]]
    total = np.add.reduceat(pairs.weight, pairs.start[:-1], dtype=np.float64)[context]
    found = np.searchsorted(running, before + rng.random(len(context)) * total, side="right")
    found = np.clip(found, pairs.start[context], pairs.start[context + 1] - 1)
    place = np.where(few[context], own, found)
    weight = np.where(few[context], pairs.weight[place], 1 / n_contexts)
    return Drawn(start, pairs.extended[place].astype(np.intp), weight)


def pair_rows(problem: Problem, drawn: Drawn) -> Array:
    """The features of each pair, ``[P, d]``: short columns of one row, the others of another."""
    assert problem.pairs is not None
    rows = problem.x[drawn.extended]
    short = np.flatnonzero(problem.short)
    rows[:, short] = problem.x[problem.pairs.row[drawn.context]][:, short]
    return rows


class Objective:
    """Gradient and curvature of ``Σ weight · loss + λ Σ weight · IMM`` in the scores of data rows, then pairs.

    For a pair the curvature is that of the crosstalk held fixed, which bounds the risk from above: a Newton step on it
    cannot raise the risk.

    Args:
        problem: the data rows.
        drawn: the pairs; None without IMM.
        lam: λ.
    """

    def __init__(self, problem: Problem, drawn: Drawn | None, lam: float) -> None:
        self.problem, self.drawn = problem, drawn
        if drawn is not None:
            assert problem.pairs is not None
            total = lam * problem.weight.sum()
            self._share = (total * problem.pairs.share)[drawn.context]

    def __call__(self, scores: Array) -> tuple[Array, Array]:
        """From ``[rows, outputs]``, both of the same shape."""
        n = len(self.problem.x)
        gradient, curvature = self._data(scores[:n])
        if self.drawn is None:
            return gradient, curvature
        by_pair = self._pairs(scores[n:])
        return np.concatenate([gradient, by_pair[0]]), np.concatenate([curvature, by_pair[1]])

    def _data(self, scores: Array) -> tuple[Array, Array]:
        problem, weight = self.problem, self.problem.weight[:, None]
        if not problem.n_classes:
            return weight * (scores - problem.y[:, None]), np.broadcast_to(weight, scores.shape)
        q = _probabilities(scores)
        if q.shape[1] == 1:
            return weight * (q - problem.y[:, None]), weight * q * (1 - q)
        label = np.zeros_like(q)
        label[np.arange(len(q)), problem.y] = 1
        return weight * (q - label), weight * q * (1 - q)

    def _pairs(self, scores: Array) -> tuple[Array, Array]:
        drawn, target = self.drawn, self.problem.target
        assert drawn is not None
        assert target is not None
        share, weight = self._share[:, None], drawn.weight[:, None]
        if not self.problem.n_classes:
            induced = self._induced(weight * scores)
            gap = (induced - target)[drawn.context]
            return share * weight * gap, np.broadcast_to(share * weight, scores.shape)
        q = _probabilities(scores)
        every = np.hstack([1 - q, q]) if q.shape[1] == 1 else q
        induced = np.maximum(self._induced(weight * every), np.finfo(np.float64).tiny)
        pull = weight * every * (target / induced)[drawn.context]  # P̂ times the crosstalk, [P, classes]
        mass = pull.sum(1, keepdims=True)
        towards = pull[:, 1:] if q.shape[1] == 1 else pull
        return share * (mass * q - towards), share * mass * q * (1 - q)

    def _induced(self, weighted: Array) -> Array:
        assert self.drawn is not None
        return np.add.reduceat(weighted, self.drawn.start[:-1], axis=0)


def _probabilities(scores: Array) -> Array:
    found: Array = expit(scores) if scores.shape[1] == 1 else softmax(scores, axis=1)
    return found


class Trees(BaseEstimator, ABC):  # type: ignore[misc]
    """Boosted trees; see :class:`LightGBM` and :class:`XGBoost`.

    Args:
        n_trees: how many, for each output.
        learning_rate: of each.
        max_leaves: of each.
        min_curvature: the least sum of curvatures in a leaf; a data row of a classifier has at most 1/4.
        n_contexts: k, extended contexts drawn for each short context.
        redraw_every: trees after which they are drawn anew.
        n_threads: of the library.
    """

    l2s = (1.0, 10.0, 100.0)

    def __init__(
        self,
        n_trees: int = 100,
        learning_rate: float = 0.1,
        max_leaves: int = 8,
        min_curvature: float = 1.0,
        n_contexts: int = 8,
        redraw_every: int = 20,
        n_threads: int = 1,
    ) -> None:
        self.n_trees = n_trees
        self.learning_rate = learning_rate
        self.max_leaves = max_leaves
        self.min_curvature = min_curvature
        self.n_contexts = n_contexts
        self.redraw_every = redraw_every
        self.n_threads = n_threads

    def folds(self, n: int) -> tuple[int, int]:
        """Five, dealt twice where rows are few: once chooses worse."""
        return 5, 2 if n <= 400 else 1

    def prepare(self, problem: Problem, seed: int = 0) -> "Growing":
        """What every strength shares."""
        return Growing(self, problem, seed)

    def restore(self, arrays: dict[str, Array], n_features: int, n_classes: int) -> "TreesFit":  # noqa: ARG002
        """From :meth:`TreesFit.arrays`."""
        model = LinearFit(arrays["begin_weight"], arrays["begin_bias"])
        begin = Begin(arrays["begin_columns"], model, arrays["begin_low"], arrays["begin_high"])
        return TreesFit(self, self.load(arrays["trees"].tobytes()), begin, arrays["scale"])

    @abstractmethod
    def grow(self, before: Any, rows: "Ground", objective: "Gradients", n_trees: int, n_outputs: int, l2: float) -> Any:
        """A booster with more trees than ``before`` (None: with the first ones); None if there is nothing to split."""

    @abstractmethod
    def raw(self, booster: Any, x: Array) -> Array:
        """The sum of the trees, ``[n]`` or ``[n, outputs]``."""

    @abstractmethod
    def dump(self, booster: Any) -> bytes:
        """In the library's own format, which runs no code."""

    @abstractmethod
    def load(self, stored: bytes) -> Any:
        """The reverse of :meth:`dump`."""


@dataclass(frozen=True)
class Ground:
    """What trees are grown on: ``x`` ``[rows, d]``, of which the first ``n`` are data rows, the others pairs."""

    x: Array
    n: int


Gradients = Callable[[Array], tuple[Array, Array]]
"""From the trees' sums to gradients and curvatures, all ``[rows, outputs]``."""


@dataclass(frozen=True)
class Begin:
    """What trees are added to: a linear model of some columns, which is a constant if there are none.

    Its scores stay in the range that they have on the rows it is made for, ``low`` to ``high``, both ``[outputs]``:
    trees do not extrapolate either.
    """

    columns: NDArray[np.intp]
    model: LinearFit
    low: Array
    high: Array

    @classmethod
    def on(cls, columns: NDArray[np.intp], model: LinearFit, x: Array) -> Self:
        """For the rows ``x``, ``[n, d]``."""
        scores = model.scores(x[:, columns])
        return cls(columns, model, scores.min(0), scores.max(0))

    def scores(self, x: Array) -> Array:
        """``[n, outputs]``."""
        return np.clip(self.model.scores(x[:, self.columns]), self.low, self.high)


@dataclass(frozen=True)
class TreesFit:
    """Where boosting began, the trees, and the scale of both: 1 for classes."""

    engine: Trees
    booster: Any
    begin: Begin
    scale: Array

    def scores(self, x: Array) -> Array:
        """``[n, outputs]``."""
        trees = self.engine.raw(self.booster, x).reshape(len(x), -1)
        found: Array = self.scale * (trees + self.begin.scores(x))
        return found

    def arrays(self) -> dict[str, Array]:
        """The trees as bytes, and all else."""
        trees = np.frombuffer(self.engine.dump(self.booster), dtype=np.uint8)
        begin = {"columns": self.begin.columns, **self.begin.model.arrays()}
        begin |= {"low": self.begin.low, "high": self.begin.high}
        return {"trees": trees, "scale": self.scale, **{f"begin_{name}": array for name, array in begin.items()}}


FAITHFUL = 1000.0
"""λ with which a linear model of what the old one sees says what the old one does: rows hardly count beside it.

Its penalty is as many times 1: an old model may be sure of all it says, and a linear one should not be so.
"""


class Growing:
    """Boosting on one problem."""

    def __init__(self, engine: Trees, problem: Problem, seed: int) -> None:
        self.scale = np.ones(1) if problem.n_classes else _deviation(problem)
        problem = problem if problem.n_classes else _divided(problem, self.scale)
        self.engine, self.problem, self.seed = engine, problem, seed
        self._columns = _old_columns(problem)

    @cached_property
    def _linear(self) -> Logistic | Ridge:
        """The same problem for what is linear in the old model's columns."""
        everywhere = np.ones(len(self._columns), dtype=bool)
        return Linear().prepare(replace(self.problem, x=self.problem.x[:, self._columns], short=everywhere))

    @cached_property
    def _like_old(self) -> LinearFit:
        return self._linear.solve(FAITHFUL, FAITHFUL)

    def begin(self, l2: float, lam: float, precise: bool = True) -> Begin:
        """Where boosting begins; trees learn slowly what is linear.

        If the old model is kept: with the best that is linear in its word, under the trees' own objective. Else with
        the linear model of short features that is most like the old one, in a share of ``λ / (1 + λ)``; the rest is
        the constant with which trees begin without IMM.
        """
        problem = self.problem
        if problem.n_old:
            return Begin.on(self._columns, self._linear.solve(l2, lam, precise=precise), problem.x)
        constant = problem.constant() if problem.offset is None else np.zeros(problem.n_outputs)
        if not lam or not len(self._columns):
            return Begin.on(np.arange(0), LinearFit(np.zeros((0, problem.n_outputs)), constant), problem.x)
        share, old = lam / (1 + lam), self._like_old
        begin = LinearFit(share * old.weight, share * old.bias + (1 - share) * constant)
        return Begin.on(self._columns, begin, problem.x)

    def solve(self, l2: float, lam: float, start: Any = None, precise: bool = True) -> TreesFit:  # noqa: ARG002
        """All trees; nothing is begun from ``start``. None splits on the old model's word, with which they begin."""
        engine, problem = self.engine, self.problem
        rng = np.random.default_rng(self.seed)
        matched = bool(lam) and problem.pairs is not None
        every = engine.redraw_every if matched else engine.n_trees
        begin = self.begin(l2, lam, precise)
        booster = None
        for done in range(0, engine.n_trees, every):
            drawn = draw(problem, engine.n_contexts, rng) if matched else None
            x = problem.x if drawn is None else np.vstack([problem.x, pair_rows(problem, drawn)])
            before = begin.scores(x) if problem.offset is None else problem.offset
            objective = Objective(problem, drawn, lam)
            if problem.n_old:
                x = np.hstack([x[:, : -problem.n_old], np.zeros((len(x), problem.n_old))])

            def gradients(raw: Array, objective: Objective = objective, before: Array = before) -> tuple[Array, Array]:
                return objective(raw + before)

            n_trees = min(every, engine.n_trees - done)
            booster = engine.grow(booster, Ground(x, len(problem.x)), gradients, n_trees, problem.n_outputs, l2)
        return TreesFit(engine, booster, begin, self.scale)


def _old_columns(problem: Problem) -> NDArray[np.intp]:
    """The old model's word if it is kept, else what it sees if it sees less than all."""
    if problem.n_old:
        return np.arange(problem.x.shape[1] - problem.n_old, problem.x.shape[1])
    if problem.pairs is None or problem.short.all():
        return np.arange(0)
    return np.flatnonzero(problem.short)


def _deviation(problem: Problem) -> Array:
    """Of the values of a regression, ``[1]``; 1 if they are all the same."""
    y = problem.y if problem.offset is None else problem.y - problem.offset[:, 0]
    centred = y - np.average(y, weights=problem.weight)
    return np.array([np.average(centred**2, weights=problem.weight) ** 0.5 or 1.0])


def _divided(problem: Problem, scale: Array) -> Problem:
    """The same in other units: of very small values XGBoost learns little or nothing."""
    target = None if problem.target is None else problem.target / scale
    offset = None if problem.offset is None else problem.offset / scale
    return replace(problem, y=problem.y / scale, target=target, offset=offset)
