"""REINFORCE with all Monte-Carlo runs stacked: each tensor operation does what every run would do by itself."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from imm import functional
from imm.baselines import interpolate, reverse_kd
from imm.control.grid import ACTIONS, Grid
from imm.control.pomdp import PomdpPolicy
from imm.inducers import Belief
from imm.targets import Target
from imm.validation import check_count, check_fraction, check_not_negative

METHODS = ("none", "imm", "reverse-kd", "warm-start")


@dataclass(frozen=True)
class Recipe:
    """How a policy is trained.

    Attributes:
        method: ``none``; ``imm``: the policy averaged over y is matched with the target at each visited x;
            ``reverse-kd`` (kickstarting): the policy itself is, at each visited state; ``warm-start``: it is, at all
            states alike, before the first walk and not after it.
        strength: λ; for ``warm-start`` the number of steps of Adam.
        hidden: the width of the network.
        rate: of Adam.
        steps: of a walk.
        discount: γ in the reward-to-go.
    """

    method: str = "none"
    strength: float = 0.0
    hidden: int = 32
    rate: float = 0.01
    steps: int = 50
    discount: float = 0.9

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}, got {self.method!r}")
        for name in ("strength", "rate"):
            check_not_negative(getattr(self, name), name)
        for name in ("hidden", "steps"):
            check_count(getattr(self, name), name)
        check_fraction(self.discount, "discount")
        if self.method == "warm-start" and int(self.strength) != self.strength:
            raise ValueError(f"strength of a warm start must be a whole number of steps, got {self.strength!r}")


@dataclass(frozen=True)
class Walk:
    """What was met on the way, ``[runs, walkers, steps]`` each: states, actions there, and rewards got for them."""

    states: Tensor
    actions: Tensor
    rewards: Tensor


class Problem:
    """The world that is seen whole, and the policy of those who see x only.

    Args:
        grid: the world.
        target: the restricted policy; its short contexts are the values of x, its classes the four actions.

    Attributes:
        short: x of each state, ``[states]``.
        target: P̂(· | x), ``[width, actions]``.
        inducer: the belief about the state at each x.
    """

    def __init__(self, grid: Grid, target: Target) -> None:
        if tuple(target.classes) != ACTIONS:
            raise ValueError(f"target must have the actions {ACTIONS} as classes, got {target.classes}")
        if isinstance(target, PomdpPolicy) and len(target.utilities) != grid.width:
            raise ValueError(f"target must know each x of the grid, {grid.width} of them, got {len(target.utilities)}")
        self.grid = grid
        self.short = torch.arange(grid.n_states) % grid.width
        self.target = target(torch.arange(grid.width))
        self.inducer = Belief(torch.as_tensor(grid.belief()).float())
        self._following = torch.as_tensor(grid.following)
        self._reward = torch.as_tensor(grid.reward.ravel()).float()

    def walk(self, policy: Tensor, walkers: int, steps: int, generator: Generator) -> Walk:
        """Each run's policy ``[runs, states, actions]`` (probabilities) walked from random starts."""
        runs = len(policy)
        state = torch.randint(self.grid.n_states, (runs, walkers), generator=generator)
        coins = torch.rand(steps, runs, walkers, 1, generator=generator)
        below = policy[..., :-1].cumsum(-1).contiguous()  # the last action is what is left, whatever the rounding
        run = torch.arange(runs)[:, None]
        states, actions = [], []
        for coin in coins:
            action = (coin > below[run, state]).sum(-1)
            states.append(state)
            actions.append(action)
            state = self._following[state, action]
        entered = torch.stack([*states[1:], state], -1)
        return Walk(torch.stack(states, -1), torch.stack(actions, -1), self._reward[entered])


class Policies:
    """``runs`` tanh networks ``states – hidden – actions`` on the one-hot state.

    One-hot, the first layer is a column of its weights for each state; so a whole policy is ``states`` columns, and is
    computed at once. States come last in memory: they are many, and the processor works on many neighbours at a time.
    Starts as ``torch.nn.Linear``: uniform within ``1 / sqrt(inputs)``, biases too.

    Attributes:
        parameters: weights and biases of the two layers, ``[runs, hidden, states]``, ``[runs, hidden, 1]``,
            ``[runs, actions, hidden]`` and ``[runs, actions, 1]``.
    """

    def __init__(self, runs: int, n_states: int, n_actions: int, hidden: int, generator: Generator) -> None:
        for name, count in (("runs", runs), ("n_states", n_states), ("n_actions", n_actions), ("hidden", hidden)):
            check_count(count, name)

        def uniform(inputs: int, *shape: int) -> Tensor:
            bound = 1 / math.sqrt(inputs)
            return (torch.rand(runs, *shape, generator=generator) * 2 - 1).mul_(bound).requires_grad_()

        self.parameters = [
            uniform(n_states, hidden, n_states),
            uniform(n_states, hidden, 1),
            uniform(hidden, n_actions, hidden),
            uniform(hidden, n_actions, 1),
        ]

    def log_probabilities(self) -> Tensor:
        """``log π(action | state)`` of every run and state, ``[runs, states, actions]``, differentiable."""
        first, first_bias, second, second_bias = self.parameters
        return torch.log_softmax(torch.baddbmm(second_bias, second, torch.tanh(first + first_bias)), 1).mT


