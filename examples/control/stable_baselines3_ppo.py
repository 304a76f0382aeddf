"""IMM in Stable-Baselines3's PPO: a cart-pole policy is helped by an old one that never saw velocities.

    pip install 'imm[control]' stable-baselines3
    python examples/control/stable_baselines3_ppo.py [--quick]

PPO maximises ``ent_coef`` times what a policy's ``evaluate_actions`` gives as its entropy. So a policy that takes
``λ · IMM`` off there, in a PPO with ``ent_coef=1``, is trained with IMM, and Stable-Baselines3 stays as it is. In its
log ``entropy_loss`` then contains the help.
"""

import argparse
from functools import partial

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.policies import ActorCriticPolicy

from imm.control import PolicyMatching, Visited
from imm.inducers import Kernel

POSITIONS = [0, 2]  # of the cart and of the pole; 1 and 3 are their velocities


def old_policy(positions):
    """Pushes left or right by where the pole leans, ``[n, 2]`` to probabilities ``[n, 2]``."""
    right = torch.sigmoid(20 * positions[:, 1])
    return torch.stack([1 - right, right], 1)


class IMMPolicy(ActorCriticPolicy):
    """An actor-critic whose entropy bonus has IMM's risk taken off."""

    def __init__(self, *args, matching, lam, entropy=0.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.matching, self.lam, self.entropy = matching, lam, entropy

    def log_policy(self, observations):
        """``[n, 4]`` to ``[n, actions]``."""
        return self.get_distribution(observations).distribution.logits  # normalised: log-probabilities

    def evaluate_actions(self, obs, actions):
        """Values, log-probabilities, and what is to be large besides."""
        values, log_prob, entropy = super().evaluate_actions(obs, actions)
        bonus = self.entropy * entropy
        if self.lam:
            bonus = bonus - self.lam * self.matching(self.log_policy, obs)
        return values, log_prob, bonus


class See(BaseCallback):
    """The belief learns from each rollout what goes with which positions."""

    def __init__(self, matching):
        super().__init__()
        self.matching = matching

    def _on_step(self):
        return True

    def _on_rollout_end(self):
        observations = self.model.rollout_buffer.observations
        self.matching.see(torch.as_tensor(observations.reshape(-1, observations.shape[-1])))


def make(lam, seed=0, n_steps=256):
    """The model and the callback that must go with it."""
    draws = torch.Generator().manual_seed(seed)
    belief = Visited(partial(Kernel, alpha=[4.0, 50.0]), n_contexts=16, memory=1024, generator=draws)
    matching = PolicyMatching(POSITIONS, old_policy, belief)
    policy = {"matching": matching, "lam": lam, "net_arch": [32]}
    settings = {"n_steps": n_steps, "batch_size": 64, "n_epochs": 4, "learning_rate": 3e-3, "ent_coef": 1.0}
    model = PPO(IMMPolicy, "CartPole-v1", seed=seed, policy_kwargs=policy, device="cpu", **settings)
    return model, See(matching)


def main(arguments=None):
    """Trains with and without IMM and prints the mean return of some episodes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one seed, few steps: seconds")
    quick = parser.parse_args(arguments).quick
    steps, seeds, episodes = (512, [0], 5) if quick else (8192, range(5), 20)
    for lam in (0.0, 1.0):
        returns = []
        for seed in seeds:
            model, callback = make(lam, seed)
            model.learn(steps, callback)
            returns.append(evaluate_policy(model, model.get_env(), n_eval_episodes=episodes, deterministic=False)[0])
        print(f"λ = {lam}: mean return after {steps} steps {np.mean(returns):.0f}, by seed {np.round(returns)}")


if __name__ == "__main__":
    main()
