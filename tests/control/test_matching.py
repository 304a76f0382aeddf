"""The IMM risk of a policy in any world, and what is refused."""

import sys

import numpy as np
import pytest
import torch
from torch import nn

gymnasium = pytest.importorskip("gymnasium", reason="the extra [control] is not installed")

from gymnasium import spaces  # noqa: E402

from imm.baselines import reverse_kd  # noqa: E402
from imm.control import IMMReinforce, PolicyMatching, Visited  # noqa: E402
from imm.control.spaces import World  # noqa: E402
from imm.inducers import Belief, Kernel, Multiset  # noqa: E402
from imm.matching import Exact  # noqa: E402

HALF = torch.tensor([[0.5, 0.5]])


def log_policy(observations):
    return torch.log_softmax(observations @ torch.tensor([[1.0, -1.0], [0.5, 2.0], [-1.0, 0.0]]), -1)


def said(short):
    return torch.softmax(torch.stack([short[:, 0], -short[:, 0]], 1), 1)


def test_it_is_exact_matching_with_the_inducer(generator):
    visited = torch.randn(30, 3, generator=generator)
    matching = PolicyMatching(lambda observations: observations[:, :1], said, Visited(Kernel))
    matching.see(visited)
    short = visited[:, :1]
    wanted = Exact(said, Kernel(short), lambda short, index: log_policy(visited[index]))(None, short)
    torch.testing.assert_close(matching(log_policy, visited), wanted)


def test_columns_are_those_of_the_one_that_asks(generator):
    visited = torch.randn(30, 3, generator=generator)
    matching = PolicyMatching([0], said, Visited(Kernel))
    matching.see(visited)
    short = visited[:, :1]

    def mixed(short, index):
        return log_policy(torch.cat([short, visited[index, 1:]], 1))

    torch.testing.assert_close(matching(log_policy, visited), Exact(said, Kernel(short), mixed)(None, short))


def test_a_table_of_states_is_a_belief_too(generator):
    """The inducer ``Belief`` with what its numbers stand for."""
    states, table = torch.randn(6, 3, generator=generator), torch.rand(4, 6, generator=generator)
    inducer = Belief(table / table.sum(1, keepdim=True))

    def belief(short):
        contexts = inducer.every(short)
        return states[contexts.index], contexts.weights

    target = torch.softmax(torch.randn(4, 2, generator=generator), 1)
    codes = torch.tensor([3, 0, 3, 1, 2])
    matching = PolicyMatching(lambda observations: codes, lambda short: target[short], belief)
    wanted = Exact(lambda short: target[short], inducer, lambda short, index: log_policy(states[index]))(None, codes)
    torch.testing.assert_close(matching(log_policy, states[:5]), wanted)


def test_a_belief_in_what_is_seen_is_reverse_kd(generator):
    """One context: the same gradient, and the target's entropy besides."""
    weights = torch.randn(3, 2, generator=generator, requires_grad=True)
    at = torch.randn(20, 3, generator=generator)
    matching = PolicyMatching(lambda o: o, lambda o: said(o), lambda o: (o[:, None], torch.ones(len(o), 1)))
    ours = matching(lambda o: torch.log_softmax(o @ weights, -1), at)
    theirs = reverse_kd(torch.log_softmax(at @ weights, -1), said(at))
    gradients = [torch.autograd.grad(each, weights)[0] for each in (ours, theirs)]
    torch.testing.assert_close(*gradients)


class TestVisited:
    def test_the_oldest_are_forgotten(self):
        visited = Visited(Multiset, memory=3)
        for value in range(5):
            visited.see(torch.full((1, 2), value), torch.tensor([7]))
        observations, weights = visited(torch.tensor([7]))
        assert observations[0, :, 0].tolist() == [2, 3, 4]
        torch.testing.assert_close(weights, torch.full((1, 3), 1 / 3))

    def test_draws_come_from_the_kernel(self, generator):
        places = torch.tensor([[0.0, 1.0], [0.1, 2.0], [9.0, 3.0]])
        visited = Visited(Kernel, n_contexts=4000, generator=generator)
        visited.see(places, places[:, 0])
        observations, weights = visited(torch.tensor([0.0]))
        share = (observations[0, :, 1] == 1.0).float().mean().item()
        assert weights.unique().tolist() == [pytest.approx(1 / 4000)]
        assert share == pytest.approx(Kernel(places[:, 0]).every(torch.tensor([0.0])).weights[0, 0].item(), abs=0.04)

    def test_nothing_was_visited(self):
        with pytest.raises(ValueError, match="nothing was visited yet"):
            Visited(Multiset)(torch.tensor([0]))

    def test_what_never_occurred_is_refused_by_name(self):
        visited = Visited(Multiset)
        visited.see(torch.zeros(1, 2), torch.tensor([7]))
        with pytest.raises(ValueError, match="short context 3 does not occur in the data"):
            visited(torch.tensor([3]))


