"""λ and the full model's own penalty, chosen together by cross-validation on few rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from imm.tabular.rows import Array

LAMS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Candidates for λ; none at all is the first."""

SHARES = tuple(i / 20 for i in range(21))
"""Candidates for the old model's share where its prediction is mixed in; none at all is the first."""

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
    """

    lam: float
    l2: float
    l2_without: float
    lams: tuple[float, ...]
    l2s: tuple[float, ...]
    mean: Array
    counts: Array


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


class Search:
    """Mean losses of strengths, each computed once, begun where a near one ended."""

    def __init__(self, folds: Sequence[Fold], n: int, losses: dict[tuple[float, float], Array]) -> None:
        self._folds, self._n = folds, n
        self._last: list[Any] = [None] * len(folds)
        self.losses = losses

    def __call__(self, l2: float, lam: float) -> Array:
        """The loss of each row, averaged over the folds that held it out, ``[n]``."""
        if (l2, lam) not in self.losses:
            total, times = np.zeros(self._n), np.zeros(self._n)
            for i, fold in enumerate(self._folds):
                fit = fold.solve(l2, lam, self._last[i])
                self._last[i] = fit
                total[fold.test] += fold.losses(fit)
                times[fold.test] += 1
            with np.errstate(invalid="ignore"):
                self.losses[l2, lam] = total / times  # NaN where a row was never held out
        return self.losses[l2, lam]


def choose(
    folds: Sequence[Fold],
    weight: Array,
    l2s: Sequence[float],
    lams: Sequence[float],
    log_likelihood: LogLikelihood,
    known: dict[float, Array] | None = None,
) -> Choice:
    """λ and l2 by their losses on held-out rows, with λ = 0 unless the old model is seen to help.

    λ is a mean over candidates, as :func:`weigh` counts them, of the old model's share in rows, ``λ / (1 + λ)``: with
    few rows many are about as good, and the best of them is mostly luck. It is 0, the first, where that is best itself.

    First the penalty for λ = 0, then λ for that penalty, then the penalty's neighbours for the best λ above 0, until
    nothing is better: a walk over the grid rather than all of it. The penalty is that of the candidate nearest to λ.

    Args:
        folds: divisions of the rows.
        weight: ``[n]``, of the rows.
        l2s: candidates for the penalty, ascending.
        lams: candidates for λ, ascending.
        log_likelihood: of the rows, from the sum of their losses.
        known: the rows' losses at the first λ by penalty, as far as they are known; others are added.
    """
    search = Search(folds, len(weight), {(l2, lams[0]): losses for l2, losses in (known or {}).items()})

    def mean(l2: float, lam: float) -> float:
        losses = search(l2, lam)
        held = ~np.isnan(losses)
        return float(np.average(losses[held], weights=weight[held]))

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
    held = ~np.isnan(losses[0])
    counts = weigh(losses[:, held], weight[held], log_likelihood)
    means = np.array([mean(l2s[best[lam]], lam) for lam in lams])
    shares = np.array(lams) / (1 + np.array(lams))
    share = shares[0] if means.argmin() == 0 else counts @ shares
    nearest = lams[int(np.abs(shares - share).argmin())]
    return Choice(
        lam=float(share / (1 - share)),
        l2=l2s[best[nearest]],
        l2_without=l2s[best[lams[0]]],
        lams=tuple(lams),
        l2s=tuple(l2s[best[lam]] for lam in lams),
        mean=means,
        counts=counts,
    )


def choose_share(losses: Array, weight: Array, log_likelihood: LogLikelihood) -> float:
    """The old model's share in a mixture, from what held-out rows say of each of :data:`SHARES`, in the same way.

    Args:
        losses: ``[shares, n]``.
        weight: ``[n]``.
        log_likelihood: of the rows, from the sum of their losses.
    """
    if (losses @ weight).argmin() == 0:
        return SHARES[0]
    return float(weigh(losses, weight, log_likelihood) @ SHARES)


def weigh(losses: Array, weight: Array, log_likelihood: LogLikelihood) -> Array:
    """How much each candidate counts, ``[candidates]``, from its losses on held-out rows, ``[candidates, n]``.

    Its likelihood among the others', averaged over what other rows of the same kind could have said: rows are weighted
    anew by a Bayesian bootstrap (pseudo-Bayesian model averaging "plus" of Yao and others, 2018). A candidate that
    leads because of two or three rows does not count for much more than the others.
    """
    drawn = np.random.default_rng(0).standard_gamma(weight, (DRAWS, len(weight)))
    drawn *= weight.sum() / np.maximum(drawn.sum(1, keepdims=True), np.finfo(np.float64).tiny)
    found: Array = softmax(log_likelihood(drawn @ losses.T, float(weight.sum())), axis=1).mean(0)
    return found


def misleads(gaps: Array, weight: Array) -> bool:
    """Whether an old model is worse than none at all, by more than one standard error.

    Args:
        gaps: ``[n]``, its loss on each row less that of a model without features.
        weight: ``[n]``.
    """
    share = weight / weight.sum()
    mean = share @ gaps
    return bool(mean > np.sqrt(((gaps - mean) ** 2) @ share**2))
