"""REINFORCE in any world: the same as the stacked one on the grid, and as plain loops elsewhere."""

from functools import partial

import pytest
import torch
from torch import nn

gymnasium = pytest.importorskip("gymnasium", reason="the extra [control] is not installed")

from imm.control import (  # noqa: E402
    Episode,
    Grid,
    IMMReinforce,
    Policies,
    PolicyMatching,
    Recipe,
    Visited,
    landscape,
)
from imm.control.env import ID  # noqa: E402
from imm.control.stacked_runs import loss, stepper  # noqa: E402
from imm.inducers import Kernel, Multiset  # noqa: E402
from tests.control.reference import loss_by_loops  # noqa: E402
from tests.control.test_stacked_runs import problem  # noqa: E402


class OneHot(nn.Module):
    """The paper's network on (y, x)."""

    def __init__(self, height, width):
        super().__init__()
        self.width, self.n = width, height * width
        self.net = nn.Sequential(nn.Linear(self.n, 32), nn.Tanh(), nn.Linear(32, 4))

    def forward(self, places):
        return self.net(nn.functional.one_hot(places[:, 0] * self.width + places[:, 1], self.n).float())


def every_y(height):
    """The grid's belief as a function: at x, each y as likely."""

    def belief(x):
        y = torch.arange(height).expand(len(x), height)
        return torch.stack([y, x[:, None].expand_as(y)], -1), torch.full(y.shape, 1 / height)

    return belief


def on_the_grid(prob, lam):
    """An agent with the paper's settings and the network of run 0 of a stack."""
    grid = prob.grid
    matching = PolicyMatching(lambda places: places[:, 1], lambda x: prob.target[x], every_y(grid.height))
    policy = OneHot(grid.height, grid.width)
    env = gymnasium.make(ID, height=grid.height, width=grid.width)
    return IMMReinforce(env, policy, matching, lam), policy


def same_parameters(policy, stacked):
    return zip(policy.parameters(), (p[0].squeeze(-1) for p in stacked), strict=True)


