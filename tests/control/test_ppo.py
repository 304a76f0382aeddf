"""PPO: its parts against loops and numbers, and that λ = 0 changes nothing."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

gymnasium = pytest.importorskip("gymnasium", reason="the extra [control] is not installed")

from gymnasium.vector import AutoresetMode, SyncVectorEnv  # noqa: E402

from imm.control import PPO, PolicyMatching, PPOSettings, Visited, first_returns  # noqa: E402
from imm.control.ppo import Batch, Rollout, advantages, clipped_loss  # noqa: E402
from imm.inducers import Kernel  # noqa: E402
from tests.control.reference import advantages_by_loops  # noqa: E402
from tests.control.test_reinforce import Broken  # noqa: E402

SHORT = PPOSettings(steps=16, epochs=2, minibatches=2, rate=1e-3)


def networks(seed, hidden=16):
    torch.manual_seed(seed)
    return tuple(nn.Sequential(nn.Linear(4, hidden), nn.Tanh(), nn.Linear(hidden, out)) for out in (2, 1))


def cartpoles(n=4, **options):
    return gymnasium.make_vec("CartPole-v1", n, "vector_entry_point", **options)


def leaning(short):
    """Push where the pole leans; sees positions only."""
    return torch.softmax(torch.stack([-short[:, 1], short[:, 1]], 1) * 20, 1)


def matching(seed):
    source = torch.Generator().manual_seed(seed)
    return PolicyMatching([0, 2], leaning, Visited(partial(Kernel, alpha=[1.0, 10.0]), 8, generator=source))


def test_advantages_are_the_plain_sums(generator):
    steps, envs = 30, 5

    def coins(p):
        return torch.rand(steps, envs, generator=generator) < p

    terminated, ended = coins(0.1), coins(0.1)
    ended = ended | terminated
    rewards = torch.randn(steps, envs, generator=generator)
    values = torch.randn(steps + 1, envs, generator=generator)
    rollout = Rollout(torch.empty(0), torch.empty(0), torch.empty(0), rewards, terminated, ended, ~ended, values)
    found = advantages(rollout, 0.9, 0.8)
    for env in range(envs):
        columns = (tensor[:, env].tolist() for tensor in (rewards, values, terminated, ended))
        torch.testing.assert_close(found[:, env], torch.tensor(advantages_by_loops(*columns, 0.9, 0.8)))


def test_advantages_without_trace_are_one_step_and_with_all_of_it_the_return(generator):
    rewards, values = torch.randn(6, 1, generator=generator), torch.randn(7, 1, generator=generator)
    never = torch.zeros(6, 1, dtype=torch.bool)
    rollout = Rollout(torch.empty(0), torch.empty(0), torch.empty(0), rewards, never, never, ~never, values)
    torch.testing.assert_close(advantages(rollout, 0.9, 0.0), rewards + 0.9 * values[1:] - values[:-1])
    whole = sum(0.9**t * rewards[t] for t in range(6)) + 0.9**6 * values[6] - values[0]
    torch.testing.assert_close(advantages(rollout, 0.9, 1.0)[0], whole)


def test_the_clipped_losss_gradient_is_the_numerical_one(generator):
    def drawn():
        return torch.randn(12, generator=generator, dtype=torch.float64)

    log_before = -drawn().abs()
    log_taken = (log_before + 0.3 * drawn()).requires_grad_()
    advantage = drawn()
    assert torch.autograd.gradcheck(lambda log: clipped_loss(log, log_before, advantage, 0.2), (log_taken,))
    ratio = (log_taken - log_before).exp().detach()
    one_sided = ((ratio > 1.2) & (advantage > 0)) | ((ratio < 0.8) & (advantage < 0))
    assert one_sided.any()
    clipped_loss(log_taken, log_before, advantage, 0.2).backward()
    assert torch.equal(log_taken.grad == 0, one_sided)  # what is far enough already is pulled no farther


def test_the_loss_is_the_plain_sum(seed, generator):
    policy, value = networks(seed)
    ppo = PPO(cartpoles(), policy, value, PPOSettings(entropy=0.3, value=0.7, clip=0.1))
    at, actions = torch.randn(10, 4, generator=generator), torch.randint(2, (10,), generator=generator)
    log_before, advantage, aim = (torch.randn(10, generator=generator) for _ in range(3))
    scaled = (advantage - advantage.mean()) / advantage.std()
    wanted = 0.0
    for i in range(10):
        pi = torch.softmax(policy(at[i]), -1)
        ratio = pi[actions[i]] / log_before[i].exp()
        gain = min(ratio * scaled[i], ratio.clamp(0.9, 1.1) * scaled[i])
        error = 0.5 * (value(at[i])[0] - aim[i]) ** 2
        wanted = wanted + (-gain + 0.7 * error + 0.3 * sum(p * p.log() for p in pi)) / 10
    torch.testing.assert_close(ppo.loss(Batch(at, actions, log_before, advantage, aim)), wanted)


def trained(seed, updates=3, **options):
    policy, value = networks(seed)
    ppo = PPO(cartpoles(), policy, value, SHORT, seed=seed, **options)
    progress = list(ppo.learn(updates))
    return progress, [p.detach() for p in [*policy.parameters(), *value.parameters()]]


def test_without_strength_it_is_plain_ppo_to_the_bit(seed):
    progress, plain = trained(seed)
    again, unhelped = trained(seed, matching=matching(seed), lam=0.0)
    assert progress == again
    assert all(torch.equal(a, b) for a, b in zip(plain, unhelped, strict=True))
    _, other = trained(seed, matching=matching(seed), lam=0.5)
    assert not torch.equal(plain[0], other[0])


def test_strength_may_be_set_anew_between_updates(seed):
    """Helped in the second of three updates only."""
    policies = []
    for belief_seed in (seed, seed + 1):
        policy, value = networks(seed)
        ppo = PPO(cartpoles(), policy, value, SHORT, matching(belief_seed), lam=0.0, seed=seed)
        for progress in ppo.learn(3):
            ppo.lam = 0.5 if progress.steps == 64 else 0.0
        policies.append([p.detach() for p in policy.parameters()])
    assert not torch.equal(policies[0][0], policies[1][0])  # the second update drew other velocities
    plain = trained(seed)[1]
    assert not torch.equal(policies[0][0], plain[0])


class Counting(gymnasium.Env):
    """Two real steps an episode, then an end; the observation is how many steps were made, reward 1 each."""

    observation_space = gymnasium.spaces.Box(0, 10, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, by_the_rules):
        self.by_the_rules = by_the_rules

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.made = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.made += 1
        over = self.made == 2
        there = np.full(1, self.made, np.float32)
        return there, 1.0, over and self.by_the_rules, over and not self.by_the_rules, {}


@pytest.mark.parametrize("by_the_rules", [True, False])
def test_a_reset_is_not_a_step_and_time_running_out_is_no_end_of_worth(by_the_rules):
    envs = SyncVectorEnv([lambda: Counting(by_the_rules)] * 2)
    value = nn.Linear(1, 1)
    with torch.no_grad():
        value.weight.fill_(10.0)
        value.bias.fill_(0.0)
    ppo = PPO(envs, nn.Linear(1, 2), value, PPOSettings(steps=7, discount=1.0, trace=1.0))
    rollout, returns = ppo._collect()
    assert rollout.observations[:, 0, 0].tolist() == [0, 1, 2, 0, 1, 2, 0, 1]
    assert rollout.real[:, 0].tolist() == [True, True, False, True, True, False, True]
    assert returns == [2.0, 2.0] * 2
    after = 0.0 if by_the_rules else 20.0
    assert advantages(rollout, 1.0, 1.0)[:2, 0].tolist() == [2 + after - 0, 1 + after - 10]


def test_fewer_steps_than_minibatches(seed):
    policy, value = networks(seed)
    list(PPO(cartpoles(1), policy, value, PPOSettings(steps=2, minibatches=5, rate=1e-3), seed=seed).learn(30))
    assert all(p.isfinite().all() for p in [*policy.parameters(), *value.parameters()])


def test_it_learns_cartpole():
    """Twenty-odd steps when it begins; 15,000 steps later many times that."""
    policy, value = networks(0, hidden=32)
    settings = PPOSettings(steps=64, rate=3e-3, entropy=0.0)
    progress = list(PPO(cartpoles(8), policy, value, settings).learn(30))
    first = [r for p in progress[:3] for r in p.returns]
    last = [r for p in progress[-5:] for r in p.returns]
    assert np.mean(first) < 35
    assert np.mean(last) > 100


class Constant(nn.Linear):
    """The same value everywhere."""

    def __init__(self, given):
        super().__init__(4, 1)
        self.given = given

    def forward(self, observations):
        return super().forward(observations) * self.given


def test_first_returns_of_a_world_that_never_ends_are_an_error():
    grids = gymnasium.make_vec("imm/ToroidalGrid-v0", 3, "vector_entry_point")
    with pytest.raises(ValueError, match="3 of 3 episodes have not ended after 50 steps"):
        first_returns(grids, lambda places: torch.zeros(len(places), 4), seed=0, most=50)
    assert first_returns(cartpoles(), networks(0)[0], seed=0, most=500).shape == (4,)


def build(envs=None, policy=None, value=None, **options):
    made = networks(0)
    ppo = PPO(cartpoles() if envs is None else envs(), policy or made[0], value or made[1], **options)
    return list(ppo.learn(1))


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        ({"policy": nn.Linear(4, 3)}, ValueError, r"policy must give logits \[4, 2\], got shape \(4, 3\)"),
        ({"value": nn.Linear(4, 2)}, ValueError, r"value must give \[516\] or \[516, 1\], got shape \(516, 2\)"),
        ({"lam": 0.5}, ValueError, "lam is 0.5, but there is no matching"),
        ({"lam": -0.5}, ValueError, "lam must be finite and not negative, got -0.5"),
        (
            {"envs": lambda: gymnasium.make_vec("Pendulum-v1", 2, "sync")},
            TypeError,
            "actions must be a Discrete space, got Box",
        ),
        (
            {
                "envs": lambda: SyncVectorEnv(
                    [lambda: gymnasium.make("CartPole-v1")], autoreset_mode=AutoresetMode.SAME_STEP
                )
            },
            ValueError,
            r"AutoresetMode.NEXT_STEP\), got .*SAME_STEP",
        ),
        (
            {"envs": lambda: gymnasium.make("CartPole-v1")},
            TypeError,
            r"envs must be vectorised, as gymnasium.make_vec gives, got a TimeLimit; IMMReinforce takes a single one",
        ),
        (
            {"envs": lambda: SyncVectorEnv([lambda: Broken(gymnasium.make("CartPole-v1"))] * 2)},
            ValueError,
            "reward must be finite, got nan at step 3",
        ),
        ({"value": Constant(float("nan"))}, ValueError, "value must be finite, got nan"),
        ({"seed": -1}, ValueError, "seed must be a whole number of at least 0, got -1"),
    ],
)
def test_bad_parts_are_one_line(wrong, kind, message):
    with pytest.raises(kind, match=message) as refused:
        build(**wrong)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"steps": 0}, "steps must be a whole number of at least 1, got 0"),
        ({"discount": 1.2}, "discount must be between 0 and 1, got 1.2"),
        ({"clip": -0.1}, "clip must be finite and not negative, got -0.1"),
    ],
)
def test_bad_settings(wrong, message):
    with pytest.raises(ValueError, match=message):
        PPOSettings(**wrong)
