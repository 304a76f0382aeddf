import numpy as np
import pytest
import torch

from imm.control import ACTIONS, Grid, Policies, Problem, Recipe, landscape, total_reward, train
from imm.control.pomdp import PomdpPolicy, fast_informed_bound
from imm.control.stacked_runs import clone, loss, mismatch, reward_to_go
from imm.matching import Exact
from tests.control.reference import Run

SMALL = Grid(landscape(3, 4))


def problem(temperature=None, grid=SMALL):
    solution = fast_informed_bound(Grid(landscape(grid.height, grid.width, variance=0.3)).pomdp())
    return Problem(grid, PomdpPolicy(solution, grid.belief(), ACTIONS, temperature))


def twin(prob, recipe, parameters, i):
    """The plain run that starts where run ``i`` of the stack does."""
    run = Run(prob.grid, prob.target, recipe.method, recipe.strength, recipe.hidden, recipe.rate, recipe.discount)
    first, first_bias, second, second_bias = (p.detach()[i] for p in parameters)
    with torch.no_grad():
        run.net[0].weight.copy_(first)
        run.net[0].bias.copy_(first_bias[:, 0])
        run.net[2].weight.copy_(second)
        run.net[2].bias.copy_(second_bias[:, 0])
    return run


def plain(walk, i, width):
    """The walk of run ``i`` as plain numbers."""
    places = [divmod(s, width) for s in walk.states[i, 0].tolist()]
    return places, walk.actions[i, 0].tolist(), walk.rewards[i, 0].tolist()


RECIPES = pytest.mark.parametrize(
    "recipe",
    [
        Recipe("none", steps=15),
        Recipe("imm", 0.25, steps=15),
        Recipe("imm", 3.0, steps=10, discount=0.5),
        Recipe("reverse-kd", 0.7, steps=15),
    ],
    ids=lambda recipe: f"{recipe.method} {recipe.strength}",
)


