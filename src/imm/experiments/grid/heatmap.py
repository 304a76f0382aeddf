"""Fig. heatmap: the landscape; and ours: the policies learned with and without IMM over it, and a rollout of each.

One run each, from the same start: the rows are that run's policy, not a mean.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from imm.experiments.grid import runs as grid
from imm.experiments.study import Map, Row, Settings, Study

if TYPE_CHECKING:
    from torch import Tensor


def pieces(settings: Settings) -> list[Row]:
    """The landscape, the restricted policy, and each training."""
    methods = [{"method": "none", "strength": 0.0}, {"method": "imm", "strength": settings["lam"]}]
    return [{"method": "landscape"}, {"method": "target"}, *methods]


def run(settings: Settings, piece: Row) -> Sequence[Row]:
    """A value for each cell: the reward, or the probability of the likeliest action, with all of them beside it.

    A training also has its rollout: the cell after each step, from 0 on, and the reward so far.
    """
    from imm.control import ACTIONS

    method = piece["method"]
    world = grid.problem(settings, "first", None)
    if method == "landscape":
        return [
            {"method": method, "y": y, "x": x, "value": float(reward)}
            for y, row in enumerate(world.grid.reward)
            for x, reward in enumerate(row)
        ]
    policy, rollout = (world.target[world.short], list[Row]()) if method == "target" else _train(settings, piece)
    cells = [
        {
            "method": method,
            "y": state // world.grid.width,
            "x": state % world.grid.width,
            **{action: round(p, 4) for action, p in zip(ACTIONS, row, strict=True)},
            "value": max(row),
        }
        for state, row in enumerate(policy.tolist())
    ]
    return [*cells, *rollout]


def _train(settings: Settings, piece: Row) -> tuple["Tensor", list[Row]]:
    import torch

    from imm.control import Recipe, train
    from imm.experiments.sampling import generator

    world = grid.problem(settings, "first", None)
    same = {key: settings[key] for key in ("hidden", "rate", "steps", "discount")}
    recipe = Recipe(piece["method"], piece["strength"], **same)
    (log_pi,) = train(world, recipe, 1, [settings["epochs"]], generator(settings, "grid"))
    walk = world.walk(log_pi.exp(), 1, settings["horizon"], generator(settings, "rollout"))
    states, so_far = walk.states[0, 0].tolist(), torch.cumsum(walk.rewards[0, 0], 0).tolist()
    last = int(world.grid.following[states[-1], int(walk.actions[0, 0, -1])])
    rollout = [
        {"method": piece["method"], "y": state // world.grid.width, "x": state % world.grid.width, "step": step}
        for step, state in enumerate([*states, last])
    ]
    return log_pi[0].exp(), [{**row, "value": reward} for row, reward in zip(rollout, [0.0, *so_far], strict=True)]


STUDY = Study(
    name="grid-heatmap",
    title="The landscape and the policies learned over it (Fig. heatmap)",
    settings={
        **grid.WORLD,
        # Where the gain is large.
        "epochs": 100,
        # "We manually set λ to 0.25."
        "lam": 0.25,
    },
    quick={"epochs": 50},
    pieces=pieces,
    run=run,
    figure=Map(
        panels=("landscape", "target", "none", "imm"),
        moves={"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)},
        note="arrows: the mean step of the policy of one run",
    ),
)
