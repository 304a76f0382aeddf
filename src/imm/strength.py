"""How much IMM: λ, the ratio λ/(1+λ), schedules over the size of the data, and a choice by cross-validation.

``ratio`` is IMM's share when the two losses are interpolated, ``(1 - ratio) · CE + ratio · IMM``; that is
``CE + λ · IMM`` with ``λ = ratio / (1 - ratio)``, over ``1 + λ``.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import RepeatedStratifiedKFold

from imm.validation import check_not_negative


def lam_to_ratio(lam: float) -> float:
    """``λ / (1 + λ)``.

    >>> lam_to_ratio(1.5)
    0.6
    """
    return check_not_negative(lam, "lam") / (1 + lam)


def ratio_to_lam(ratio: float) -> float:
    """``ratio / (1 - ratio)``; a ratio of one would leave no cross-entropy and is refused.

    >>> round(ratio_to_lam(0.6), 12)
    1.5
    """
    if not 0 <= ratio < 1:
        raise ValueError(f"ratio must be at least 0 and below 1, got {ratio!r}")
    return ratio / (1 - ratio)


@dataclass(frozen=True)
class Linear:
    """``ratio = slope · n + intercept``, and 0 where that is negative   (Appendix lambda).

    Where it is 1 or more, :meth:`ratio` refuses: no cross-entropy would be left.

    >>> PAPER.ratio(10)
    0.707
    """

    slope: float
    intercept: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.slope) and math.isfinite(self.intercept)):
            raise ValueError(f"slope and intercept must be finite, got {self.slope} and {self.intercept}")

    def ratio(self, n: float) -> float:
        """The ratio at data size ``n``."""
        ratio = self.slope * n + self.intercept
        if not ratio < 1:  # NaN too
            raise ValueError(f"ratio must be below 1, but {self} gives {ratio} at n = {n}")
        return max(0.0, ratio)

    def lam(self, n: float) -> float:
        """λ at data size ``n``."""
        return ratio_to_lam(self.ratio(n))

    @classmethod
    def fitted(cls, sizes: Sequence[float], ratios: Sequence[float]) -> "Linear":
        """Least squares through the best ratios found at some sizes.

        >>> fit = Linear.fitted([2, 10, 20], [0.8, 0.7, 0.6])
        >>> round(fit.slope, 4), round(fit.intercept, 3)
        (-0.0111, 0.818)
        """
        if len(sizes) != len(ratios) or len(set(sizes)) < 2:
            raise ValueError(f"a line needs two different sizes with a ratio each, got {sizes} and {ratios}")
        if not np.isfinite(sizes).all():
            raise ValueError(f"sizes must be finite, got {sizes}")
        for ratio in ratios:
            ratio_to_lam(ratio)
        slope, intercept = np.polyfit(sizes, ratios, 1)
        return cls(float(slope), float(intercept))


def constant(ratio: float) -> Linear:
    """The same ratio at every size."""
    ratio_to_lam(ratio)
    return Linear(0.0, ratio)


PAPER = Linear(slope=-0.0111, intercept=0.818)
"""The paper's schedule for the logistic regression study."""


@dataclass(frozen=True)
class Choice:
    """What cross-validation found.

    Attributes:
        lam: the chosen λ.
        lams: the candidates, ascending.
        mean: the mean validation loss of each.
        standard_error: of the difference between each and the best one, over folds.
    """

    lam: float
    lams: tuple[float, ...]
    mean: NDArray[np.float64]
    standard_error: NDArray[np.float64]


def choose_lam(
    loss: Callable[[float, NDArray[np.intp], NDArray[np.intp]], float],
    labels: Sequence[object] | NDArray[np.generic],
    lams: Sequence[float],
    n_splits: int = 5,
    n_repeats: int = 4,
    seed: int = 0,
) -> Choice:
    """Chooses λ by repeated, stratified cross-validation with the one-standard-error rule.

    All candidates see the same folds, so each is compared with the best one by its fold-wise differences. The
    smallest λ that is within one standard error of the best is taken: with few rows the minimum itself is
    mostly luck, and a small λ trusts the old model less.

    Args:
        loss: ``loss(lam, train_rows, test_rows)`` fits on the first rows and gives the loss on the others.
        labels: the rows' classes, for stratification.
        lams: candidates; zero (no IMM) may be among them.
        n_splits: folds; fewer if the rarest class has fewer rows.
        n_repeats: how often the rows are dealt anew.
        seed: of the dealing.
    """
    candidates = tuple(sorted({check_not_negative(lam, "lam") for lam in lams}))
    if not candidates:
        raise ValueError("lams is empty: give at least one candidate")
    y = np.asarray(labels)
    rarest = int(np.unique(y, return_counts=True)[1].min())
    if rarest < 2:
        raise ValueError(f"each class needs at least 2 rows to be cross-validated; the rarest has {rarest}")
    folds = RepeatedStratifiedKFold(n_splits=min(n_splits, rarest), n_repeats=n_repeats, random_state=seed)
    losses = np.array([[loss(lam, *fold) for fold in folds.split(y, y)] for lam in candidates])
    if not np.isfinite(losses).all():
        bad = np.argwhere(~np.isfinite(losses))[0]
        raise ValueError(f"loss at lam {candidates[bad[0]]} is {losses[tuple(bad)]}: it must be finite in every fold")
    mean = losses.mean(1)
    differences = losses - losses[mean.argmin()]
    error = differences.std(1, ddof=1) / np.sqrt(losses.shape[1])
    close = mean <= mean.min() + error
    return Choice(candidates[int(close.argmax())], candidates, mean, error)
