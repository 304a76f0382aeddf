import math
import weakref

import pytest
import torch
from torch import nn

from imm import functional
from imm.inducers import Belief, Kernel, Multiset
from imm.matching import Exact, Sampled, clipped_apart
from tests.problems import Problem

ROWS = torch.arange(9)
BELIEF = torch.tensor([[0.0, 0.3, 0.0, 0.7], [0.0, 0.0, 0.0, 1.0], [0.0, 0.5, 0.25, 0.25]], dtype=torch.float64)


def inducers(problem):
    codes = problem.short.double()
    return [
        Multiset(problem.short),
        Kernel(codes, alpha=0.7),
        Kernel(codes, alpha=0.5, n_neighbors=4),
        Belief(BELIEF),
    ]


def sampled(problem, inducer=None, *more, **settings):
    inducer = Multiset(problem.short) if inducer is None else inducer
    return Sampled(lambda short: problem.table[short], inducer, problem.predict, *more, **settings)


class AsReals(nn.Module):
    """A kernel over codes as reals."""

    data, own_short = None, False

    def __init__(self, kernel):
        super().__init__()
        self.kernel = kernel

    def every(self, short):
        return self.kernel.every(short.double())


@pytest.mark.parametrize("which", range(4), ids=["multiset", "kernel", "neighbors", "belief"])
@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_context_in_pieces_is_the_exact_risk(seed, which, at_once, weighted):
    problem = Problem(seed)
    inducer = inducers(problem)[which]
    inducer = AsReals(inducer) if isinstance(inducer, Kernel) else inducer
    weight = torch.arange(9.0) if weighted else None
    exact = Exact(lambda short: problem.table[short], inducer, problem.predict)
    found, expected = (
        matching(None, problem.short, sample_weight=weight)
        for matching in (sampled(problem, inducer, None, at_once), exact)
    )
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(problem.gradient(lambda: found), problem.gradient(lambda: expected))


@pytest.mark.parametrize("at_once", [1, 2, 3, 5, 100])
def test_draws_in_pieces_are_the_draws_at_once(seed, at_once):
    """Same draws, same gradient: the log of a sum, taken apart by crosstalk   (Eq. sequentializing-derivation)."""
    problem = Problem(seed)
    contexts = Multiset(problem.short).draw(torch.arange(3), 5, torch.Generator().manual_seed(seed))
    log_q = problem.log_q(torch.arange(3).repeat_interleave(5), contexts.index.flatten()).view(3, 5, 4)
    share = torch.bincount(problem.short) / 9
    expected = functional.matching_loss(functional.induce(log_q), problem.table, share)
    loss = sampled(problem, None, 5, at_once, torch.Generator().manual_seed(seed))(None, problem.short)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(problem.gradient(lambda: loss), problem.gradient(lambda: expected))