def train(problem: Problem, recipe: Recipe, runs: int, points: Sequence[int], source: Generator) -> Iterator[Tensor]:
    """Trains up to the last of ``points``, in epochs, and gives at each ``log π``, ``[runs, states, actions]``."""
    epochs = [check_count(point, "each of points", least=0) for point in points]
    if not epochs or sorted(set(epochs)) != epochs:
        raise ValueError(f"points must be epochs, ascending, got {list(points)}")
    policies = Policies(runs, problem.grid.n_states, len(ACTIONS), recipe.hidden, source)
    if recipe.method == "warm-start":
        clone(problem, policies, int(recipe.strength), recipe.rate)
    step = stepper(policies.parameters, recipe.rate)
    for epoch in range(epochs[-1] + 1):
        log_pi = policies.log_probabilities()
        if epoch in epochs:
            yield log_pi.detach()
        if epoch < epochs[-1]:
            walk = problem.walk(log_pi.detach().exp(), 1, recipe.steps, source)
            step(loss(problem, recipe, log_pi, walk))


def loss(problem: Problem, recipe: Recipe, log_pi: Tensor, walk: Walk) -> Tensor:
    """The runs' losses, summed: a scalar, differentiable in ``log_pi``, ``[runs, states, actions]``."""
    runs, n_states, n_actions = log_pi.shape
    states, actions = walk.states.flatten(1), walk.actions.flatten(1)
    # What each pair of state and action counts for: a sum over the walk, so that nothing is gathered from log_pi.
    weight = reward_to_go(walk.rewards, recipe.discount).flatten(1) / states.shape[1]
    by_pair = _counted(actions * n_states + states, weight, n_actions * n_states).view(runs, n_actions, n_states)
    primary = -(by_pair * log_pi.mT).sum()
    if recipe.method == "imm" and recipe.strength > 0:
        return functional.objective(primary, runs * mismatch(problem, log_pi, states), recipe.strength)
    if recipe.method == "reverse-kd" and recipe.strength > 0:
        visits = _counted(states, torch.ones(states.shape), n_states)
        target = problem.target[problem.short].repeat(runs, 1)
        second = reverse_kd(log_pi.flatten(0, 1), target, sample_weight=visits.flatten())
        return functional.objective(primary, runs * second, recipe.strength)
    return primary


def mismatch(problem: Problem, log_pi: Tensor, states: Tensor) -> Tensor:
    """The IMM risk at the x of each visited state, averaged over visits and runs   (Eq. IMM-exact-coarse).

    The belief is the inducer: the induced policy at x is the mean of the policies at (y, x) over y, here one product
    with the whole belief. It is :class:`~imm.matching.Exact` with the visited x as short contexts.

    Args:
        problem: with the target and the belief.
        log_pi: ``[runs, states, actions]``.
        states: visited, ``[runs, visits]``. Not differentiated: how the policy changes the visits is REINFORCE's.
    """
    induced = log_pi.mT.exp() @ problem.inducer.probabilities.T  # [runs, actions, width]
    target: Tensor = problem.target.T
    visits = _counted(problem.short[states], torch.ones(states.shape), len(problem.target))
    # An action that the target never takes costs nothing, however unlikely it has become: 0 · log 0 = 0.
    by_action = target * torch.where(target > 0, induced, 1.0).log()
    total: Tensor = (visits[:, None] * by_action).sum()
    return -total / states.numel()


def _counted(index: Tensor, weights: Tensor, n: int) -> Tensor:
    """The sum of weights at each index by row, ``[rows, n]``."""
    return torch.zeros(len(index), n).scatter_add_(1, index, weights)


def reward_to_go(rewards: Tensor, discount: float) -> Tensor:
    """``G_t = Σ_{t' ≥ t} γ^(t'-t) r_t'`` along the last dimension."""
    lag = torch.arange(rewards.shape[-1])
    lag = lag[:, None] - lag  # [t', t]
    return rewards @ torch.where(lag >= 0, discount ** lag.clamp(min=0), 0.0).to(rewards)


def clone(problem: Problem, policies: Policies, steps: int, rate: float) -> None:
    """Behaviour cloning: the target itself is learned, at every state alike, by ``steps`` of Adam."""
    step = stepper(policies.parameters, rate)
    target = problem.target[problem.short]
    for _ in range(steps):
        log_pi = policies.log_probabilities()
        step(len(log_pi) * reverse_kd(log_pi.flatten(0, 1), target.repeat(len(log_pi), 1)))


def stepper(parameters: Iterable[Tensor], rate: float) -> Callable[[Tensor], None]:
    """A step of Adam down a loss; element by element, so that stacked runs do not mix."""
    optimizer = torch.optim.Adam(parameters, lr=rate, fused=True)

    def step(total: Tensor) -> None:
        optimizer.zero_grad()
        total.backward()
        optimizer.step()

    return step


def total_reward(
    problem: Problem, log_pi: Tensor, rollouts: int, steps: int, source: Generator, ratio: float = 0.0
) -> Tensor:
    """The sum of rewards of a rollout, actions drawn, averaged over rollouts: ``[runs]``.

    Args:
        problem: the world.
        log_pi: ``[runs, states, actions]``.
        rollouts: how many, each from a random start.
        steps: of each.
        source: of starts and actions.
        ratio: the restricted policy's share in what is acted on (interpolation).
    """
    check_count(rollouts, "rollouts")
    check_count(steps, "steps")
    if check_fraction(ratio, "ratio"):
        target = problem.target[problem.short].repeat(len(log_pi), 1)
        log_pi = interpolate(log_pi.flatten(0, 1), target, ratio).view_as(log_pi)
    return problem.walk(log_pi.exp(), rollouts, steps, source).rewards.sum(-1).mean(-1)
