"""REINFORCE with the help of a restricted policy in any Gymnasium environment with discrete actions, one run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Generator, Tensor, nn

from imm.control.matching import Help, checked_lam, helped, let_see
from imm.control.spaces import checked_rewards, drawn, world_of
from imm.control.stacked_runs import reward_to_go, stepper
from imm.validation import check_count, check_fraction

if TYPE_CHECKING:
    from gymnasium import Env


@dataclass(frozen=True)
class Episode:
    """What was met on the way: observations ``[n, *shape]``, actions there ``[n]``, rewards got for them ``[n]``."""

    observations: Tensor
    actions: Tensor
    rewards: Tensor


class IMMReinforce:
    """One walk and one step of Adam an update, as the stacked :func:`~imm.control.train` has it on the grid.

    ``-mean_t(log π(a_t|s_t) · G_t) + λ · IMM``, with the discounted reward-to-go ``G_t`` and no baseline
    (Appendix, RL Experiment). With the grid's settings its updates are those of the stacked training.

    Args:
        env: observations are one array, actions discrete.
        policy: a module from observations ``[n, *shape]`` to logits ``[n, actions]``.
        matching: a second loss from the policy and observations, such as :class:`~imm.control.PolicyMatching`; needed
            where ``lam`` is above 0.
        lam: λ; with 0 this is plain REINFORCE.
        rate: of Adam.
        steps: of a walk, which ends earlier where the environment says so.
        discount: γ in the reward-to-go.
        seed: of the environment and of the actions.

    Example:
        >>> import gymnasium
        >>> from imm.control import PolicyMatching
        >>> env = gymnasium.make("imm/ToroidalGrid-v0", height=3, width=3)
        >>> class Table(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.logits = nn.Parameter(torch.zeros(3, 3, 4))
        ...     def forward(self, places):  # (y, x), whole numbers
        ...         return self.logits[places[:, 0], places[:, 1]]
        >>> matching = PolicyMatching(
        ...     short=lambda places: places[:, 1],
        ...     target=lambda x: torch.eye(4)[torch.tensor([3, 0, 2])[x]],  # right, up, left
        ...     belief=lambda x: (
        ...         torch.stack([torch.arange(3).expand(len(x), 3), x[:, None].expand(-1, 3)], -1),  # every y
        ...         torch.full((len(x), 3), 1 / 3),
        ...     ),
        ... )
        >>> agent = IMMReinforce(env, Table(), matching, lam=0.25)
        >>> returns = agent.learn(10)
        >>> len(returns)
        10
    """

    def __init__(
        self,
        env: "Env[Any, Any]",
        policy: nn.Module,
        matching: Help | None = None,
        lam: float = 0.0,
        rate: float = 0.01,
        steps: int = 50,
        discount: float = 0.9,
        seed: int = 0,
    ) -> None:
        self.env = env
        self.world = world_of(env)
        self.log_policy = self.world.log_policy(policy)
        self.matching = matching
        self.lam = checked_lam(lam, matching)
        self.steps = check_count(steps, "steps")
        self.discount = check_fraction(discount, "discount")
        self._seed: int | None = check_count(seed, "seed", least=0)
        self._source = Generator().manual_seed(seed)
        self._step: Callable[[Tensor], None] = stepper(policy.parameters(), rate)

    def walk(self) -> Episode:
        """From a reset on, actions drawn, until the end or ``steps``."""
        observation, _ = self.env.reset(seed=self._seed)
        self._seed = None  # once: with a seed at every reset all walks would start alike
        observations, actions, rewards = [], [], []
        for step in range(self.steps):
            observations.append(self.world.observations(observation, step))
            with torch.no_grad():
                actions.append(drawn(self.log_policy(observations[-1][None]), self._source))
            observation, reward, terminated, truncated, _ = self.env.step(self.world.actions(actions[-1])[0])
            rewards.append(float(checked_rewards(reward, step + 1)))
            if terminated or truncated:
                break
        return Episode(torch.stack(observations), torch.cat(actions), torch.tensor(rewards))

    def loss(self, walked: Episode) -> Tensor:
        """A scalar, differentiable in the policy's parameters."""
        log_pi = self.log_policy(walked.observations)
        taken = log_pi.gather(1, walked.actions[:, None])[:, 0]
        primary = -(taken * reward_to_go(walked.rewards, self.discount)).mean()
        return helped(primary, self.lam, self.matching, self.log_policy, walked.observations)

    def update(self, walked: Episode) -> None:
        """What was visited is remembered by a learned belief; then one step of Adam."""
        let_see(self.lam, self.matching, walked.observations)
        self._step(self.loss(walked))

    def learn(self, updates: int) -> list[float]:
        """Walks and updates by turns; gives the sum of rewards of each walk, not discounted."""
        returns = []
        for _ in range(check_count(updates, "updates")):
            walked = self.walk()
            self.update(walked)
            returns.append(float(walked.rewards.sum()))
        return returns
