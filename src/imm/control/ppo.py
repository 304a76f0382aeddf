"""Proximal policy optimisation in vectorised environments, with IMM as an auxiliary loss; one file, one run.

The loss of a minibatch is ``clipped + value · c_v - entropy · c_e + λ · IMM``. With λ = 0 it is PPO and nothing else:
the same random numbers, the same bits.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Generator, Tensor, nn

from imm.control.matching import Help, checked_lam, helped, let_see
from imm.control.spaces import checked_rewards, drawn, needed_gymnasium, world_of_many
from imm.validation import check_count, check_fraction, check_not_negative

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv


@dataclass(frozen=True)
class PPOSettings:
    """How a policy is trained.

    Attributes:
        steps: of each environment between two updates.
        epochs: how often an update goes through these steps.
        minibatches: into how many they are dealt each time.
        rate: of Adam.
        discount: γ.
        trace: λ of generalised advantage estimation; not IMM's.
        clip: ε, how far the ratio of new to old probability counts.
        entropy: its factor in the loss.
        value: the factor of the value's squared error.
        clip_gradient: the largest norm of the gradient of all parameters together.
    """

    steps: int = 128
    epochs: int = 4
    minibatches: int = 4
    rate: float = 2.5e-4
    discount: float = 0.99
    trace: float = 0.95
    clip: float = 0.2
    entropy: float = 0.01
    value: float = 0.5
    clip_gradient: float = 0.5

    def __post_init__(self) -> None:
        for name in ("steps", "epochs", "minibatches"):
            check_count(getattr(self, name), name)
        for name in ("discount", "trace"):
            check_fraction(getattr(self, name), name)
        for name in ("rate", "clip", "entropy", "value", "clip_gradient"):
            check_not_negative(getattr(self, name), name)


@dataclass(frozen=True)
class Rollout:
    """What was met, ``[steps, envs]`` each; of observations and values there is one more, after the last step.

    Attributes:
        observations: ``[steps + 1, envs, *shape]``. After an end there stands the last one of the episode, and from
            there no step is made: the environment is reset instead, whatever the action.
        actions: drawn.
        log_taken: their log-probabilities when they were drawn.
        rewards: got for them.
        terminated: whether the episode ended by the rules, so that nothing is worth anything after it.
        ended: whether it ended, by the rules or by the time.
        real: whether it was a step, not a reset.
        values: ``[steps + 1, envs]``.
    """

    observations: Tensor
    actions: Tensor
    log_taken: Tensor
    rewards: Tensor
    terminated: Tensor
    ended: Tensor
    real: Tensor
    values: Tensor


def advantages(rollout: Rollout, discount: float, trace: float) -> Tensor:
    """Generalised advantage estimation: ``A_t = δ_t + γ · trace · A_{t+1}``, which stops at an end; ``[steps, envs]``.

    ``δ_t = r_t + γ V(s_{t+1}) - V(s_t)``, without ``V(s_{t+1})`` where the episode terminated.
    """
    alive, goes_on = 1.0 - rollout.terminated.float(), 1.0 - rollout.ended.float()
    delta = rollout.rewards + discount * alive * rollout.values[1:] - rollout.values[:-1]
    out, after = torch.empty_like(delta), torch.zeros_like(delta[0])
    for t in reversed(range(len(delta))):
        after = out[t] = delta[t] + discount * trace * goes_on[t] * after
    return out


def clipped_loss(log_taken: Tensor, log_before: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """``-mean min(ρ A, clip(ρ, 1 - ε, 1 + ε) A)`` with ``ρ = π / π_before``; all ``[n]``, the first differentiated."""
    ratio = (log_taken - log_before).exp()
    return -torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage).mean()


class Batch(NamedTuple):
    """Some of a rollout's steps.

    Attributes:
        observations: ``[n, *shape]``.
        actions: taken there, ``[n]``.
        log_before: their log-probabilities when they were drawn, ``[n]``.
        advantage: ``[n]``.
        aim: what the value should be, ``[n]``.
    """

    observations: Tensor
    actions: Tensor
    log_before: Tensor
    advantage: Tensor
    aim: Tensor


@dataclass(frozen=True)
class Progress:
    """After an update: the steps made so far, by all environments, and the returns of the episodes that just ended.

    A step that only resets an environment after an end counts too: ``steps`` grows by the same number each time.
    """

    steps: int
    returns: list[float]


class PPO:
    """Trains a policy and a value function; see :class:`~imm.control.PolicyMatching` for the help.

    Args:
        envs: vectorised; resets at the step after an end, as Gymnasium's do by default.
        policy: a module from observations ``[n, *shape]`` to logits ``[n, actions]``.
        value: a module from observations to values, ``[n]`` or ``[n, 1]``.
        settings: how.
        matching: a second loss from the policy and observations, such as :class:`~imm.control.PolicyMatching`.
        lam: λ; ``ppo.lam`` may be set anew between updates.
        seed: of the environments, the actions and the minibatches.

    Example:
        >>> import gymnasium
        >>> envs = gymnasium.make_vec("CartPole-v1", 4, "vector_entry_point")
        >>> ppo = PPO(envs, nn.Linear(4, 2), nn.Linear(4, 1), PPOSettings(steps=32))
        >>> [progress.steps for progress in ppo.learn(updates=2)]
        [128, 256]
    """

    def __init__(
        self,
        envs: "VectorEnv[Any, Any, Any]",
        policy: nn.Module,
        value: nn.Module,
        settings: PPOSettings | None = None,
        matching: Help | None = None,
        lam: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.envs = envs
        self.world = world_of_many(envs)
        next_step = needed_gymnasium().vector.AutoresetMode.NEXT_STEP
        mode = envs.metadata.get("autoreset_mode", next_step)
        if mode != next_step:
            raise ValueError(f"envs must reset at the step after an end (AutoresetMode.NEXT_STEP), got {mode}")
        self.settings = PPOSettings() if settings is None else settings
        self.log_policy = self.world.log_policy(policy)
        self._value = value
        self.matching = matching
        self.lam = checked_lam(lam, matching)
        self._parameters = list({id(p): p for p in [*policy.parameters(), *value.parameters()]}.values())
        self._optimizer = torch.optim.Adam(self._parameters, lr=self.settings.rate, eps=1e-5)
        self._source = Generator().manual_seed(check_count(seed, "seed", least=0))
        self._observation = self.world.observations(envs.reset(seed=seed)[0], 0, envs.num_envs)
        self._ended = torch.zeros(envs.num_envs, dtype=torch.bool)
        self._return = torch.zeros(envs.num_envs, dtype=torch.float64)
        self._steps = 0

    def learn(self, updates: int) -> Iterator[Progress]:
        """Rollouts and updates by turns; gives what was reached after each."""
        for _ in range(check_count(updates, "updates")):
            rollout, returns = self._collect()
            let_see(self.lam, self.matching, rollout.observations[:-1][rollout.real])
            self._update(rollout)
            yield Progress(self._steps, returns)

    def value(self, observations: Tensor) -> Tensor:
        """``V``, ``[n]``."""
        values: Tensor = self._value(observations)
        n = len(observations)
        if values.shape not in ((n,), (n, 1)):
            raise ValueError(f"value must give [{n}] or [{n}, 1], got shape {tuple(values.shape)}")
        wrong = ~values.detach().isfinite()
        if wrong.any():
            raise ValueError(f"value must be finite, got {values[wrong][0].item()}")
        return values.view(n)

    @torch.no_grad()
    def _collect(self) -> tuple[Rollout, list[float]]:
        """The next steps of every environment, and the returns of the episodes that ended in them."""
        kept: list[list[Tensor]] = [[] for _ in range(7)]
        returns: list[float] = []
        for made in range(1, self.settings.steps + 1):
            log_pi = self.log_policy(self._observation)
            action = drawn(log_pi, self._source)
            there, reward, terminated, truncated, _ = self.envs.step(self.world.actions(action))
            at = self._steps // self.envs.num_envs + made
            rewarded = torch.as_tensor(checked_rewards(reward, at)).to(log_pi)
            ended = torch.as_tensor(terminated | truncated)
            taken = log_pi.gather(1, action[:, None])[:, 0]
            step = (self._observation, action, taken, rewarded, torch.as_tensor(terminated), ended, ~self._ended)
            for column, met in zip(kept, step, strict=True):
                column.append(met)
            self._observation, self._ended = self.world.observations(there, at, self.envs.num_envs), ended
            self._return += rewarded
            returns += self._return[ended].tolist()
            self._return[ended] = 0.0
        self._steps += self.settings.steps * self.envs.num_envs
        kept[0].append(self._observation)
        observations, actions, log_taken, rewards, terminations, ends, real = map(torch.stack, kept)
        values = self.value(observations.flatten(0, 1)).view(observations.shape[:2])
        return Rollout(observations, actions, log_taken, rewards, terminations, ends, real, values), returns

    def _update(self, rollout: Rollout) -> None:
        settings, real = self.settings, rollout.real
        advantage = advantages(rollout, settings.discount, settings.trace)
        aim = advantage + rollout.values[:-1]
        every = (rollout.observations[:-1], rollout.actions, rollout.log_taken, advantage, aim)
        whole = Batch(*(column[real] for column in every))
        for _ in range(settings.epochs):
            order = torch.randperm(len(whole.actions), generator=self._source)
            for part in filter(len, order.tensor_split(settings.minibatches)):  # resets may leave too few for all
                loss = self.loss(Batch(*(column[part] for column in whole)))
                self._optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self._parameters, settings.clip_gradient)
                self._optimizer.step()

    def loss(self, batch: Batch) -> Tensor:
        """Of one minibatch, a scalar; advantages are standardised within it."""
        log_pi, advantage = self.log_policy(batch.observations), batch.advantage
        if len(advantage) > 1:
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        taken = log_pi.gather(1, batch.actions[:, None])[:, 0]
        clipped = clipped_loss(taken, batch.log_before, advantage, self.settings.clip)
        value = 0.5 * (self.value(batch.observations) - batch.aim).square().mean()
        entropy = -(log_pi.exp() * log_pi).sum(-1).mean()
        primary = clipped + self.settings.value * value - self.settings.entropy * entropy
        return helped(primary, self.lam, self.matching, self.log_policy, batch.observations)
