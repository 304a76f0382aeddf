"""An old cart-pole policy that never saw velocities helps to train one that sees everything.

    pip install 'imm[control]'
    python examples/control/cartpole_hidden_velocities.py [--quick] [--seeds 5] [--out cartpole.png]

The old policy knows the positions of cart and pole. The new one is trained by PPO so that, averaged over the velocities
that may go with given positions, it agrees with the old one. Which velocities those are is learned on the way, from the
last visited states: a state lends its velocities to positions near its own. ``imm reproduce cartpole-velocities`` is
the same as a study, with reverse KD beside it.
"""

import argparse
from functools import partial

import gymnasium
import numpy as np
import torch
from matplotlib.figure import Figure
from torch import nn

from imm.control import PPO, PolicyMatching, PPOSettings, Visited, first_returns
from imm.inducers import Kernel

POSITIONS = [0, 2]  # of the cart and of the pole; 1 and 3 are their velocities
LAM = 1.0
EVERY = 8  # updates between two looks


def old_policy(positions):
    """Pushes where the pole leans: about 50 steps until it falls, where pushing at random gives 22."""
    right = torch.sigmoid(20 * positions[:, 1])
    return torch.stack([1 - right, right], 1)


def network(out):
    """Four numbers in, ``out`` numbers out."""
    return nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, out))


def returns_over_steps(lam, seed, updates):
    """Steps made, and the mean return of 20 episodes there, at every look."""
    torch.manual_seed(seed)  # both methods start from the same networks
    policy, value = network(2), network(1)
    draws = torch.Generator().manual_seed(seed)
    belief = Visited(partial(Kernel, alpha=[4.0, 50.0]), n_contexts=16, memory=1024, generator=draws)
    matching = PolicyMatching(short=POSITIONS, target=old_policy, belief=belief)
    envs = gymnasium.make_vec("CartPole-v1", 8, "vector_entry_point")
    ppo = PPO(envs, policy, value, PPOSettings(steps=32, rate=3e-3, entropy=0.0), matching, lam, seed)
    judges = gymnasium.make_vec("CartPole-v1", 20, "vector_entry_point")
    found = []
    for update, progress in enumerate(ppo.learn(updates), start=1):
        if update % EVERY == 0:
            found.append((progress.steps, first_returns(judges, policy, seed + 1).mean().item()))
    return np.array(found).T


def main(arguments=None):
    """Trains, prints, draws."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two seeds, few steps: seconds")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", default="cartpole.png")
    given = parser.parse_args(arguments)
    if given.seeds < 1:
        parser.error(f"--seeds must be at least 1, got {given.seeds}")
    seeds, updates = (2, 2 * EVERY) if given.quick else (given.seeds, 64)
    canvas = Figure(figsize=(6, 4), layout="constrained")
    axes = canvas.subplots()
    for name, lam, colour in (("none", 0.0, "#800000"), ("imm", LAM, "#2e7d32")):
        runs = [returns_over_steps(lam, seed, updates) for seed in range(seeds)]
        steps, returns = runs[0][0], np.stack([run[1] for run in runs])
        low, high = np.percentile(returns, [10, 90], axis=0)
        axes.plot(steps, returns.mean(0), color=colour, marker="o", label=name)
        axes.fill_between(steps, low, high, color=colour, alpha=0.2)
        for column, step in enumerate(steps):
            spread = f"[{low[column]:.0f}, {high[column]:.0f}]"
            print(f"{name:5} {step:6.0f} steps: mean return {returns[:, column].mean():5.1f} {spread}")
    axes.set(xlabel="steps in the environment", ylabel="return (500 at most)")
    axes.set_title(f"means of {seeds} seeds; shaded: 10th to 90th percentile", fontsize=9)
    axes.legend()
    canvas.savefig(given.out)
    print(f"written to {given.out}")


if __name__ == "__main__":
    main()
