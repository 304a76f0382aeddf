"""A finite POMDP."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

Floats = NDArray[np.float64]
Given = ArrayLike | Sequence[Any]
"""One array, or a sequence of (sparse) matrices, one for each action."""

TOLERANCE = 1e-6
"""How far a row of probabilities may be from one; files print few digits, see :mod:`imm.control.pomdp.file`."""


@dataclass(frozen=True, init=False, eq=False)
class Pomdp:
    """States, actions and observations are numbers from 0; names, where there are any, are for people.

    Args:
        transition: T, ``[actions, states, states]``: P(next state | state, action); or a sparse matrix for each action.
        observation: O, ``[actions, states, observations]``: P(observation | action, next state); or a sparse matrix
            for each action; or one matrix ``[states, observations]`` if the action does not matter.
        reward: R, ``[states, actions]``, or ``[states]`` if the action does not matter. A reward that depends on the
            next state or the observation enters by its mean.
        discount: γ, at least 0 and below 1.
        start: the belief at the start, ``[states]``; uniform if None.
        states: names.
        actions: names.
        observations: names.
        tolerance: how far from one a row of probabilities may sum.

    Attributes:
        transition: a sparse matrix ``[states, states]`` for each action.
        observation: a sparse matrix ``[states, observations]`` for each action.
        reward: ``[states, actions]``.

    Example:
        >>> listen_or_not = Pomdp(
        ...     transition=np.stack([np.eye(2), np.full((2, 2), 0.5)]),
        ...     observation=[[0.85, 0.15], [0.15, 0.85]],
        ...     reward=[0.0, 1.0],
        ...     discount=0.9,
        ... )
        >>> listen_or_not.n_states, listen_or_not.n_actions, listen_or_not.n_observations
        (2, 2, 2)
    """

    transition: tuple[Any, ...]
    observation: tuple[Any, ...]
    reward: Floats
    discount: float
    start: Floats
    states: tuple[str, ...]
    actions: tuple[str, ...]
    observations: tuple[str, ...]

    def __init__(
        self,
        transition: Given,
        observation: Given,
        reward: ArrayLike,
        discount: float,
        start: ArrayLike | None = None,
        states: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
        observations: Sequence[str] | None = None,
        tolerance: float = TOLERANCE,
    ) -> None:
        if not 0 <= discount < 1:
            raise ValueError(f"discount must be at least 0 and below 1, got {discount!r}")
        moves = tuple(_matrix(part, "transition") for part in _by_action(transition, "transition"))
        n_actions, n_states = len(moves), moves[0].shape[0]
        seen = tuple(_matrix(part, "observation") for part in _by_action(observation, "observation", n_actions))
        names = {
            "states": _names(states, n_states, "states"),
            "actions": _names(actions, n_actions, "actions"),
            "observations": _names(observations, seen[0].shape[1], "observations"),
        }
        for action, label in enumerate(names["actions"]):
            _check(moves[action], (n_states, n_states), f"transition of action {label}", names["states"], tolerance)
            shape = (n_states, seen[0].shape[1])
            _check(seen[action], shape, f"observation of action {label}", names["states"], tolerance)
        belief = np.full(n_states, 1 / n_states) if start is None else numbers(start, "start")
        if belief.shape != (n_states,):
            raise ValueError(f"start must be [{n_states}], got shape {belief.shape}")
        _check(sparse.csr_array(belief[None]), (1, n_states), "start", None, tolerance)
        values = {
            "transition": moves,
            "observation": seen,
            "reward": _reward(reward, n_states, n_actions),
            "discount": float(discount),
            "start": belief,
            **names,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def n_states(self) -> int:
        """How many states."""
        return len(self.states)

    @property
    def n_actions(self) -> int:
        """How many actions."""
        return len(self.actions)

    @property
    def n_observations(self) -> int:
        """How many observations."""
        return len(self.observations)


def _by_action(given: Any, name: str, n_actions: int | None = None) -> list[Any]:
    """One matrix for each action; a single one, where ``n_actions`` is known, is for all."""
    if sparse.issparse(given):
        parts: list[Any] = [given]
    elif isinstance(given, (list, tuple)) and any(sparse.issparse(part) for part in given):
        parts = list(given)
    else:
        array = numbers(given, name)
        if array.ndim not in (2, 3) or array.size == 0:
            raise ValueError(f"{name} must be a matrix for each action, got shape {array.shape}")
        parts = [array] if array.ndim == 2 else list(array)
    if n_actions is None:
        return parts
    if len(parts) == 1:
        return parts * n_actions
    if len(parts) != n_actions:
        raise ValueError(f"{name} must have a matrix for each of the {n_actions} actions, got {len(parts)}")
    return parts


def _matrix(part: Any, name: str) -> Any:
    try:
        out = sparse.csr_array(part, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers, got {shown(part)}") from None
    out.sum_duplicates()
    return out


def numbers(given: ArrayLike, name: str) -> Floats:
    """As an array, float64; what is ragged or no number is refused by its name."""
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers, got {shown(given)}") from None


def shown(given: Any) -> str:
    """The beginning of what was given, in one line."""
    return " ".join(repr(given).split())[:60]


def _names(given: Sequence[str] | None, n: int, name: str) -> tuple[str, ...]:
    out = tuple(str(i) for i in range(n)) if given is None else tuple(given)
    if len(out) != n or len(set(out)) != n:
        raise ValueError(f"{name} must be {n} different names, got {list(out)[:8]}")
    return out


def _check(p: Any, shape: tuple[int, int], name: str, rows: Sequence[str] | None, tolerance: float) -> None:
    if p.shape != shape:
        raise ValueError(f"{name} must be {list(shape)}, got shape {p.shape}")
    total = np.asarray(p.sum(1)).ravel()
    negative = np.zeros(shape[0], dtype=bool)
    negative[np.repeat(np.arange(shape[0]), np.diff(p.indptr))[p.data < 0]] = True
    wrong = np.flatnonzero(negative | ~(np.abs(total - 1) <= tolerance))  # NaN is wrong too
    if len(wrong):
        row = wrong[0]
        what = "has a negative value" if negative[row] else f"sums to {total[row]:.6g}"
        where = "" if rows is None else f" the row of state {rows[row]}"
        raise ValueError(f"{name} must be probabilities;{where or ' it'} {what}")


def _reward(given: ArrayLike, n_states: int, n_actions: int) -> Floats:
    reward = numbers(given, "reward")
    if reward.shape == (n_states,):
        reward = np.repeat(reward[:, None], n_actions, 1)
    if reward.shape != (n_states, n_actions):
        raise ValueError(f"reward must be [{n_states}] or [{n_states}, {n_actions}], got shape {reward.shape}")
    if not np.isfinite(reward).all():
        raise ValueError("reward must be finite")
    return reward
