"""The IMM risk of a model whose scores split into a short and an extended part, and its gradient.

``score(short_t, extended_i) = a_t + b_i`` for a linear model: the features of the pairs are never made.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from imm.tabular.contexts import Pairs

Array = NDArray[Any]

PART = 1 << 16
"""Pairs at a time: what is temporary stays in the processor's cache."""


class SplitRisk:
    """``-Σ_t share_t Σ_y P̂(y|short_t) log Σ_i w_ti Q(y|a_t + b_i)``   (Eqs. induced-Q-logreg, IMM-exact-coarse).

    Args:
        pairs: ``T`` short contexts with their extended contexts among ``n`` rows.
        target: P̂, ``[T, classes]``.
    """

    def __init__(self, pairs: Pairs, target: Array) -> None:
        self._share, self._target = pairs.share, target
        edges = np.searchsorted(pairs.start, np.arange(PART, pairs.start[-1], PART)).tolist()
        edges = sorted({0, *edges, len(pairs.row)})
        self._parts = [(slice(i, j), pairs.part(i, j)) for i, j in pairwise(edges)]

    def __call__(self, a: Array, b: Array) -> tuple[float, Array, Array]:
        """The risk and its gradients with respect to ``a``, ``[T, outputs]``, and ``b``, ``[n, outputs]``.

        One output: the log-odds of the second of two classes. Otherwise one logit for each class.
        """
        a, b = a.T, np.ascontiguousarray(b.T)  # pairs last: sums over a few classes are then of whole vectors
        value, grad_a, grad_b = 0.0, np.empty(a.shape), np.zeros(b.shape)
        for where, pairs in self._parts:
            z = pairs.spread(a[:, where]) + b[:, pairs.extended]
            share, target = self._share[where], self._target[where].T
            if len(z) == 1:
                risk, grad = _two_classes(z[0], pairs, share, target[1])
            else:
                risk, grad = _classes(z, pairs, share, target)
            value += risk
            grad_a[:, where] = pairs.sum(grad)
            for total, by_pair in zip(grad_b, grad, strict=True):
                total += np.bincount(pairs.extended, weights=by_pair, minlength=len(total))
        return value, grad_a.T, grad_b.T


def _two_classes(z: Array, pairs: Pairs, share: Array, p: Array) -> tuple[float, Array]:
    """The risk and its gradient by pair, ``[1, P]``; ``p`` is the second class's probability, ``[T]``."""
    q = _sigmoid(z)
    weighted = pairs.weight * q
    second = pairs.sum(weighted)
    rest = 1 - q
    first = 1 - second
    edge = np.finfo(z.dtype).eps ** 0.5
    if min(second.min(), first.min()) < edge:  # where 1 - q has lost its digits
        z = np.clip(z.astype(np.float64), -700, 700)
        q, rest = _sigmoid(z), _sigmoid(-z)
        weighted = pairs.weight * q
        second, first = pairs.sum(weighted), pairs.sum(pairs.weight * rest)
    risk = -(share @ (p * np.log(second) + (1 - p) * np.log(first)))
    # P̂(0) crosstalk q - P̂(1) crosstalk (1 - q), with the factors that both have taken out.
    pull = share * ((1 - p) / first - p / second)
    return float(risk), (weighted * rest * pairs.spread(pull))[None]


def _sigmoid(z: Array) -> Array:
    """A fifth of the time of SciPy's ``expit``."""
    found: Array = torch.from_numpy(z).sigmoid().numpy()
    return found


def _classes(z: Array, pairs: Pairs, share: Array, target: Array) -> tuple[float, Array]:
    """The same for any number of classes, ``[classes, P]``."""
    q = np.exp(z - z.max(0))
    q /= q.sum(0)
    weighted = pairs.weight * q
    induced = np.maximum(pairs.sum(weighted), np.finfo(z.dtype).tiny)
    risk = -(share @ (target * np.log(induced)).sum(0))
    direction = weighted * pairs.spread(share * target / induced)  # P̂ times the crosstalk
    return float(risk), q * direction.sum(0) - direction
