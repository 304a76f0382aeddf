import math

import pytest
import torch

from imm import functional
from imm.inducers import Belief, Kernel, Multiset
from imm.matching import Exact
from imm.matching.base import distinct
from tests import reference
from tests.problems import Problem, random_probabilities

ROWS = torch.arange(9)


def reals_of(problem, seed=0):
    """Another short context for the same rows, continuous, which the model does not see."""
    return torch.randn(9, generator=torch.Generator().manual_seed(seed), dtype=problem.extended.dtype)


def by_reals(problem, reals, kernel):
    """Exact matching with the kernel's contexts; the model's short part is that of the row that asks."""
    own = dict(zip(reals.tolist(), problem.short, strict=True))

    def predict(short, index):
        return problem.predict(torch.stack([own[value] for value in short.tolist()]), index)

    return Exact(problem.target, kernel, predict)(None, reals, ROWS)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_kernel_risk_is_the_references(seed, dtype):
    """Eq. IMM-exact-logreg, all pairs of short and extended contexts."""
    problem = Problem(seed, dtype)
    reals = reals_of(problem, seed)
    pairs = problem.log_q(ROWS.repeat_interleave(9), ROWS.repeat(9)).view(9, 9, 4)
    weights = reference.kernel_weights(reals[:, None].tolist(), reals[:, None].tolist(), [2.0], "laplace")
    induced = reference.induce(pairs.exp().tolist(), weights)
    loss = by_reals(problem, reals, Kernel(reals, alpha=2.0))
    assert loss.item() == pytest.approx(reference.risk(induced, problem.target.tolist()), rel=1e-5)
    assert loss.dtype == dtype


def test_kernel_gradient_is_that_of_the_definition(seed):
    problem = Problem(seed)
    reals = reals_of(problem, seed)
    kernel = Kernel(reals, alpha=2.0)
    expected = problem.gradient(lambda: problem.risk(kernel.every(reals)))
    torch.testing.assert_close(problem.gradient(lambda: by_reals(problem, reals, kernel)), expected)


@pytest.mark.parametrize("weights", [[[0.0, 1.0, 0.0], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]]])
def test_contexts_without_weight_are_not_run(weights):
    problem, asked = Problem(), []
    inducer = Belief(torch.tensor(weights, dtype=torch.float64))

    def predict(short, index):
        asked.append(len(index))
        return problem.predict(short, index)

    expected = problem.gradient(lambda: problem.risk(inducer.every(problem.short)))
    found = problem.gradient(lambda: Exact(problem.target, inducer, predict)(None, problem.short, ROWS))
    torch.testing.assert_close(found, expected)
    assert asked == [4]


def test_a_repeated_short_context_is_induced_once():
    problem, asked = Problem(), []

    def predict(short, index):
        asked.append(sorted(index.tolist()))
        return problem.predict(short, index)

    matching = Exact(lambda short: problem.table[short], Multiset(problem.short), predict)
    once, twice = matching(None, problem.short), matching(None, torch.cat([problem.short, problem.short]))
    assert asked == [list(range(9))] * 2
    torch.testing.assert_close(once, twice)


def test_one_row_in_the_data():
    problem = Problem()
    loss = Exact(problem.target[:1], Multiset(problem.short[:1]), problem.predict)(None, problem.short[:1], ROWS[:1])
    expected = -(problem.target[0] * torch.log_softmax(problem.logits(ROWS[:1])[0], -1)).sum()
    torch.testing.assert_close(loss, expected)


@pytest.mark.parametrize(
    ("answer", "given"),
    [(torch.zeros(2, 4), r"shape \(2, 4\)"), (torch.zeros(3), r"shape \(3,\)"), (None, "a NoneType")],
)
def test_a_model_of_the_wrong_shape_is_refused(answer, given):
    short = torch.tensor([0, 0, 1])
    with pytest.raises(ValueError, match=rf"must return logits \[3, classes\] for 3 contexts, got {given}"):
        Exact(torch.full((3, 4), 0.25), Multiset(short), lambda short, index: answer)(None, short, torch.arange(3))


def test_short_contexts_are_values_in_a_minibatch():
    """``predict`` gets the values that the batch has, whatever rows of the data the batch is."""
    problem, seen = Problem(), []

    def predict(short, index):
        seen.append((short.tolist(), index.tolist()))
        return problem.predict(short, index)

    rows = torch.tensor([7, 2])
    Exact(problem.target, Multiset(problem.short), predict)(problem.logits(rows), problem.short[rows], rows)
    ((short, index),) = seen
    assert short == problem.short[index].tolist()
    assert set(short) == set(problem.short[rows].tolist())


def test_consistency_the_true_model_minimises(generator):
    """Where the target is the true induced model, the true model has the least risk (consistency of IMM)."""
    problem = Problem()
    multiset = Multiset(problem.short)

    def gradient(target):
        return problem.gradient(lambda: Exact(target, multiset, problem.predict)(None, problem.short, ROWS))

    with torch.no_grad():
        contexts = multiset.every(torch.arange(3))
        pairs = problem.log_q(contexts.index[:, :1].expand_as(contexts.index).flatten(), contexts.index.flatten())
        truth = functional.induce(pairs.view(3, -1, 4), contexts.weights).exp()[problem.short]
    torch.testing.assert_close(gradient(truth), torch.zeros_like(gradient(truth)), rtol=0, atol=1e-7)
    assert gradient(random_probabilities(3, 4, generator=generator)[problem.short]).abs().max() > 1e-2


def test_a_class_that_no_context_allows_costs_a_bounded_amount():
    short, target = torch.zeros(2, dtype=torch.long), torch.tensor([[0.25, 0.25, 0.5]] * 2)
    logits = torch.tensor([[0.3, -math.inf, 0.1], [0.2, -math.inf, 0.9]], requires_grad=True)
    loss = Exact(target, Multiset(short), lambda short, index: logits[index])(None, short, torch.arange(2))
    loss.backward()
    assert 0.25 * 87 < loss.item() < 0.25 * 88 + 2
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize(
    "short", [torch.tensor([7, 3, 7, 1]), torch.tensor([7, 3, 7, 1]).numpy(), ["b", "z", "b", "a"]]
)
def test_distinct_gives_each_once(short):
    different, of_row = distinct(short)
    assert len(different) == 3
    assert [different[i] for i in of_row] == list(short)
