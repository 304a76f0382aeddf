import numpy as np
import pytest
import torch

from imm.inducers import Belief, Kernel, Multiset
from imm.matching import Exact
from imm.matching.base import distinct
from tests import reference
from tests.problems import Problem, random_probabilities


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_kernel_risk_is_the_references(seed, dtype):
    """Eq. IMM-exact-logreg, all pairs of short and extended contexts."""
    problem = Problem(seed, dtype)
    reals = torch.randn(9, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    rows = torch.arange(9)
    pairs = problem.log_q(rows.repeat_interleave(9), rows.repeat(9)).view(9, 9, 4)

    weights = reference.kernel_weights(reals[:, None].tolist(), reals[:, None].tolist(), [2.0], "laplace")
    induced = reference.induce(pairs.exp().tolist(), weights)
    loss = Exact(Kernel(reals, alpha=2.0))(problem.log_q, reals, problem.target)
    assert loss.item() == pytest.approx(reference.risk(induced, problem.target.tolist()), rel=1e-5)
    assert loss.dtype == dtype


def test_kernel_gradient_is_that_of_the_definition(seed):
    problem = Problem(seed)
    reals = torch.randn(9, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    kernel = Kernel(reals, alpha=2.0)
    expected = problem.gradient(lambda: problem.risk(kernel.every(reals)))
    found = problem.gradient(lambda: Exact(kernel)(problem.log_q, reals, problem.target))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    "inducer",
    [
        Belief(torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]], dtype=torch.float64)),
        Kernel(torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64), alpha=torch.inf),
    ],
)
def test_contexts_without_weight_may_come_first(inducer):
    problem = Problem()
    short = problem.short.flip(0)
    problem.short, problem.target = short, problem.target.flip(0)
    asked = []

    def log_q(rows, index):
        asked.append(index)
        return problem.log_q(rows, index)

    given = short if isinstance(inducer, Belief) else short.double()
    expected = problem.gradient(lambda: problem.risk(inducer.every(given)))
    torch.testing.assert_close(problem.gradient(lambda: Exact(inducer)(log_q, given, problem.target)), expected)
    weights = inducer.every(torch.unique(given)).weights
    assert len(asked[0]) == int((weights > 0).sum()), "contexts without weight were evaluated"


def test_a_repeated_short_context_is_induced_once():
    problem = Problem()
    calls = []

    def log_q(rows, index):
        calls.append((rows.tolist(), index.tolist()))
        return problem.log_q(rows, index)

    twice = torch.cat([problem.short, problem.short])
    loss = Exact(Multiset(problem.short))(log_q, twice, torch.cat([problem.target, problem.target]))
    assert len(calls) == 1
    assert sorted(calls[0][1]) == list(range(9))
    torch.testing.assert_close(loss, Exact(Multiset(problem.short))(problem.log_q, problem.short, problem.target))


@pytest.mark.parametrize(
    "kind",
    [
        lambda short: short,
        lambda short: short.numpy(),
        lambda short: [f"word {code}" for code in short.tolist()],
        lambda short: torch.stack([short, -short], 1),
        lambda short: torch.stack([short, -short], 1).numpy(),
        lambda short: [(code, "x") for code in short.tolist()],
    ],
    ids=["tensor", "array", "strings", "rows", "array of rows", "tuples"],
)
def test_every_form_of_short_context_gives_the_same(kind):
    problem = Problem()
    short = kind(problem.short)
    loss = Exact(Multiset(short))(problem.log_q, short, problem.target)
    torch.testing.assert_close(loss, Exact(Multiset(problem.short))(problem.log_q, problem.short, problem.target))


def test_one_row_in_the_data():
    problem = Problem()
    short = torch.tensor([0])
    loss = Exact(Multiset(short))(problem.log_q, short, problem.target[:1])
    torch.testing.assert_close(loss, -(problem.target[0] * problem.all()[0]).sum())


def test_a_model_of_the_wrong_shape_is_refused():
    short = torch.tensor([0, 0, 1])
    with pytest.raises(ValueError, match=r"log_q\(rows, index\) must be \[3, classes\], got shape \(2, 4\)"):
        Exact(Multiset(short))(lambda rows, index: torch.zeros(2, 4), short, torch.full((3, 4), 0.25))


@pytest.mark.parametrize(
    "short", [torch.tensor([7, 3, 7, 1]), np.array([7, 3, 7, 1]), ["b", "z", "b", "a"], np.array(["b", "z", "b", "a"])]
)
def test_distinct_gives_each_once_and_where_it_first_stands(short):
    different, first, inverse = distinct(short)
    assert len(different) == 3
    assert [different[i] for i in inverse] == list(short)
    assert sorted(first.tolist()) == [0, 1, 3]
    assert [short[i] for i in first] == list(different)


def test_consistency_the_true_model_minimises(generator):
    """Where the target is the true induced model, the true model has the least risk (consistency of IMM)."""
    problem = Problem()
    with torch.no_grad():
        inducer = Multiset(problem.short)
        problem.target = Exact(inducer).log_induced(problem.log_q, problem.short).exp()
    gradient = problem.gradient(lambda: Exact(inducer)(problem.log_q, problem.short, problem.target))
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-9)
    problem.target = random_probabilities(3, 4, generator=generator)[problem.short]
    assert problem.gradient(lambda: Exact(inducer)(problem.log_q, problem.short, problem.target)).abs().max() > 1e-2