@RECIPES
@pytest.mark.parametrize("temperature", [None, 0.5])
def test_the_gradient_is_the_plain_runs(recipe, temperature, generator):
    prob = problem(temperature)
    policies = Policies(5, 12, 4, recipe.hidden, generator)
    log_pi = policies.log_probabilities()
    walk = prob.walk(log_pi.detach().exp(), 1, 20, generator)
    loss(prob, recipe, log_pi, walk).backward()
    for i in (0, 4):
        run = twin(prob, recipe, policies.parameters, i)
        run.loss(*plain(walk, i, 4)).backward()
        found = [p.grad[i] for p in policies.parameters]
        wanted = [p.grad.view(p.shape[0], -1) for p in run.net.parameters()]
        for ours, theirs in zip(found, wanted, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


@RECIPES
def test_fifteen_epochs_are_the_plain_runs(recipe, generator, monkeypatch):
    """The twin repeats the walks of the stack and makes its own updates: Adam keeps the runs apart too."""
    prob, walks = problem(), []
    walked = Problem.walk

    def recorded(self, *args):
        walks.append(walked(self, *args))
        return walks[-1]

    monkeypatch.setattr(Problem, "walk", recorded)
    start = Policies(3, 12, 4, recipe.hidden, torch.Generator().manual_seed(generator.initial_seed()))
    (log_pi,) = train(prob, recipe, 3, [15], generator)
    for i in range(3):
        run = twin(prob, recipe, start.parameters, i)
        for walk in walks:
            run.update(plain(walk, i, 4))
        there = torch.stack([run.log_policy(y, x) for y in range(3) for x in range(4)])
        torch.testing.assert_close(log_pi[i], there.detach(), rtol=1e-3, atol=1e-4)
    assert len(walks) == 15


def test_the_mismatch_is_exact_matching_with_the_belief(generator):
    prob = problem(0.5)
    log_pi = Policies(1, 12, 4, 32, generator).log_probabilities()
    states = torch.randint(12, (1, 30), generator=generator)
    short = prob.short[states[0]]
    exact = Exact(lambda short: prob.target[short], prob.inducer, lambda short, index: log_pi[0, index])
    wanted = exact(None, short)
    torch.testing.assert_close(mismatch(prob, log_pi, states), wanted)


def test_an_action_that_is_never_taken_costs_nothing():
    """An induced probability of zero where the target's is zero: no NaN, in value or gradient."""
    prob = problem()
    log_pi = (prob.target[prob.short] - 1)[None] * 200
    log_pi.requires_grad_()
    risk = mismatch(prob, log_pi, torch.arange(12)[None])
    risk.backward()
    assert risk.item() == 0
    assert log_pi.grad.isfinite().all()


def test_cloning_is_the_plain_runs(generator):
    prob, recipe = problem(0.5), Recipe("warm-start", 10)
    policies = Policies(2, 12, 4, recipe.hidden, generator)
    run = twin(prob, recipe, policies.parameters, 1)
    clone(prob, policies, 10, recipe.rate)
    run.clone(10)
    torch.testing.assert_close(policies.parameters[0][1], run.net[0].weight, rtol=1e-3, atol=1e-5)


def test_the_network_is_the_linear_layers_start(generator):
    first, first_bias, second, _ = Policies(200, 121, 4, 32, generator).parameters
    for weights, inputs in ((first, 121), (first_bias, 121), (second, 32)):
        assert weights.abs().max() <= 1 / np.sqrt(inputs)
        assert weights.std().item() == pytest.approx(1 / np.sqrt(3 * inputs), rel=0.03)


def test_reward_to_go_is_the_plain_sum():
    rewards = torch.tensor([[1.0, 0.0, 2.0], [0.0, 0.0, 4.0]])
    wanted = [[1 + 0.25 * 2, 0.5 * 2, 2.0], [0.25 * 4, 0.5 * 4, 4.0]]
    torch.testing.assert_close(reward_to_go(rewards, 0.5), torch.tensor(wanted))


def test_no_strength_is_no_help(seed):
    policies = [
        next(train(problem(), Recipe(method, 0.0), 3, [10], torch.Generator().manual_seed(seed)))
        for method in ("none", "imm", "reverse-kd", "warm-start")
    ]
    for other in policies[1:]:
        assert torch.equal(policies[0], other)


def test_one_training_is_judged_at_each_point(seed):
    """What is given at 5 epochs is what a training of 5 epochs gives."""
    recipe = Recipe("imm", 0.25)
    five, ten = train(problem(), recipe, 3, [5, 10], torch.Generator().manual_seed(seed))
    assert torch.equal(five, next(train(problem(), recipe, 3, [5], torch.Generator().manual_seed(seed))))
    assert not torch.equal(five, ten)


def test_walks_follow_the_grid_and_the_policy(generator):
    prob = problem()
    policy = torch.rand(2, 12, 4, generator=generator)
    policy /= policy.sum(-1, keepdim=True)
    walk = prob.walk(policy, 500, 40, generator)
    following, reward = torch.as_tensor(SMALL.following), torch.as_tensor(SMALL.reward.ravel()).float()
    assert torch.equal(walk.states[..., 1:], following[walk.states, walk.actions][..., :-1])
    assert torch.equal(walk.rewards, reward[following[walk.states, walk.actions]])
    for run in range(2):
        for state in (0, 7):
            taken = torch.bincount(walk.actions[run][walk.states[run] == state], minlength=4)
            torch.testing.assert_close(taken / taken.sum(), policy[run, state], atol=0.05, rtol=0)


class TestReward:
    """Appendix: 22 steps, not discounted, on the paper's grid."""

    def rewards(self, policy, generator, ratio=0.0):
        prob = problem(grid=Grid(landscape()))
        return total_reward(prob, policy.clamp(min=1e-30).log()[None], 20_000, 22, generator, ratio).item()

    def test_wandering(self, generator):
        assert self.rewards(torch.full((121, 4), 0.25), generator) == pytest.approx(1.14, abs=0.05)

    def test_the_best_policy(self, generator):
        """By value iteration for the 22 steps that are left; its greedy policy for a long horizon is as good."""
        grid = Grid(landscape())
        value = np.zeros(121)
        for _ in range(22):
            by_action = (grid.reward.ravel() + value)[grid.following]
            value = by_action.max(1)
        assert value.mean() == pytest.approx(21.41, abs=0.005)
        best = torch.nn.functional.one_hot(torch.as_tensor(by_action.argmax(1)), 4).float()
        assert self.rewards(best, generator) == pytest.approx(21.41, abs=0.1)

    def test_interpolated_wholly_it_is_the_restricted_policy(self, generator):
        prob = problem(grid=Grid(landscape()))
        alone = self.rewards(prob.target[prob.short], generator)
        mixed = self.rewards(torch.full((121, 4), 0.25), generator, ratio=1.0)
        assert mixed == pytest.approx(alone, abs=0.15)


def judged(rollouts=2, steps=3, ratio=0.0):
    return total_reward(problem(), torch.full((1, 12, 4), 0.25).log(), rollouts, steps, torch.Generator(), ratio)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Recipe("ppo"), "method must be one of none, imm, reverse-kd, warm-start, got 'ppo'"),
        (lambda: Recipe("imm", -1.0), "strength must be finite and not negative, got -1.0"),
        (lambda: Recipe("warm-start", 2.5), "strength of a warm start must be a whole number of steps, got 2.5"),
        (lambda: next(train(problem(), Recipe(), 2, [5, 3], torch.Generator())), r"points must be .*, got \[5, 3\]"),
        (lambda: Recipe(hidden=0), "hidden must be a whole number of at least 1, got 0"),
        (lambda: Recipe(steps=0), "steps must be a whole number of at least 1, got 0"),
        (lambda: Recipe(discount=float("nan")), "discount must be between 0 and 1, got nan"),
        (lambda: Recipe(discount=2), "discount must be between 0 and 1, got 2"),
        (lambda: Recipe(rate=-0.1), "rate must be finite and not negative, got -0.1"),
        (lambda: next(train(problem(), Recipe(), 2, [1.5], torch.Generator())), "each of points must be a .* got 1.5"),
        (lambda: next(train(problem(), Recipe(), 2, [], torch.Generator())), r"points must be .*, got \[\]"),
        (lambda: Policies(2, 12, 4, 0, torch.Generator()), "hidden must be a whole number of at least 1, got 0"),
        (lambda: judged(rollouts=0), "rollouts must be a whole number of at least 1, got 0"),
        (lambda: judged(steps=2.5), "steps must be a whole number of at least 1, got 2.5"),
        (lambda: judged(ratio=1.5), "ratio must be between 0 and 1, got 1.5"),
        (lambda: Problem(SMALL, PomdpPolicy(np.eye(12)[:2], SMALL.belief(), "ab")), "target must have the actions"),
        (
            lambda: Problem(SMALL, PomdpPolicy(np.eye(12)[:4], SMALL.belief(), ACTIONS[::-1])),
            r"target must have the actions \('up', 'down', 'left', 'right'\) as classes, got \('right', 'left'",
        ),
        (
            lambda: Problem(SMALL, PomdpPolicy(np.eye(12)[:4], np.eye(12), ACTIONS)),
            "target must know each x of the grid, 4 of them, got 12",
        ),
    ],
)
def test_bad_arguments_are_one_line(call, message):
    with pytest.raises(ValueError, match=message):
        call()
