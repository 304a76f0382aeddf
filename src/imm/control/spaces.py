"""Any Gymnasium environment with discrete actions, as tensors; refuses the others in one line."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Generator, Tensor

from imm.extras import install
from imm.validation import check_count

if TYPE_CHECKING:
    from gymnasium import Env, Space
    from gymnasium.vector import VectorEnv

Policy = Callable[[Tensor], Tensor]
"""A torch module from observations ``[n, *shape]`` to logits of the actions ``[n, actions]``."""


def needed_gymnasium() -> Any:
    """The library, which only the extra ``[control]`` installs."""
    try:
        import gymnasium
    except ImportError:
        raise ImportError(f"this needs Gymnasium: {install('control')}") from None
    return gymnasium


class World:
    """What a training must know of an environment's spaces.

    Args:
        observation_space: ``Box``, ``Discrete``, ``MultiBinary`` or ``MultiDiscrete``: one array an observation.
        action_space: ``Discrete``.

    Attributes:
        n_actions: how many.
        shape: of one observation.
        dtype: of observations as tensors, by their space: torch's default for a ``Box``, int64 for the others.
    """

    def __init__(self, observation_space: "Space[Any]", action_space: "Space[Any]") -> None:
        spaces = needed_gymnasium().spaces
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
        self.dtype = torch.get_default_dtype() if isinstance(observation_space, spaces.Box) else torch.int64
        self._first = int(action_space.start)

    def observations(self, given: Any, step: int, n: int | None = None) -> Tensor:
        """``[n, *shape]``, of one environment ``[*shape]``; ``step`` is for the message where one is refused."""
        array, wanted = np.asarray(given), self.shape if n is None else (n, *self.shape)
        if array.shape != wanted:
            raise ValueError(
                f"observations must be of shape {wanted}, as their space says, got {array.shape} at step {step}"
            )
        _check_finite(array, "observation", step)
        return torch.as_tensor(array.astype(np.float64 if self.dtype.is_floating_point else np.int64)).to(self.dtype)

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
            log_pi = torch.log_softmax(logits, -1)
            if bool(log_pi.detach().isnan().any()):  # by NaN or +inf; an action may have -inf
                row = int(log_pi.detach().isnan().any(-1).nonzero()[0, 0])
                raise ValueError(f"policy must give finite logits (some may be -inf), got {logits[row].tolist()[:8]}")
            return log_pi

        return log_policy


def world_of(env: "Env[Any, Any]") -> World:
    """Of a single environment; others are refused."""
    if not isinstance(env, needed_gymnasium().Env):
        raise TypeError(f"env must be one environment, as gymnasium.make gives, got {_kind(env)}; PPO takes vectorised")
    return World(env.observation_space, env.action_space)


def world_of_many(envs: "VectorEnv[Any, Any, Any]") -> World:
    """Of vectorised environments; others are refused."""
    if not isinstance(envs, needed_gymnasium().vector.VectorEnv):
        raise TypeError(
            f"envs must be vectorised, as gymnasium.make_vec gives, got {_kind(envs)}; IMMReinforce takes a single one"
        )
    return World(envs.single_observation_space, envs.single_action_space)


def _kind(given: Any) -> str:
    return repr(given) if isinstance(given, str) else f"a {type(given).__name__}"


def checked_rewards(given: Any, step: int) -> Any:
    """Rewards as an array, float64; NaN and infinity are refused."""
    rewards = np.asarray(given, dtype=np.float64)
    _check_finite(rewards, "reward", step)
    return rewards


def _check_finite(array: Any, name: str, step: int) -> None:
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)].flat[0]} at step {step}")


def drawn(log_pi: Tensor, source: Generator) -> Tensor:
    """One action for each row of ``log_pi``, ``[n, actions]``: ``[n]``."""
    return torch.multinomial(log_pi.exp(), 1, generator=source)[:, 0]


@torch.no_grad()
def first_returns(envs: "VectorEnv[Any, Any, Any]", policy: Policy, seed: int, most: int = 100_000) -> Tensor:
    """The sum of rewards of the first episode of each copy, actions drawn: ``[envs]``.

    Args:
        envs: whose episodes end.
        policy: gives logits.
        seed: of the environments and the actions.
        most: steps; an episode that is longer is an error.
    """
    world = world_of_many(envs)
    log_policy, source = world.log_policy(policy), Generator().manual_seed(seed)
    total = torch.zeros(envs.num_envs)
    running = torch.ones(envs.num_envs, dtype=torch.bool)
    observation, _ = envs.reset(seed=seed)
    for step in range(check_count(most, "most")):
        action = drawn(log_policy(world.observations(observation, step, envs.num_envs)), source)
        observation, reward, terminated, truncated, _ = envs.step(world.actions(action))
        total += torch.as_tensor(checked_rewards(reward, step + 1)).to(total) * running
        running &= ~torch.as_tensor(terminated | truncated)
        if not running.any():
            return total
    raise ValueError(f"{int(running.sum())} of {envs.num_envs} episodes have not ended after {most} steps")
