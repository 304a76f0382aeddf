"""The policy of a solved POMDP as a target."""

from collections.abc import Hashable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from imm.control.pomdp.model import Floats, numbers
from imm.control.pomdp.solvers import Solution
from imm.targets.base import Target

TIED = 1e-9
"""Utilities that differ by less than this part of the largest are equal: what is between them is rounding."""


class PomdpPolicy(Target):
    """The best action by ``belief · alpha``, or a softmax over these utilities.

    Args:
        solution: from one of the solvers; or its alpha vectors, ``[actions, states]``.
        belief: what each short context knows about the state, ``[n_short, states]``.
        classes: the actions, in the order of the alpha vectors.
        temperature: None for all probability on the best action; else τ in ``softmax(utility / τ)``   (Appendix
            quality: 0.5 is medium quality, 1.0 low).
        ties: where several actions are exactly as good, all probability on the ``first`` of them, or equal ``shares``.
            What differs by rounding only is as good.

    Short contexts are integers in ``[0, n_short)``.

    Example:
        >>> alpha = np.array([[1.0, 0.0], [0.0, 1.0]])
        >>> policy = PomdpPolicy(alpha, belief=[[0.1, 0.9], [0.5, 0.5]], classes=["left", "right"], ties="shares")
        >>> policy([0, 1])
        tensor([[0.0000, 1.0000],
                [0.5000, 0.5000]])
    """

    def __init__(
        self,
        solution: Solution | ArrayLike,
        belief: ArrayLike,
        classes: Sequence[Hashable],
        temperature: float | None = None,
        ties: Literal["first", "shares"] = "first",
    ) -> None:
        super().__init__(classes)
        solved = solution if isinstance(solution, Solution) else Solution(numbers(solution, "alpha"), 0, 0.0)
        alpha = solved.alpha
        if alpha.ndim != 2 or len(alpha) != len(self.classes) or not np.isfinite(alpha).all():
            raise ValueError(f"alpha must be finite, [{len(self.classes)} classes, states], got shape {alpha.shape}")
        if temperature is not None and not temperature > 0:
            raise ValueError(f"temperature must be above 0, or None for the best action, got {temperature!r}")
        if ties not in ("first", "shares"):
            raise ValueError(f"ties must be 'first' or 'shares', got {ties!r}")
        known = numbers(belief, "belief")
        if known.ndim != 2 or known.shape[1] != alpha.shape[1]:
            raise ValueError(f"belief must be [n_short, {alpha.shape[1]} states], got shape {known.shape}")
        self.utilities = solved.utilities(known)
        p = _best(self.utilities, ties) if temperature is None else _softmax(self.utilities / temperature)
        self._p = torch.as_tensor(p, dtype=torch.get_default_dtype())

    def probabilities(self, short: Any) -> Tensor:
        """The rows of these short contexts."""
        rows = torch.as_tensor(np.asarray(short))
        if rows.ndim != 1 or rows.is_floating_point() or rows.dtype == torch.bool:
            raise ValueError(f"short must be integers [n], got {rows.dtype} of shape {tuple(rows.shape)}")
        unseen = (rows < 0) | (rows >= len(self._p))
        if unseen.any():
            raise ValueError(f"short context {rows[unseen][0].item()} is not in the belief's 0 to {len(self._p) - 1}")
        return self._p[rows.long()]


def _best(utilities: Floats, ties: str) -> Floats:
    scale = np.abs(utilities).max(-1, keepdims=True)
    best = utilities >= utilities.max(-1, keepdims=True) - TIED * scale
    if ties == "first":
        best &= best.cumsum(-1) == 1
    out: Floats = best / best.sum(-1, keepdims=True)
    return out


def _softmax(utilities: Floats) -> Floats:
    weights: Floats = np.exp(utilities - utilities.max(-1, keepdims=True))
    out: Floats = weights / weights.sum(-1, keepdims=True)
    return out
