"""Many policies of one shape, stacked: what one run would do by itself, all runs do in one tensor operation."""

import math

import torch
from torch import Generator, Tensor

from imm.validation import check_count


class Policies:
    """``runs`` tanh networks ``states – hidden – actions`` on the one-hot state.

    One-hot, the first layer is a column of its weights for each state; so a whole policy is ``states`` columns, and is
    computed at once. States come last in memory: they are many, and the processor works on many neighbours at a time.
    Starts as ``torch.nn.Linear``: uniform within ``1 / sqrt(inputs)``, biases too.

    Attributes:
        parameters: weights and biases of the two layers, ``[runs, hidden, states]``, ``[runs, hidden, 1]``,
            ``[runs, actions, hidden]`` and ``[runs, actions, 1]``.
    """

    def __init__(self, runs: int, n_states: int, n_actions: int, hidden: int, generator: Generator) -> None:
        for name, count in (("runs", runs), ("n_states", n_states), ("n_actions", n_actions), ("hidden", hidden)):
            check_count(count, name)

        def uniform(inputs: int, *shape: int) -> Tensor:
            bound = 1 / math.sqrt(inputs)
            return (torch.rand(runs, *shape, generator=generator) * 2 - 1).mul_(bound).requires_grad_()

        self.parameters = [
            uniform(n_states, hidden, n_states),
            uniform(n_states, hidden, 1),
            uniform(hidden, n_actions, hidden),
            uniform(hidden, n_actions, 1),
        ]

    def log_probabilities(self) -> Tensor:
        """``log π(action | state)`` of every run and state, ``[runs, states, actions]``, differentiable."""
        first, first_bias, second, second_bias = self.parameters
        return torch.log_softmax(torch.baddbmm(second_bias, second, torch.tanh(first + first_bias)), 1).mT
