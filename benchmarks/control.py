"""Runs per second of the stacked REINFORCE: ``python -m benchmarks.control``, or with ``--json`` a flat object.

Against a plain loop in the same process: one run at a time, one step of the walk at a time with a torch network, one
batch of 50 for the loss, and for IMM one more for each of the eleven y. Both take turns, on one thread; a figure is the
median over rounds, in seconds of the processor, for trainings of 200 epochs (a part is timed and scaled: every epoch
costs the same). ``walkers``: steps per second of many grids at once over a single Gymnasium environment.
"""

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from rich.console import Console
from torch import Tensor, nn
from torch.distributions import Categorical

from benchmarks import printing
from imm.control import ACTIONS, Grid, Problem, Recipe, Walkers, landscape, train
from imm.control.pomdp import PomdpPolicy, fast_informed_bound

EPOCHS = 200
BOUNDS = {"ratio_none": 200.0, "ratio_imm": 200.0}
"""Figures that must not be smaller than this."""


def world() -> Problem:
    grid = Grid(landscape())
    solution = fast_informed_bound(Grid(landscape(variance=0.3)).pomdp())
    return Problem(grid, PomdpPolicy(solution, grid.belief(), ACTIONS))


def plain(problem: Problem, lam: float, epochs: int, steps: int = 50, discount: float = 0.9) -> nn.Module:
    """One run, as one would write it first."""
    grid, height, width = problem.grid, problem.grid.height, problem.grid.width
    net = nn.Sequential(nn.Linear(grid.n_states, 32), nn.Tanh(), nn.Linear(32, len(ACTIONS)))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    one_hot = torch.eye(grid.n_states)
    for _ in range(epochs):
        state = int(torch.randint(grid.n_states, ()))
        states, actions, rewards = [], [], []
        for _ in range(steps):
            states.append(state)
            with torch.no_grad():
                actions.append(int(Categorical(logits=net(one_hot[state])).sample()))
            state = int(grid.following[state, actions[-1]])
            rewards.append(float(grid.reward.flat[state]))
        to_go = 0.0
        weights = [to_go := reward + discount * to_go for reward in reversed(rewards)][::-1]
        log_taken = Categorical(logits=net(one_hot[states])).log_prob(torch.tensor(actions))
        loss = -(log_taken * torch.tensor(weights)).mean()
        if lam:
            x = problem.short[states]
            induced: Tensor = sum(torch.softmax(net(one_hot[y * width + x]), -1) for y in range(height)) / height
            loss = loss - lam * (problem.target[x] * induced.log()).sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net


def processor(call: Callable[[], object]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def trainings(runs: int, rounds: int, epochs: int, progress: Callable[[str], None]) -> dict[str, float]:
    problem, figures = world(), {}
    source = torch.Generator().manual_seed(0)
    for method, lam in (("none", 0.0), ("imm", 0.25)):
        recipe, stacked, single = Recipe(method, lam), [], []
        for number in range(rounds + 1):
            progress(f"{method}: round {number} of {rounds}")
            stacked.append(processor(lambda recipe=recipe: list(train(problem, recipe, runs, [epochs], source))))
            single.append(processor(lambda lam=lam: plain(problem, lam, epochs)))
        scale = epochs / EPOCHS
        stacked, single = stacked[1:], single[1:]  # the first warms
        figures[f"stacked_{method}_runs_per_s"] = runs * scale / statistics.median(stacked)
        figures[f"plain_{method}_runs_per_s"] = scale / statistics.median(single)
        figures[f"ratio_{method}"] = statistics.median(runs * b / a for a, b in zip(stacked, single, strict=True))
    return figures


def walkers(n: int = 10_000, steps: int = 100) -> dict[str, float]:
    try:
        from imm.control.env import ToroidalGrid
    except ModuleNotFoundError:
        return {}
    many, one = Walkers(Grid(landscape()), n, 0), ToroidalGrid()
    one.reset(seed=0)
    actions = np.random.default_rng(0).integers(len(ACTIONS), size=(steps, n))
    together = processor(lambda: [many.step(some) for some in actions]) / (n * steps)
    alone = processor(lambda: [one.step(action) for action in actions.ravel()[:20_000]]) / 20_000
    return {"walkers_steps_per_s": 1 / together, "walkers_over_single": alone / together}


def main() -> None:
    parser = printing.options(__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=20, help="how many are timed")
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with Console(stderr=True).status("starting") as status:
        figures = trainings(given.runs, given.rounds, given.epochs, status.update) | walkers()
    printing.show("control", figures, given.json, at_least=BOUNDS)


if __name__ == "__main__":
    main()
