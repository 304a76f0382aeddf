"""Any Gymnasium environment with discrete actions, as tensors; refuses the others in one line."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Generator, Tensor

if TYPE_CHECKING:
    from gymnasium import Space
    from gymnasium.vector import VectorEnv

Policy = Callable[[Tensor], Tensor]
"""A torch module from observations ``[n, *shape]`` to logits of the actions ``[n, actions]``."""


class World:
    """What a training must know of an environment's spaces.

    Args:
        observation_space: ``Box``, ``Discrete``, ``MultiBinary`` or ``MultiDiscrete``: one array an observation.
        action_space: ``Discrete``.

    Attributes:
        n_actions: how many.
        shape: of one observation.
    """

    def __init__(self, observation_space: "Space[Any]", action_space: "Space[Any]") -> None:
        from gymnasium import spaces

        if not isinstance(action_space, spaces.Discrete):
            raise TypeError(f"actions must be a Discrete space, got {action_space}")
        arrays = (spaces.Box, spaces.Discrete, spaces.MultiBinary, spaces.MultiDiscrete)
        if not isinstance(observation_space, arrays):
            raise TypeError(
                "observations must be one array (Box, Discrete, MultiBinary, MultiDiscrete;"
                f" gymnasium.wrappers.FlattenObservation makes one of several), got {observation_space}"
            )
        self.n_actions = int(action_space.n)
        self.shape = tuple(observation_space.shape or ())
        self._first = int(action_space.start)

    def observations(self, given: Any) -> Tensor:
        """``[n, *shape]``: reals in torch's default precision, whole numbers as int64."""
        array = np.asarray(given)
        dtype = torch.get_default_dtype() if array.dtype.kind == "f" else torch.int64
        return torch.as_tensor(array.astype(np.float64 if array.dtype.kind == "f" else np.int64)).to(dtype)

    def actions(self, drawn: Tensor) -> Any:
        """As the environment wants them: a ``Discrete`` space may begin elsewhere than at 0."""
        return drawn.numpy() + self._first

    def log_policy(self, policy: Policy) -> Policy:
        """``log π(· | observation)``, ``[n, actions]``, of a policy that gives logits (or log-probabilities)."""

        def log_policy(observations: Tensor) -> Tensor:
            logits = policy(observations)
            wanted = (len(observations), self.n_actions)
            if logits.shape != wanted:
                raise ValueError(f"policy must give logits {list(wanted)}, got shape {tuple(logits.shape)}")
            return torch.log_softmax(logits, -1)

        return log_policy


def drawn(log_pi: Tensor, source: Generator) -> Tensor:
    """One action for each row of ``log_pi``, ``[n, actions]``: ``[n]``."""
    return torch.multinomial(log_pi.exp(), 1, generator=source)[:, 0]


@torch.no_grad()
def first_returns(envs: "VectorEnv[Any, Any, Any]", policy: Policy, seed: int) -> Tensor:
    """The sum of rewards of the first episode of each copy, actions drawn: ``[envs]``.

    Args:
        envs: whose episodes end.
        policy: gives logits.
        seed: of the environments and the actions.
    """
    world = World(envs.single_observation_space, envs.single_action_space)
    log_policy, source = world.log_policy(policy), Generator().manual_seed(seed)
    total = torch.zeros(envs.num_envs)
    running = torch.ones(envs.num_envs, dtype=torch.bool)
    observation, _ = envs.reset(seed=seed)
    while bool(running.any()):
        action = drawn(log_policy(world.observations(observation)), source)
        observation, reward, terminated, truncated, _ = envs.step(world.actions(action))
        total += torch.as_tensor(reward).to(total) * running
        running &= ~torch.as_tensor(terminated | truncated)
    return total