@pytest.mark.parametrize("lam", [0.0, 0.25, 3.0])
def test_on_the_grid_it_is_the_stacked_training(lam, generator):
    """Gradient at the first walk, parameters after five: with the paper's settings, on the paper's grid."""
    prob, recipe = problem(grid=Grid(landscape())), Recipe("imm", lam)
    agent, policy = on_the_grid(prob, lam)
    stacked = Policies(1, 121, 4, recipe.hidden, generator)
    with torch.no_grad():
        for ours, theirs in same_parameters(policy, stacked.parameters):
            ours.copy_(theirs)
    step = stepper(stacked.parameters, recipe.rate)
    for epoch in range(5):
        log_pi = stacked.log_probabilities()
        walk = prob.walk(log_pi.detach().exp(), 1, recipe.steps, generator)
        states = walk.states[0, 0]
        agent.update(Episode(torch.stack([states // 11, states % 11], 1), walk.actions[0, 0], walk.rewards[0, 0]))
        step(loss(prob, recipe, log_pi, walk))
        if epoch == 0:
            for ours, theirs in zip(policy.parameters(), stacked.parameters, strict=True):
                torch.testing.assert_close(ours.grad, theirs.grad[0].squeeze(-1), rtol=1e-4, atol=1e-6)
    for ours, theirs in same_parameters(policy, stacked.parameters):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5)


def cartpole(lam, seed, belief=None):
    torch.manual_seed(seed)
    policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
    belief = belief or Visited(partial(Kernel, alpha=[1.0, 10.0]))
    matching = PolicyMatching([0, 2], lambda s: torch.softmax(torch.stack([-s[:, 1], s[:, 1]], 1) * 20, 1), belief)
    env = gymnasium.make("CartPole-v1")
    return IMMReinforce(env, policy, matching, lam, steps=200, discount=0.99, seed=seed), policy


def test_with_columns_and_a_learned_belief_it_is_the_plain_loops(seed):
    """The neighbours lend their velocities, and nothing else."""
    agent, policy = cartpole(0.7, seed)
    walked = agent.walk()
    agent.matching.see(walked.observations)
    seen = walked.observations

    def belief(short):
        weights = [torch.exp(-(torch.tensor([1.0, 10.0]) * (short - other[[0, 2]]).abs()).sum()) for other in seen]
        for other, weight in zip(seen, weights, strict=True):
            yield torch.stack([short[0], other[1], short[1], other[3]]), weight / sum(weights)

    wanted = loss_by_loops(
        lambda observation: torch.log_softmax(policy(observation), -1),
        seen,
        walked.actions,
        walked.rewards,
        0.99,
        0.7,
        lambda observation: observation[[0, 2]],
        lambda short: torch.softmax(torch.stack([-short[1], short[1]]) * 20, 0),
        belief,
    )
    found = agent.loss(walked)
    torch.testing.assert_close(found, wanted)
    gradients = [torch.autograd.grad(each, list(policy.parameters())) for each in (found, wanted)]
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


def test_without_strength_it_is_plain_reinforce_to_the_bit(seed):
    helped, policy = cartpole(0.0, seed)
    torch.manual_seed(seed)
    alone = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
    plain = IMMReinforce(helped.env, alone, steps=200, discount=0.99, seed=seed)
    first = helped.learn(5)
    assert first == plain.learn(5)
    for ours, theirs in zip(policy.parameters(), alone.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert first != cartpole(1.0, seed)[0].learn(5)


def test_the_same_seed_is_the_same_training(seed):
    def learned():
        belief = Visited(Multiset, n_contexts=4, generator=torch.Generator().manual_seed(seed))
        prob = problem()
        torch.manual_seed(seed)
        policy = OneHot(3, 4)
        matching = PolicyMatching(lambda places: places[:, 1], lambda x: prob.target[x], belief)
        return IMMReinforce(gymnasium.make(ID, height=3, width=4), policy, matching, 0.25, seed=seed).learn(4)

    assert learned() == learned()


def test_a_walk_ends_where_the_environment_says(seed):
    agent, _ = cartpole(0.0, seed)
    walked = agent.walk()
    assert len(walked.observations) == len(walked.actions) == len(walked.rewards) < 200
    agent.steps = 3
    assert len(agent.walk().rewards) == 3
    assert not torch.equal(agent.walk().observations[0], agent.walk().observations[0])


def test_actions_of_a_space_that_begins_elsewhere():
    class Shifted(gymnasium.ActionWrapper):
        def __init__(self, env):
            super().__init__(env)
            self.action_space = gymnasium.spaces.Discrete(2, start=5)

        def action(self, action):
            assert action in (5, 6)
            return action - 5

    agent = IMMReinforce(Shifted(gymnasium.make("CartPole-v1")), nn.Linear(4, 2))
    assert set(agent.walk().actions.tolist()) <= {0, 1}


def test_any_function_may_be_the_help(seed):
    """As PPO takes it: here nothing, so that the training is the one without help."""
    found = []
    for options in ({}, {"matching": lambda log_policy, at: 0.0 * log_policy(at).sum(), "lam": 1.0}):
        torch.manual_seed(seed)
        found.append(IMMReinforce(gymnasium.make("CartPole-v1"), nn.Linear(4, 2), seed=seed, **options).learn(3))
    assert found[0] == found[1]


class Broken(gymnasium.Wrapper):
    """A reward that is no number at the third step."""

    def reset(self, **options):
        self.made = 0
        return super().reset(**options)

    def step(self, action):
        there, reward, *rest = super().step(action)
        self.made += 1
        return there, float("nan") if self.made == 3 else reward, *rest


def test_a_reward_that_is_no_number_is_one_line():
    with pytest.raises(ValueError, match="reward must be finite, got nan at step 3"):
        IMMReinforce(Broken(gymnasium.make("CartPole-v1")), nn.Linear(4, 2)).learn(1)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (lambda: "CartPole-v1", r"env must be one environment, as gymnasium.make gives, got 'CartPole-v1'; PPO takes"),
        (lambda: gymnasium.make_vec("CartPole-v1", 2, "vector_entry_point"), "got a CartPoleVectorEnv; PPO takes"),
    ],
)
def test_another_kind_of_environment(env, message):
    with pytest.raises(TypeError, match=message):
        IMMReinforce(env(), nn.Linear(4, 2))


def test_it_learns_the_grid_faster_with_help():
    """Mean reward of a walk of 50 steps after 25 updates, over 8 walks."""

    def reached(lam):
        torch.manual_seed(0)
        agent, _ = on_the_grid(problem(grid=Grid(landscape())), lam)
        agent.learn(25)
        return sum(float(agent.walk().rewards.sum()) for _ in range(8)) / 8

    assert reached(1.0) > 2 * reached(0.0)
