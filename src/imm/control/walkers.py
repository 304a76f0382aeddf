"""Thousands of copies of a grid, stepped at once."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from imm.control.grid import ACTIONS, Grid
from imm.validation import check_count


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
