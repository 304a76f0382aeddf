"""What the grid studies share: the paper's RL experiment; ``docs/guides/control.md`` has the rest.

A piece is one training of all runs, judged at each number of epochs, for every curve that it serves: a shorter training
is the beginning of a longer one.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from imm.experiments.study import Row, Settings

if TYPE_CHECKING:
    from imm.control import Problem

WORLD: Settings = {
    # "an 11×11 toroidal grid"
    "size": 11,
    # "a single peak at the center": not printed. The published code's normal density, on [-2, 2] each way.
    "variance": 0.1,
    # Not printed: the published restricted model was solved on a wider peak.
    "target_variance": 0.3,
    # Not printed: the published code's, in the reward-to-go and in the POMDP.
    "discount": 0.9,
    "tolerance": 1e-3,
    # Not printed: the published code's network and rate of Adam.
    "hidden": 32,
    "rate": 0.01,
    # "We set the per epoch observation length to 50."
    "steps": 50,
    # "average reward over a given rollout horizon": the published code's.
    "rollouts": 10,
    "horizon": 22,
    "seed": 0,
}

EPOCHS = [10, 20, 50, 75, 100, 125, 150, 175, 200, 250, 300, 350, 400, 450, 500]
PUBLISHED = [[175, 0.25], [500, 1 / 9]]
"""λ of the published runs: λ/(1+λ) = 0.2 up to 175 epochs, 0.1 in longer trainings."""
PAPER = [[500, 0.25]]
"""λ as printed: "We manually set λ to 0.25"."""

TARGET: Row = {"ties": "first", "temperature": None}


def curve(method: str, strengths: Sequence[Sequence[float]] = ((500, 0.0),), **target: Any) -> Row:
    """A line of a figure: a method, its strength up to each number of epochs, and which restricted policy it uses."""
    return {"method": method, "strengths": [list(pair) for pair in strengths], **TARGET, **target}


def trainings(settings: Settings) -> list[Row]:
    """Each different training once, with what is judged of it; the longest last."""
    found: dict[str, Row] = {}
    for name, line in settings["curves"].items():
        before = 0
        for last, strength in line["strengths"]:
            mixed = line["method"] == "interpolation"
            plain = mixed or line["method"] == "none"
            training = {
                "training": "none" if plain else line["method"],
                "strength": 0.0 if plain else strength,
                "ties": line["ties"],
                "temperature": line["temperature"],
            }
            here = [epochs for epochs in settings["epochs"] if before < epochs <= last]
            before = last
            if here:
                piece = found.setdefault(str(training), {**training, "judged": []})
                share = strength if mixed else 0.0
                piece["judged"].append({"curve": name, "epochs": here, "share": share, "strength": strength})
    return sorted(found.values(), key=lambda piece: max(judged["epochs"][-1] for judged in piece["judged"]))


def problem(settings: Settings, ties: str, temperature: float | None) -> "Problem":
    """The world and the restricted policy."""
    from imm.control import ACTIONS, Grid, Problem, landscape
    from imm.control.pomdp import PomdpPolicy, fast_informed_bound

    size = settings["size"]
    grid = Grid(landscape(size, size, settings["variance"]))
    pomdp = Grid(landscape(size, size, settings["target_variance"])).pomdp(settings["discount"])
    solution = fast_informed_bound(pomdp, settings["tolerance"])
    policy = PomdpPolicy(solution, grid.belief(), ACTIONS, temperature, "shares" if ties == "shares" else "first")
    return Problem(grid, policy)


def run(settings: Settings, piece: Row) -> list[Row]:
    """One training: the rows of its curves. All trainings start alike and meet the same random numbers."""
    from imm.control import Recipe, total_reward, train
    from imm.experiments.sampling import generator
    from imm.experiments.summaries import spread

    world = problem(settings, piece["ties"], piece["temperature"])
    same = {key: settings[key] for key in ("hidden", "rate", "steps", "discount")}
    recipe = Recipe(piece["training"], piece["strength"], **same)
    points = sorted({epochs for judged in piece["judged"] for epochs in judged["epochs"]})
    rows = []
    policies = train(world, recipe, settings["runs"], points, generator(settings, "grid"))
    for epochs, log_pi in zip(points, policies, strict=True):
        for judged in piece["judged"]:
            if epochs in judged["epochs"]:
                judge = generator(settings, "judge", epochs)
                rollouts, horizon = settings["rollouts"], settings["horizon"]
                rewards = total_reward(world, log_pi, rollouts, horizon, judge, judged["share"])
                cell = {"method": judged["curve"], "epochs": epochs, "strength": judged["strength"]}
                rows.append({**cell, **spread(rewards)})
    return rows


def sorted_rows(rows: Sequence[Row]) -> list[Row]:
    """By curve, then by epochs: trainings are finished in another order."""
    names = list(dict.fromkeys(row["method"] for row in rows))
    return sorted(rows, key=lambda row: (row["method"] != "none", names.index(row["method"]), row["epochs"]))