class Odd(gymnasium.Env):
    """An environment with any spaces."""

    def __init__(self, observations, actions):
        self.observation_space, self.action_space = observations, actions


BOX, TWO = spaces.Box(-1, 1, (3,)), spaces.Discrete(2)


@pytest.mark.parametrize(
    ("observations", "actions", "message"),
    [
        (BOX, spaces.Box(-1, 1, (2,)), r"actions must be a Discrete space, got Box\(-1.0, 1.0, \(2,\), float32\)"),
        (BOX, spaces.MultiDiscrete([2, 2]), r"actions must be a Discrete space, got MultiDiscrete\(\[2 2\]\)"),
        (spaces.Dict(a=BOX), TWO, r"observations must be one array \(Box, .*\), got Dict\('a': Box"),
        (spaces.Tuple([BOX]), TWO, r"observations must be one array .* got Tuple\(Box"),
        (spaces.Text(5), TWO, r"observations must be one array .* got Text\(1, 5"),
    ],
)
def test_other_spaces_are_refused(observations, actions, message):
    with pytest.raises(TypeError, match=message) as refused:
        IMMReinforce(Odd(observations, actions), nn.Linear(3, 2))
    assert "\n" not in str(refused.value)


def call(short=lambda o: o[:, 0], target=lambda s: HALF.repeat(len(s), 1), belief=None):
    """The matching of three observations, with one part made wrong."""
    if belief is None:
        belief = lambda s: (torch.zeros(len(s), 2, 3), torch.full((len(s), 2), 0.5))  # noqa: E731
    return lambda: PolicyMatching(short, target, belief)(log_policy, torch.eye(3))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (call(short=lambda o: o[0, :2]), r"short must give a tensor \[3\] or \[3, d\] for 3 .* got shape \(2,\)"),
        (call(short=lambda o: o[:, 0].numpy()), r"short must give a tensor .* got a ndarray"),
        (call(short=lambda o: o[:, None]), r"short must give a tensor .* got shape \(3, 1, 3\)"),
        (call(short=[0, 3]), r"short must be columns of .* got \[0, 3\] for observations of shape \(3, 3\)"),
        (call(short=[-1]), r"short must be columns of .* got \[-1\]"),
        (call(target=lambda s: HALF), r"must have the same shape, got \(1, 2\) and \(2, 2\)"),
        (call(target=lambda s: torch.full((len(s), 2), 0.6)), "target must be probabilities; row 0 sums to 1.2"),
        (
            call(belief=lambda s: (torch.zeros(len(s), 2, 3), torch.full((len(s), 2), 0.4))),
            "the belief's weights must be probabilities; row 0 sums to 0.8",
        ),
        (
            call(belief=lambda s: (torch.zeros(len(s), 2, 3), torch.tensor([[1.5, -0.5]] * len(s)))),
            "the belief's weights must be probabilities; row 0 has the negative value -0.5",
        ),
        (
            call(belief=lambda s: (torch.zeros(len(s), 2, 4), torch.full((len(s), 2), 0.5))),
            r"observations \[n, k, 3\] and weights \[n, k\], for n = 2 .* \(2, 2, 4\) and shape \(2, 2\)",
        ),
        (
            call(belief=lambda s: (torch.zeros(1, 2, 3), torch.full((1, 2), 0.5))),
            r"for n = 2 short contexts, got shape \(1, 2, 3\) and shape \(1, 2\)",
        ),
        (call(belief=lambda s: (torch.zeros(2, 2, 3), torch.tensor(1.0))), r"got shape \(2, 2, 3\) and shape \(\)"),
        (call(belief=lambda s: ([0.0], torch.ones(2, 1))), r"got a list and shape \(2, 1\)"),
        (
            lambda: IMMReinforce(Odd(BOX, TWO), nn.Linear(3, 5)).log_policy(torch.zeros(4, 3)),
            r"policy must give logits \[4, 2\], got shape \(4, 5\)",
        ),
        (lambda: IMMReinforce(Odd(BOX, TWO), nn.Linear(3, 2), lam=0.5), "lam is 0.5, but there is no matching"),
        (lambda: IMMReinforce(Odd(BOX, TWO), nn.Linear(3, 2), lam=-1.0), "lam must be finite and not negative"),
        (lambda: IMMReinforce(Odd(BOX, TWO), nn.Linear(3, 2), discount=1.5), "discount must be between 0 and 1"),
        (lambda: IMMReinforce(Odd(BOX, TWO), nn.Linear(3, 2), seed=-1), "seed must be a whole number of at least 0"),
    ],
)
def test_bad_parts_are_one_line(wrong, message):
    with pytest.raises(ValueError, match=message) as refused:
        wrong()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (call(target=lambda short: [[0.5, 0.5]] * 3), r"target must return a tensor \[n, classes\], got list"),
        (call(target=None), "target must be a function of short contexts, got a NoneType"),
        (call(belief=HALF), r"belief must be a function of short contexts, got shape \(1, 2\)"),
        (call(belief=lambda s: torch.zeros(len(s), 3)), r"belief must give two tensors, .* got shape \(2, 3\)"),
        (call(short=0), r"short must be a function, or columns such as \[0, 2\], got 0"),
        (call(short=[]), r"short must be a function, or columns such as \[0, 2\], got \[\]"),
        (call(short=[0.7]), r"short must be a function, or columns such as \[0, 2\], got \[0.7\]"),
    ],
)
def test_parts_of_another_kind(wrong, message):
    with pytest.raises(TypeError, match=message):
        wrong()


