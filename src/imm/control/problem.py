"""A grid with a restricted policy for it, as tensors: what the training needs."""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from imm.control.grid import ACTIONS, Grid
from imm.inducers import Belief
from imm.targets import PomdpPolicy, Target


@dataclass(frozen=True)
class Walk:
    """What was met on the way, ``[runs, walkers, steps]`` each: states, actions there, and rewards got for them."""

    states: Tensor
    actions: Tensor
    rewards: Tensor


class Problem:
    """The world that is seen whole, and the policy of those who see x only.

    Args:
        grid: the world.
        target: the restricted policy; its short contexts are the values of x, its classes the four actions.

    Attributes:
        short: x of each state, ``[states]``.
        target: P̂(· | x), ``[width, actions]``.
        inducer: the belief about the state at each x.
    """

    def __init__(self, grid: Grid, target: Target) -> None:
        if tuple(target.classes) != ACTIONS:
            raise ValueError(f"target must have the actions {ACTIONS} as classes, got {target.classes}")
        if isinstance(target, PomdpPolicy) and len(target.utilities) != grid.width:
            raise ValueError(f"target must know each x of the grid, {grid.width} of them, got {len(target.utilities)}")
        self.grid = grid
        self.short = torch.arange(grid.n_states) % grid.width
        self.target = target(torch.arange(grid.width))
        self.inducer = Belief(torch.as_tensor(grid.belief()).float())
        self._following = torch.as_tensor(grid.following)
        self._reward = torch.as_tensor(grid.reward.ravel()).float()

    def walk(self, policy: Tensor, walkers: int, steps: int, generator: Generator) -> Walk:
        """Each run's policy ``[runs, states, actions]`` (probabilities) walked from random starts."""
        runs = len(policy)
        state = torch.randint(self.grid.n_states, (runs, walkers), generator=generator)
        coins = torch.rand(steps, runs, walkers, 1, generator=generator)
        below = policy[..., :-1].cumsum(-1).contiguous()  # the last action is what is left, whatever the rounding
        run = torch.arange(runs)[:, None]
        states, actions = [], []
        for coin in coins:
            action = (coin > below[run, state]).sum(-1)
            states.append(state)
            actions.append(action)
            state = self._following[state, action]
        entered = torch.stack([*states[1:], state], -1)
        return Walk(torch.stack(states, -1), torch.stack(actions, -1), self._reward[entered])
