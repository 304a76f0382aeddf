import math

import pytest
import torch
from torch import nn

from imm import functional
from imm.baselines import reverse_kd
from imm.inducers import Belief, Kernel, Multiset
from imm.matching import Exact, Sampled
from tests.problems import Problem

BELIEF = torch.tensor([[0.0, 0.3, 0.0, 0.7], [0.0, 0.0, 0.0, 1.0], [0.0, 0.5, 0.25, 0.25]], dtype=torch.float64)


def inducers(problem):
    reals = problem.extended[:, 0]
    return [
        (Multiset(problem.short), problem.short),
        (Kernel(reals, alpha=2.0), reals),
        (Kernel(reals, alpha=1.0, n_neighbors=4), reals),
        (Belief(BELIEF), problem.short),
    ]


@pytest.mark.parametrize("which", range(4), ids=["multiset", "kernel", "neighbors", "belief"])
@pytest.mark.parametrize("chunk", [1, 2, 3, 100])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_context_in_chunks_is_the_exact_risk(seed, which, chunk, weighted):
    problem = Problem(seed)
    inducer, short = inducers(problem)[which]
    weight = torch.arange(9.0) if weighted else None
    loss = Exact(inducer)(problem.log_q, short, problem.target, weight)
    expected = problem.gradient(lambda: loss)
    risk = []
    found = problem.gradient(
        lambda: risk.append(
            Sampled(inducer, None, chunk).backward(problem.log_q, short, problem.target, sample_weight=weight)
        )
    )
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(risk[0], loss.detach(), rtol=1e-6, atol=1e-6)  # weights of 1/3 are float32


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 100])
def test_draws_in_chunks_are_the_draws_at_once(seed, chunk):
    """Same draws, same gradient: the log of a sum, taken apart by crosstalk."""
    problem = Problem(seed)
    multiset = Multiset(problem.short)
    contexts = multiset.draw(problem.short, 5, torch.Generator().manual_seed(seed))
    expected = problem.gradient(lambda: problem.risk(contexts))
    matching = Sampled(multiset, 5, chunk, torch.Generator().manual_seed(seed))
    found = problem.gradient(lambda: matching.backward(problem.log_q, problem.short, problem.target))
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-8)


def test_one_context_has_the_gradient_of_reverse_kd_at_the_drawn_rows(seed):
    problem = Problem(seed)
    multiset = Multiset(problem.short)
    drawn = multiset.draw(problem.short, 1, torch.Generator().manual_seed(seed)).index[:, 0]
    expected = problem.gradient(lambda: reverse_kd(problem.log_q(torch.arange(9), drawn), problem.target))
    matching = Sampled(multiset, 1, generator=torch.Generator().manual_seed(seed))
    found = problem.gradient(lambda: matching.backward(problem.log_q, problem.short, problem.target))
    torch.testing.assert_close(found, expected)


def test_the_log_induced_of_every_context_is_the_exact_one():
    problem = Problem()
    multiset = Multiset(problem.short)
    found = Sampled(multiset, None, chunk=2).log_induced(problem.log_q, problem.short)
    torch.testing.assert_close(found, Exact(multiset).log_induced(problem.log_q, problem.short), rtol=1e-6, atol=1e-6)
    assert not found.requires_grad


def test_the_gradient_is_unbiased_enough_to_approach_the_exact_one(generator):
    """Many draws: the estimate converges to the exact risk."""
    problem = Problem()
    multiset = Multiset(problem.short)
    exact = Exact(multiset)(problem.log_q, problem.short, problem.target).item()
    few, many = (
        Sampled(multiset, k, 4000, generator).backward(problem.log_q, problem.short, problem.target).item()
        for k in (1, 4000)
    )
    assert abs(many - exact) < 0.02
    assert abs(few - exact) > abs(many - exact)


@pytest.mark.parametrize(("k", "chunk"), [(6, 1), (6, 2), (6, 3), (7, 3), (6, 6), (6, 10)])
def test_at_most_a_chunk_of_contexts_is_run_at_once(k, chunk):
    problem = Problem()
    sizes, differentiated = [], []

    def log_q(rows, index):
        sizes.append(len(index))
        assert len(index) == len(rows)
        differentiated.append(torch.is_grad_enabled())
        return problem.log_q(rows, index)

    Sampled(Multiset(problem.short), k, chunk).backward(log_q, problem.short, problem.target)
    assert max(sizes) <= 9 * chunk
    pieces = math.ceil(k / chunk)
    assert len(sizes) == (1 if pieces == 1 else 2 * pieces)
    assert sum(sizes) == 9 * k * (1 if pieces == 1 else 2)
    assert sum(differentiated) == pieces


