"""λ and the full model's own penalty, chosen together by cross-validation on few rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from imm.tabular.distinct_rows import Array

LAMS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Candidates for λ; none at all is the first."""

SHARES = tuple(1 - (1 - i / 40) ** (1 / 3) for i in range(41))
"""Candidates for the old model's share where its prediction is mixed in; none at all is the first.

All count alike before the rows speak, and they are denser the nearer to 0, by ``(1 - share)²``: a quarter is expected.
"""

DRAWS = 200
"""How often the held-out rows are weighted anew to see how sure their word is."""

LogLikelihood = Callable[[Array, float], Array]
"""From sums of losses and the number of rows they are of."""


class Fold(Protocol):
    """One division of the rows: a solver on some of them, and the loss of what it finds on the others."""

    test: NDArray[np.intp]

    def solve(self, l2: float, lam: float, start: Any) -> Any:
        """Trains on the training rows."""
        ...

    def losses(self, fit: Any) -> Array:
        """Of the test rows, ``[len(test)]``."""
        ...


@dataclass(frozen=True)
class Choice:
    """What cross-validation found.

    Attributes:
        lam: the chosen λ.
        l2: the chosen penalty.
        l2_without: the best penalty for λ = 0.
        lams: the candidates, ascending.
        l2s: the best penalty for each.
        mean: the mean loss of each, over held-out rows.
        counts: how much each counts in the mean that is chosen; they sum to one.
        misleading: whether the old model was not tried, as already the first bit of it makes predictions worse.
    """

    lam: float
    l2: float
    l2_without: float
    lams: tuple[float, ...]
    l2s: tuple[float, ...]
    mean: Array
    counts: Array
    misleading: bool = False


def deal(strata: Array, n_splits: int, seed: int) -> NDArray[np.intp]:
    """The fold of each row, ``[n]``: the rows of a stratum are spread evenly over folds, whatever their number.

    Args:
        strata: ``[n]``, numbers to be spread: classes, or the values of a regression (near ones are spread).
        n_splits: folds.
        seed: of the dealing.
    """
    rng = np.random.default_rng(seed)
    n = len(strata)
    if strata.dtype.kind == "f":
        rank = np.empty(n, dtype=np.intp)
        rank[np.argsort(strata, kind="stable")] = np.arange(n)
        strata = rank // n_splits
    order = np.lexsort((rng.permutation(n), strata))
    fold = np.empty(n, dtype=np.intp)
    fold[order] = np.arange(n) % n_splits
    return fold