def test_observations_as_tensors():
    world = World(spaces.MultiDiscrete([3, 4]), TWO)
    assert world.shape == (2,)
    assert world.observations([[1, 2]], 0, 1).dtype == torch.int64
    assert World(spaces.Discrete(5), TWO).observations(np.int64(3), 0).shape == ()
    image = World(spaces.Box(0, 255, (2, 2), "uint8"), TWO)
    assert image.observations(np.full((1, 2, 2), 255, np.uint8), 0, 1).dtype == torch.float32
    assert World(BOX, TWO).observations([0, 1, 0], 0).dtype == torch.float32  # by the space, not by what was met


@pytest.mark.parametrize(
    ("given", "n", "message"),
    [
        ([0.1, 0.2], None, r"observations must be of shape \(3,\), as their space says, got \(2,\) at step 4"),
        ([[0.1, 0.2, 0.3]], 2, r"observations must be of shape \(2, 3\), .* got \(1, 3\) at step 4"),
        ([0.1, np.nan, 0.3], None, "observation must be finite, got nan at step 4"),
        ([0.1, 0.2, -np.inf], None, "observation must be finite, got -inf at step 4"),
    ],
)
def test_observations_unlike_their_space(given, n, message):
    with pytest.raises(ValueError, match=message):
        World(BOX, TWO).observations(given, 4, n)


@pytest.mark.parametrize("logits", [[np.nan, 0.0], [np.inf, 0.0], [-np.inf, -np.inf]])
def test_logits_that_are_no_policy(logits):
    policy = World(BOX, TWO).log_policy(lambda o: torch.tensor([[0.0, 0.0], logits]))
    with pytest.raises(ValueError, match=r"policy must give finite logits \(some may be -inf\), got \["):
        policy(torch.zeros(2, 3))


def test_an_action_may_be_left_out():
    policy = World(BOX, TWO).log_policy(lambda o: torch.tensor([[-np.inf, 0.0]]))
    assert policy(torch.zeros(1, 3)).exp().tolist() == [[0.0, 1.0]]


def test_without_gymnasium_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ImportError, match=r"this needs Gymnasium: pip install -e '\.\[control\]'"):
        IMMReinforce(Odd(BOX, TWO), nn.Linear(3, 2))
