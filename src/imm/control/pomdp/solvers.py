"""Upper bounds on the value of a POMDP: one alpha vector for each action, by repeated sweeps.

At a belief b, and when the sweeps have converged,
``Σ_s b(s) V_MDP(s) ≥ max_a b · α_QMDP ≥ max_a b · α_FIB ≥ V*(b)``: who sees everything now and later has it best, then
who sees everything from the next step on, then who sees it a step later still.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy import sparse

from imm.control.pomdp.model import Floats, Pomdp, numbers
from imm.validation import check_count, check_probabilities


@dataclass(frozen=True)
class Solution:
    """What the sweeps ended with.

    Attributes:
        alpha: ``[actions, states]``; the utility of an action at a belief is ``belief · alpha[action]``.
        sweeps: how many it took.
        change: the largest change of an entry in the last one.
    """

    alpha: Floats
    sweeps: int
    change: float

    def utilities(self, belief: ArrayLike) -> Floats:
        """``belief · alpha``, ``[..., actions]``, of beliefs ``[..., states]``, which sum to one."""
        known, n_states = numbers(belief, "belief"), self.alpha.shape[1]
        if known.ndim == 0 or known.shape[-1] != n_states:
            raise ValueError(f"belief must be [..., {n_states} states], got shape {known.shape}")
        check_probabilities(torch.as_tensor(known), "belief")
        out: Floats = known @ self.alpha.T
        return out

    def value(self, belief: ArrayLike) -> Floats:
        """The best utility at these beliefs, ``[...]``."""
        out: Floats = self.utilities(belief).max(-1)
        return out


def value_iteration(
    pomdp: Pomdp, tolerance: float = 1e-3, start: float = 0.0, max_sweeps: int = 100_000
) -> tuple[Floats, Solution]:
    """``V(s) = max_a [R(s, a) + γ Σ_s' T(s'|s, a) V(s')]``: the value of who sees the state, ``[states]``.

    Args:
        pomdp: the problem; what is observed does not matter.
        tolerance: the sweeps end when no entry changes by this much. What is left is then below
            ``tolerance · γ / (1 - γ)``.
        start: every entry before the first sweep. From ``max R / (1 - γ)`` the sweeps descend, and are an upper
            bound whenever they end.
        max_sweeps: more are an error.

    Returns:
        ``V``, and the solution whose alpha vectors are ``Q(s, a)``.
    """
    solution = qmdp(pomdp, tolerance, start, max_sweeps)
    return solution.alpha.max(0), solution


def qmdp(pomdp: Pomdp, tolerance: float = 1e-3, start: float = 0.0, max_sweeps: int = 100_000) -> Solution:
    """``α_a(s) = R(s, a) + γ Σ_s' T(s'|s, a) max_a' α_a'(s')``: all is seen from the next step on.

    Arguments as in :func:`value_iteration`.
    """

    def expected(alpha: Floats) -> Floats:
        best = alpha.max(0)
        return np.stack([move @ best for move in pomdp.transition])

    return _sweep(pomdp, expected, tolerance, start, max_sweeps)


def fast_informed_bound(
    pomdp: Pomdp, tolerance: float = 1e-3, start: float = 0.0, max_sweeps: int = 100_000
) -> Solution:
    """``α_a(s) = R(s, a) + γ Σ_o max_a' Σ_s' O(o|a, s') T(s'|s, a) α_a'(s')``.

    The next action is chosen by what is then seen, and after it all is seen.

    Arguments as in :func:`value_iteration`.
    """
    joint = [_joint(pomdp, action) for action in range(pomdp.n_actions)]

    def expected(alpha: Floats) -> Floats:
        return np.stack(
            [np.bincount(state, (both @ alpha.T).max(1), minlength=pomdp.n_states) for state, both in joint]
        )

    return _sweep(pomdp, expected, tolerance, start, max_sweeps)


def _joint(pomdp: Pomdp, action: int) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], sparse.csr_array]:
    """``O(o|a, s') T(s'|s, a)`` with a row for each pair (s, o) that can happen, and the s of each row."""
    n, n_obs = pomdp.n_states, pomdp.n_observations
    move, seen = pomdp.transition[action].tocoo(), pomdp.observation[action]
    many = np.diff(seen.indptr)[move.col]  # how many observations each next state has
    entry = np.repeat(np.arange(len(move.col)), many)
    inside = np.arange(len(entry)) - np.repeat(np.cumsum(many) - many, many)
    place = seen.indptr[move.col[entry]] + inside
    pairs = move.row[entry].astype(np.int64) * n_obs + seen.indices[place]
    different, row = np.unique(pairs, return_inverse=True)
    weight = move.data[entry] * seen.data[place]
    return different // n_obs, sparse.csr_array((weight, (row, move.col[entry])), shape=(len(different), n))


def _sweep(
    pomdp: Pomdp, expected: Callable[[Floats], Floats], tolerance: float, start: float, max_sweeps: int
) -> Solution:
    if not tolerance > 0:
        raise ValueError(f"tolerance must be above 0, got {tolerance!r}")
    if not math.isfinite(start):
        raise ValueError(f"start must be finite, got {start!r}")
    reward = pomdp.reward.T
    alpha = np.full(reward.shape, float(start))
    for sweeps in range(1, check_count(max_sweeps, "max_sweeps") + 1):
        new = reward + pomdp.discount * expected(alpha)
        change = float(np.abs(new - alpha).max())
        alpha = new
        if change < tolerance:
            return Solution(alpha, sweeps, change)
    raise ValueError(f"{max_sweeps} sweeps are not enough: entries still change by {change:.3g}, not {tolerance:g}")
