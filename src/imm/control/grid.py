"""The toroidal grid of the paper (Appendix, RL Experiment) as arrays: no state, no library of environments."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from imm.control.pomdp import Pomdp
from imm.control.pomdp.model import numbers, shown
from imm.validation import check_count

ACTIONS = ("up", "down", "left", "right")
MOVES = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]])
"""What each action adds to (y, x): y grows downwards, x to the right."""


def landscape(height: int = 11, width: int = 11, variance: float = 0.1, extent: float = 2.0) -> NDArray[np.float64]:
    """The density of a centred normal, variances equal, sampled on ``[-extent, extent]²``: ``[height, width]``.

    Where there is one row or column only, it is the central one.

    Example:
        >>> round(float(landscape().max()), 4)  # at the centre
        1.5915
    """
    if not (variance > 0 and extent > 0):
        raise ValueError(f"variance and extent must be above 0, got {variance!r} and {extent!r}")
    y, x = _centred(check_count(height, "height"), extent), _centred(check_count(width, "width"), extent)
    out: NDArray[np.float64] = np.exp(-(y[:, None] ** 2 + x**2) / (2 * variance)) / (2 * np.pi * variance)
    return out


def _centred(n: int, extent: float) -> NDArray[np.float64]:
    """``n`` points from end to end; a single one is the centre."""
    return np.linspace(-extent, extent, n) if n > 1 else np.zeros(1)


@dataclass(frozen=True, eq=False)
class Grid:
    """A grid with a reward for each cell entered; without ``wrap`` a step beyond the edge stays where it is.

    A state is the number ``y · width + x``; actions are up, down, left and right.

    Attributes:
        reward: ``[height, width]``.
        wrap: whether the edges are joined (a torus).
        following: where each action leads, ``[states, 4]``.

    Example:
        >>> grid = Grid(landscape())
        >>> grid.n_states, grid.following[0].tolist()  # up and left of the first cell are the far edges
        (121, [110, 11, 10, 1])
    """

    reward: NDArray[np.float64]
    wrap: bool = True
    following: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        reward = numbers(self.reward, "reward")
        if reward.ndim != 2 or reward.size == 0 or not np.isfinite(reward).all():
            raise ValueError(f"reward must be finite numbers [height, width], got {shown(self.reward)}")
        object.__setattr__(self, "reward", reward)
        places = np.indices(reward.shape).reshape(2, -1).T[:, None, :] + MOVES
        size = np.array(reward.shape)
        places = places % size if self.wrap else places.clip(0, size - 1)
        object.__setattr__(self, "following", places @ np.array([self.width, 1]))

    @property
    def height(self) -> int:
        """How many values y has."""
        return len(self.reward)

    @property
    def width(self) -> int:
        """How many values x has."""
        return len(self.reward[0])

    @property
    def n_states(self) -> int:
        """How many cells."""
        return self.reward.size

    def belief(self) -> NDArray[np.float64]:
        """Uniform over y at each x, ``[width, states]``: what one knows who sees x only."""
        same_x = np.arange(self.n_states) % self.width == np.arange(self.width)[:, None]
        out: NDArray[np.float64] = same_x / self.height
        return out

    def pomdp(self, discount: float = 0.9) -> Pomdp:
        """The same world where only the new x is seen; its reward is that of the current cell, not of the one entered.

        So the paper's restricted model was solved. It differs from the walk itself by a shift of one step.
        """
        one = np.eye(self.n_states)
        return Pomdp(
            transition=np.stack([one[self.following[:, action]] for action in range(len(ACTIONS))]),
            observation=(self.belief() > 0).T.astype(float),
            reward=self.reward.ravel(),
            discount=discount,
            actions=ACTIONS,
        )


class Walkers:
    """The vectorised twin of :class:`~imm.control.env.ToroidalGrid`: ``n`` walkers on one grid.

    Args:
        grid: where they walk.
        n: how many.
        seed: of where they start.

    Example:
        >>> walkers = Walkers(Grid(np.eye(3)), n=1000, seed=0)
        >>> reward = walkers.step(np.zeros(1000, dtype=int))  # all go up
        >>> walkers.places.shape, reward.shape
        ((1000, 2), (1000,))
    """

    def __init__(self, grid: Grid, n: int, seed: int | np.random.Generator | None = None) -> None:
        self.grid = grid
        self.n = check_count(n, "n")
        self.random = np.random.default_rng(seed)
        self.states = self.reset()

    def reset(self) -> NDArray[np.int64]:
        """Every walker to a cell at random, each as likely; gives the states ``[n]``."""
        self.states = self.random.integers(self.grid.n_states, size=self.n)
        return self.states

    @property
    def places(self) -> NDArray[np.int64]:
        """(y, x) of each, ``[n, 2]``."""
        return np.stack(np.divmod(self.states, self.grid.width), 1)

    def step(self, actions: ArrayLike) -> NDArray[np.float64]:
        """One action each, ``[n]`` integers; gives the rewards of the cells entered, ``[n]``."""
        given: NDArray[Any] = np.asarray(actions)
        if given.shape != (self.n,) or given.dtype.kind not in "iu":
            raise ValueError(f"actions must be integers [{self.n}], got {given.dtype} of shape {given.shape}")
        if given.min() < 0 or given.max() >= len(ACTIONS):
            raise ValueError(f"actions must be 0 to {len(ACTIONS) - 1}, got {given.min()} to {given.max()}")
        self.states = self.grid.following[self.states, given]
        return self.grid.reward.ravel()[self.states]