def test_one_context_has_the_gradient_of_reverse_kd_at_the_drawn_rows(seed):
    problem = Problem(seed)
    drawn = Multiset(problem.short).draw(torch.arange(3), 1, torch.Generator().manual_seed(seed)).index[:, 0]
    share = torch.bincount(problem.short) / 9
    log_q = problem.log_q(torch.arange(3), drawn)
    expected = problem.gradient(lambda: (share * -(problem.table * log_q).sum(-1)).sum())
    matching = sampled(problem, None, 1, generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(problem.gradient(lambda: matching(None, problem.short)), expected)


def test_many_draws_approach_the_exact_risk(generator):
    problem = Problem()
    exact = Exact(lambda short: problem.table[short], Multiset(problem.short), problem.predict)(None, problem.short)
    few, many = (sampled(problem, None, k, 4000, generator)(None, problem.short).item() for k in (1, 4000))
    assert abs(many - exact.item()) < 0.02
    assert abs(few - exact.item()) > abs(many - exact.item())


@pytest.mark.parametrize(("k", "at_once"), [(6, 1), (6, 2), (6, 3), (7, 3), (6, 6), (6, 10)])
def test_each_context_is_run_once_on_the_way_forward_and_once_on_the_way_back(k, at_once):
    problem, sizes = Problem(), []

    def predict(short, index):
        sizes.append(len(index))
        return problem.predict(short, index)

    loss = Sampled(lambda short: problem.table[short], Multiset(problem.short), predict, k, at_once)(
        None, problem.short
    )
    pieces = math.ceil(k / at_once)
    assert len(sizes) == pieces
    loss.backward()
    assert len(sizes) == (1 if pieces == 1 else 2 * pieces)
    assert max(sizes) <= 3 * at_once
    assert sum(sizes) == 3 * k * (1 if pieces == 1 else 2)


@pytest.mark.parametrize("k", [3, 12])
def test_of_all_contexts_one_is_held(k):
    """What a context's pass made is gone when the next is run, on the way forward and on the way back."""
    problem, alive, most = Problem(), [], []

    def predict(short, index):
        most.append(sum(each() is not None for each in alive))
        hidden = problem.extended[index] * 1.5
        alive.append(weakref.ref(hidden))
        one_hot = nn.functional.one_hot(short, 3).double()
        return problem.model(torch.cat([one_hot, hidden], 1))

    Sampled(lambda short: problem.table[short], Multiset(problem.short), predict, k)(None, problem.short).backward()
    assert len(most) == 2 * k
    assert max(most) <= 1


def test_both_passes_draw_the_same_dropout_masks():
    """The gradient is that of the loss with these masks: compared with differences of losses with the same seed."""
    problem = Problem()
    dropout = nn.Dropout(0.5)
    multiset = Multiset(problem.short)

    def loss():
        torch.manual_seed(1)
        matching = Sampled(
            lambda short: problem.table[short],
            multiset,
            lambda short, index: dropout(problem.predict(short, index)),
            6,
            generator=torch.Generator().manual_seed(2),
        )
        return matching(None, problem.short)

    found = problem.gradient(loss)
    weight, step, numbers = problem.model.weight, 1e-6, []
    for place in range(weight.numel()):
        values = []
        for sign in (1, -1):
            with torch.no_grad():
                weight.view(-1)[place] += sign * step
            values.append(loss().item())
            with torch.no_grad():
                weight.view(-1)[place] -= sign * step
        numbers.append((values[0] - values[1]) / (2 * step))
    torch.testing.assert_close(found[: weight.numel()], torch.tensor(numbers).double(), rtol=1e-5, atol=1e-7)
    assert found.abs().max() > 1e-2


def test_clipping_apart_is_a_second_backward():
    problem = Problem()
    matching = sampled(problem, None, None)
    primary = problem.gradient(lambda: problem.logits(ROWS).logsumexp(-1).mean())
    alone = problem.gradient(lambda: matching(None, problem.short))

    def both():
        problem.logits(ROWS).logsumexp(-1).mean().backward()
        with clipped_apart(problem.model.parameters(), 0.01, lam=3.0):
            matching(None, problem.short).backward()

    expected = primary + 3.0 * 0.01 * alone / alone.norm()
    torch.testing.assert_close(problem.gradient(both), expected, rtol=1e-4, atol=1e-6)


def test_a_compiled_model_gives_the_same():
    problem = Problem()
    plain = problem.gradient(lambda: sampled(problem, None, None)(None, problem.short))
    predict = problem.predict
    problem.predict = torch.compile(lambda short, index: predict(short, index), backend="aot_eager")
    compiled = problem.gradient(lambda: sampled(problem, None, None)(None, problem.short))
    torch.testing.assert_close(compiled, plain)


def test_in_evaluation_mode_the_same_contexts_are_drawn():
    problem = Problem()
    matching = sampled(problem, None, 3).eval()
    draws = [matching.contexts(torch.arange(3)).index for _ in range(2)]
    assert torch.equal(*draws)
    matching.train()
    draws = [matching.contexts(torch.arange(3)).index for _ in range(4)]
    assert not all(torch.equal(draws[0], other) for other in draws[1:])


def test_half_precision_is_summed_in_float32(generator):
    """Sixty-four contexts one at a time: a bfloat16 sum would be off by per cents."""
    log_q = torch.log_softmax(torch.randn(64, 5, generator=generator), -1).bfloat16()
    short, target = torch.zeros(64, dtype=torch.int64), torch.full((64, 5), 0.2)
    loss = Sampled(target, Multiset(short), lambda short, index: log_q[index], None)(None, short, torch.arange(64))
    assert loss.dtype == torch.float32
    induced = torch.softmax(log_q.float(), -1).mean(0)
    torch.testing.assert_close(loss, -0.2 * induced.log().sum(), rtol=1e-5, atol=1e-5)


def test_zeros_in_the_model_give_no_nan():
    logits = torch.tensor([[0.3, -math.inf, 0.1], [0.2, -math.inf, 0.9]], requires_grad=True)
    short, target = torch.zeros(2, dtype=torch.int64), torch.tensor([[0.25, 0.0, 0.75]] * 2)
    Sampled(target, Multiset(short), lambda short, index: logits[index], None)(None, short, torch.arange(2)).backward()
    assert torch.isfinite(logits.grad).all()
    assert logits.grad[:, 0].abs().min() > 0


def test_a_frozen_model_is_no_error():
    problem = Problem()
    problem.model.requires_grad_(False)
    extra = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    plain = problem.predict
    problem.predict = lambda short, index: plain(short, index).detach()
    loss = sampled(problem, None, 3)(None, problem.short) + extra.sum()
    loss.backward()
    assert torch.equal(extra.grad, torch.ones(4, dtype=torch.float64))