def folds(strata: Array, n_splits: int, n_repeats: int, seed: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Training and test rows of every fold of every repeat."""
    found = []
    for repeat in range(n_repeats):
        fold = deal(strata, n_splits, seed + repeat)
        found += [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(n_splits)]
    return found


def held_out(folds: Sequence[Fold]) -> NDArray[np.intp]:
    """The rows that some fold holds out, ascending."""
    return np.unique(np.concatenate([fold.test for fold in folds]))


def averaged(folds: Sequence[Fold], found: Sequence[Array]) -> Array:
    """What each fold found of its test rows, ``[..., len(test)]``, averaged over the folds that hold out a row.

    ``[..., rows]``, in the order of :func:`held_out`.
    """
    rows, place, times = np.unique(
        np.concatenate([fold.test for fold in folds]), return_inverse=True, return_counts=True
    )
    every = np.concatenate(found, axis=-1).T
    total = np.zeros((len(rows), *every.shape[1:]))
    np.add.at(total, place, every)
    return total.T / times


class Search:
    """Losses of held-out rows, for strengths each computed once, begun where a near one ended."""

    def __init__(self, folds: Sequence[Fold], losses: dict[tuple[float, float], Array]) -> None:
        self._folds = folds
        self._last: list[Any] = [None] * len(folds)
        self._losses = losses

    def __call__(self, l2: float, lam: float) -> Array:
        """As :func:`averaged` has it."""
        if (l2, lam) not in self._losses:
            self._last = [fold.solve(l2, lam, last) for fold, last in zip(self._folds, self._last, strict=True)]
            found = [fold.losses(fit) for fold, fit in zip(self._folds, self._last, strict=True)]
            self._losses[l2, lam] = averaged(self._folds, found)
        return self._losses[l2, lam]


def choose(
    folds: Sequence[Fold],
    weight: Array,
    l2s: Sequence[float],
    lams: Sequence[float],
    log_likelihood: LogLikelihood,
    known: dict[float, Array] | None = None,
) -> Choice:
    """λ and l2 by their losses on held-out rows.

    λ is a mean over candidates, as :func:`weigh` counts them, of ``λ / (1 + λ)``, the old model's share in what is
    learned: with few rows many are about as good, and the best of them is mostly luck. The candidates' penalties are
    found by a walk over the grid rather than all of it: first that for λ = 0, then λ for that penalty, then the
    penalty's neighbours for the best λ above 0, until nothing is better. The penalty is that of the candidate nearest
    to λ.

    Args:
        folds: divisions of the rows.
        weight: ``[n]``, of the rows.
        l2s: candidates for the penalty, ascending.
        lams: candidates for λ, ascending.
        log_likelihood: of the rows, from the sum of their losses.
        known: the rows' losses at the first λ by penalty, as far as they are known; others are added.
    """
    search = Search(folds, {(l2, lams[0]): losses for l2, losses in (known or {}).items()})
    weight = weight[held_out(folds)]

    def mean(l2: float, lam: float) -> float:
        return float(np.average(search(l2, lam), weights=weight))

    for l2 in reversed(l2s):
        mean(l2, lams[0])
    if known is not None:
        known.update({l2: search(l2, lams[0]) for l2 in l2s})
    at = int(np.argmin([mean(l2, lams[0]) for l2 in l2s]))
    best = dict.fromkeys(lams, at)
    positive = lams[1:]
    while positive:
        j = int(np.argmin([mean(l2s[best[lam]], lam) for lam in positive]))
        near = [i for i in (best[positive[j]] - 1, best[positive[j]] + 1) if 0 <= i < len(l2s)]
        at = min([best[positive[j]], *near], key=lambda i: mean(l2s[i], positive[j]))
        if at == best[positive[j]]:
            break
        for lam in positive[max(j - 1, 0) : j + 2]:
            best[lam] = min(best[lam], at, key=lambda i: mean(l2s[i], lam))
    losses = np.array([search(l2s[best[lam]], lam) for lam in lams])
    parts = np.array(lams) / (1 + np.array(lams))
    counts = weigh(losses, weight, log_likelihood)
    part = float(counts @ parts)
    nearest = lams[int(np.abs(parts - part).argmin())]
    return Choice(
        lam=min(part / (1 - part), lams[-1]),
        l2=l2s[best[nearest]],
        l2_without=l2s[best[lams[0]]],
        lams=tuple(lams),
        l2s=tuple(l2s[best[lam]] for lam in lams),
        mean=np.average(losses, axis=1, weights=weight),
        counts=counts,
    )


def weigh(losses: Array, weight: Array, log_likelihood: LogLikelihood) -> Array:
    """How much each candidate counts, ``[c]``, from its losses on held-out rows, ``[c, n]``; they sum to one.

    ``E_v[L_i(v) / Σ_j L_j(v)]``: its likelihood among the others', averaged over what other rows of the same kind could
    have said, ``v`` being weights of the rows from a Bayesian bootstrap (pseudo-Bayesian model averaging "plus" of Yao
    and others, 2018). A candidate that leads because of two or three rows then hardly counts for more than the others.
    Draws are the same in every call, and go with rows by their losses, so that the order of rows does not matter.
    """
    order = np.lexsort((weight, *losses))
    losses, weight = losses[:, order], weight[order]
    drawn = np.random.default_rng(0).standard_gamma(weight, (DRAWS, len(weight)))
    # Gammas of weights far below one may all be zero: such rows say nothing.
    drawn *= weight.sum() / np.maximum(drawn.sum(1, keepdims=True), np.finfo(np.float64).tiny)
    found: Array = softmax(log_likelihood(drawn @ losses.T, float(weight.sum())), axis=1).mean(0)
    return found