def test_a_piece_without_weight_is_not_run():
    problem = Problem()
    sizes = []

    def log_q(rows, index):
        sizes.append(len(index))
        return problem.log_q(rows, index)

    Sampled(Belief(BELIEF), None).backward(log_q, problem.short, problem.target)
    assert min(sizes) > 0
    assert len(sizes) == 6  # column 0 is never possible


def test_the_gradient_is_added_to_what_is_there():
    problem = Problem()
    matching = Sampled(Multiset(problem.short), None)
    alone = problem.gradient(lambda: matching.backward(problem.log_q, problem.short, problem.target))
    before = problem.gradient(lambda: problem.all()[0].sum())

    def both():
        problem.all()[0].sum().backward()
        matching.backward(problem.log_q, problem.short, problem.target)

    torch.testing.assert_close(problem.gradient(both), alone + before)


@pytest.mark.parametrize("chunk", [1, 100])
@pytest.mark.parametrize("lam", [0.0, 2.5])
def test_lam_scales_the_gradient_and_not_the_risk(chunk, lam):
    problem = Problem()
    matching = Sampled(Multiset(problem.short), None, chunk)
    risks = []

    def step(factor):
        risks.append(matching.backward(problem.log_q, problem.short, problem.target, factor))

    torch.testing.assert_close(problem.gradient(lambda: step(lam)), lam * problem.gradient(lambda: step(1.0)))
    assert risks[0] == risks[1]
    assert not risks[0].requires_grad


def test_lam_zero_leaves_the_gradients_as_they_are():
    problem = Problem()
    loss = functional.objective(nn.functional.nll_loss(problem.all(), problem.labels), torch.tensor(0.0), 0.0)
    loss.backward()
    before = [parameter.grad.clone() for parameter in problem.model.parameters()]
    Sampled(Multiset(problem.short), 4).backward(problem.log_q, problem.short, problem.target, lam=0.0)
    assert all(torch.equal(a, p.grad) for a, p in zip(before, problem.model.parameters(), strict=True))


@pytest.mark.parametrize("lam", [-1.0, math.nan])
def test_bad_lam_is_refused(lam):
    problem = Problem()
    with pytest.raises(ValueError, match=f"lam must be finite and not negative, got {lam}"):
        Sampled(Multiset(problem.short), 4).backward(problem.log_q, problem.short, problem.target, lam)


class WithDropout(nn.Module):
    def __init__(self, problem):
        super().__init__()
        self.problem, self.layer = problem, nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 4, dtype=torch.float64))

    def forward(self, rows, index):
        return torch.log_softmax(self.layer(self.problem.extended[index]), -1)


def test_a_model_with_dropout_is_refused_in_training_and_runs_in_evaluation():
    problem = Problem()
    model, matching = WithDropout(problem), Sampled(Multiset(problem.short), 4)
    torch.manual_seed(0)
    with pytest.raises(RuntimeError, match="put the model in evaluation mode"):
        matching.backward(model.train(), problem.short, problem.target)
    model.zero_grad()
    matching.backward(model.eval(), problem.short, problem.target)
    assert model.layer[1].weight.grad.abs().max() > 0


def test_half_precision_is_summed_in_float32(generator):
    """Sixty-four contexts one at a time: a bfloat16 sum would be off by per cents."""
    log_q = torch.log_softmax(torch.randn(64, 5, generator=generator), -1).bfloat16()
    short = torch.zeros(64, dtype=torch.int64)
    matching = Sampled(Multiset(short), None)
    found = matching.log_induced(lambda rows, index: log_q[index], short[:1])
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, functional.induce(log_q[None]), rtol=1e-5, atol=1e-5)


def test_zeros_in_the_model_give_no_nan():
    logits = torch.tensor([[0.3, -math.inf, 0.1], [0.2, -math.inf, 0.9]], requires_grad=True)
    short, target = torch.zeros(2, dtype=torch.int64), torch.tensor([[0.25, 0.0, 0.75]] * 2)
    Sampled(Multiset(short), None).backward(lambda rows, index: torch.log_softmax(logits[index], -1), short, target)
    assert torch.isfinite(logits.grad).all()
    assert logits.grad[:, 0].abs().min() > 0
