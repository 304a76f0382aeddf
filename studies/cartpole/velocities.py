"""Our study: a policy that never saw velocities helps to train one that does, on Gymnasium's cart-pole by PPO.

The old policy is written by hand: it pushes where the pole leans, more surely the more it leans, and keeps the pole up
for about 50 steps. A belief over the velocities at given positions is learned on the way: those of the last visited
states, the nearer their positions the likelier. ``docs/guides/control.md`` says how λ was chosen.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from imm.experiments.study import Figure, Row, Settings, Study
from imm.extras import install

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from imm.control.matching import Help

POSITIONS = [0, 2]
"""Of the cart and of the pole among an observation's numbers; the others are their velocities."""


def old_policy(sharpness: float) -> "Callable[[Tensor], Tensor]":
    """``P(right) = sigmoid(sharpness · angle)``, from positions ``[n, 2]`` to probabilities ``[n, 2]``."""
    import torch

    def policy(positions: "Tensor") -> "Tensor":
        right = torch.sigmoid(sharpness * positions[:, 1])
        return torch.stack([1 - right, right], 1)

    return policy


def help_of(settings: Settings, method: str, run: int) -> "Help | None":
    """The second loss: none, the IMM risk, or the divergence from the old policy at each state (reverse KD)."""
    from functools import partial

    from imm.baselines import reverse_kd
    from imm.control import PolicyMatching, Visited
    from imm.experiments.sampling import generator
    from imm.inducers import Kernel

    target = old_policy(settings["sharpness"])
    if method == "imm":
        inducer = partial(Kernel, alpha=settings["alpha"])
        draws = generator(settings, "belief", run)
        belief = Visited(inducer, settings["n_contexts"], settings["memory"], draws)
        return PolicyMatching(POSITIONS, target, belief)
    if method == "reverse-kd":
        return lambda log_policy, at: reverse_kd(log_policy(at), target(at[:, POSITIONS]))
    return None


def pieces(settings: Settings) -> list[Row]:
    """One training each; all methods of a run start from the same networks and the same environments."""
    return [{"method": method, "run": run} for run in range(settings["runs"]) for method in ("old", *settings["lams"])]


def run(settings: Settings, piece: Row) -> list[Row]:
    """The mean return of some episodes at each point of one training; the old policy needs none."""
    try:
        import gymnasium
    except ImportError:
        raise ValueError(f"cartpole-velocities needs Gymnasium: {install('control')}") from None
    import torch
    from torch import nn

    from imm.control import PPO, PPOSettings, first_returns
    from imm.experiments.sampling import generator

    method, number = piece["method"], piece["run"]
    seed = int(generator(settings, "run", number).initial_seed() % 2**31)

    def judged(policy: "Callable[[Tensor], Tensor]") -> float:
        envs = gymnasium.make_vec("CartPole-v1", settings["episodes"], "vector_entry_point")
        return float(first_returns(envs, policy, seed + 1).mean())

    if method == "old":
        old = old_policy(settings["sharpness"])
        value = judged(lambda at: old(at[:, POSITIONS]).log())
        return [{**piece, "steps": steps, "value": value} for steps in settings["points"]]
    torch.manual_seed(seed)
    hidden = settings["hidden"]
    policy, value_of = (nn.Sequential(nn.Linear(4, hidden), nn.Tanh(), nn.Linear(hidden, out)) for out in (2, 1))
    envs = gymnasium.make_vec("CartPole-v1", settings["envs"], "vector_entry_point")
    recipe = PPOSettings(steps=settings["steps"], rate=settings["rate"], entropy=settings["entropy"])
    ppo = PPO(envs, policy, value_of, recipe, help_of(settings, method, number), settings["lams"][method], seed)
    updates = settings["points"][-1] // (settings["steps"] * settings["envs"])
    return [
        {**piece, "steps": progress.steps, "value": judged(policy)}
        for progress in ppo.learn(updates)
        if progress.steps in settings["points"]
    ]


def over_runs(rows: Sequence[Row]) -> list[Row]:
    """Means and percentiles over runs."""
    import torch

    from imm.experiments.summaries import spread

    found: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        found.setdefault((row["method"], row["steps"]), []).append(row["value"])
    return [
        {"method": method, "steps": steps, **spread(torch.tensor(values))} for (method, steps), values in found.items()
    ]


STUDY = Study(
    name="cartpole-velocities",
    title="Return on the cart-pole over steps; the old policy sees no velocities (ours)",
    settings={
        "sharpness": 20.0,
        # 1 / bandwidth for the positions of the cart and of the pole.
        "alpha": [4.0, 50.0],
        "n_contexts": 16,
        "memory": 1024,
        "lams": {"none": 0.0, "imm": 1.0, "reverse-kd": 0.03},
        "envs": 8,
        "steps": 32,
        "rate": 3e-3,
        "entropy": 0.0,
        "hidden": 32,
        "points": [1024, 2048, 4096, 6144, 8192, 12288],
        "episodes": 20,
        "runs": 10,
        "seed": 0,
    },
    quick={"points": [512, 1024], "runs": 2, "episodes": 5},
    pieces=pieces,
    run=run,
    summarise=over_runs,
    figure=Figure(x="steps", x_label="steps in the environment", y_label="return (500 at most)"),
)
