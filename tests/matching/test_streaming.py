import math

import pytest
import torch

from imm import functional
from imm.inducers import Multiset
from imm.matching import Exact, Streaming
from tests import reference
from tests.problems import Problem, random_probabilities


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("memory", "lifetime"), [(0.0, math.inf), (5.0, math.inf), (math.inf, math.inf), (math.inf, 2.0), (5.0, 0.0)]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_hundred_steps_are_the_references(seed, dtype, memory, lifetime, weighted):
    fast, slow = Problem(seed, dtype), Problem(seed, dtype)
    matching, twin = Streaming(3, 4, memory, lifetime), reference.Streaming(memory, lifetime)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(100):
        rows = torch.randint(9, (5,), generator=generator)
        weight = torch.rand(5, generator=generator, dtype=dtype) + 0.1 if weighted else None
        short, target = fast.short[rows], fast.target[rows]
        loss = matching(fast.log_q(rows, rows), short, target, weight)
        loss.backward()

        log_q = slow.log_q(rows, rows)
        plain = None if weight is None else weight.tolist()
        factor, induced = twin.step(log_q.exp().tolist(), short.tolist(), plain)
        tampered = -(target * torch.tensor(factor, dtype=dtype) * log_q).sum(1)
        functional.weighted_mean(tampered, weight).backward()
        assert loss.item() == pytest.approx(reference.risk(induced, target.tolist(), plain), rel=1e-4)
        for problem in (fast, slow):
            with torch.no_grad():
                for parameter in problem.model.parameters():
                    parameter -= 0.1 * parameter.grad
                    parameter.grad = None
    torch.testing.assert_close(fast.model.weight, slow.model.weight, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(fast.model.weight, Problem(seed, dtype).model.weight, atol=0.05)
    for x, mean in twin.induced.items():
        torch.testing.assert_close(matching.induced[x], torch.tensor(mean), rtol=1e-4, atol=1e-5)
        assert matching.count[x].item() == pytest.approx(twin.count[x], rel=1e-4)


def test_with_infinite_memory_and_a_frozen_model_it_is_exact(seed):
    """After one pass in batches Q̂ is the induced model; a second, full-batch pass has the exact gradient."""
    problem = Problem(seed)
    multiset = Multiset(problem.short)
    matching = Streaming(3, 4, math.inf)
    for rows in torch.arange(9).split(2):
        matching(problem.log_q(rows, rows).detach(), problem.short[rows], problem.target[rows])
    exact = Exact(multiset).log_induced(problem.log_q, problem.short)
    torch.testing.assert_close(matching.log_induced(problem.short), exact.float(), rtol=1e-5, atol=1e-6)
    assert matching.count.tolist() == torch.bincount(problem.short).tolist()

    found = problem.gradient(lambda: matching(problem.all(), problem.short, problem.target))
    expected = problem.gradient(lambda: Exact(multiset)(problem.log_q, problem.short, problem.target))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("memory", [0.0, 3.0, 100.0, math.inf])
def test_the_correction_is_bounded(generator, memory):
    """At most m / β: also for a prediction that all earlier ones made impossible."""
    matching = Streaming(1, 2, memory)
    never = torch.tensor([[1e-30, 1.0]]).log()
    for _ in range(20):
        matching(never, torch.tensor([0]), torch.tensor([[0.5, 0.5]]))
    count, m = matching.count.item(), 3
    log_q = torch.tensor([[0.9, 0.1], [1e-30, 1.0], [1e-30, 1.0]]).log().requires_grad_()
    matching(log_q, torch.zeros(m, dtype=torch.int64), torch.tensor([[0.5, 0.5]] * m)).backward()
    beta = max(m / (count + m), m / (m + memory))
    factor = -log_q.grad * m / 0.5
    assert factor.max() <= m / beta * (1 + 1e-5)
    assert factor[0, 0].item() == pytest.approx(m / beta, rel=1e-4)  # the bound is reached
    assert m / beta <= m + memory


def test_a_prediction_too_small_for_float32_keeps_the_correction_finite():
    log_q = torch.tensor([[-120.0, 0.0]], requires_grad=True)
    matching = Streaming(1, 2, math.inf)
    loss = matching(log_q, torch.tensor([0]), torch.tensor([[0.5, 0.5]]))
    loss.backward()
    assert math.isfinite(loss.item())
    assert torch.isfinite(log_q.grad).all()
    assert (log_q.grad >= -0.5 - 1e-6).all()  # a correction of one and no more


def test_memory_forgets(generator):
    """With memory K and batches of m, what is older has the share (1 - β) of the step before."""
    old, new = torch.tensor([[0.9, 0.1]]), torch.tensor([[0.1, 0.9]])
    target, short = torch.tensor([[0.5, 0.5]]), torch.tensor([0])
    matching = Streaming(1, 2, memory=4.0)
    for _ in range(50):
        matching(old.log(), short, target)
    matching(new.log(), short, target)
    torch.testing.assert_close(matching.induced, 0.8 * old + 0.2 * new, rtol=1e-4, atol=1e-5)


def test_sample_weight_two_is_the_row_twice(generator):
    q = random_probabilities(3, 4, generator=generator, dtype=torch.float32)
    target, short = random_probabilities(3, 4, generator=generator, dtype=torch.float32), torch.tensor([0, 0, 1])
    weighted, twice = Streaming(2, 4, 5.0), Streaming(2, 4, 5.0)
    rows = torch.tensor([0, 0, 1])
    a, b = q.log().requires_grad_(), q.log().requires_grad_()
    for _ in range(3):
        loss = weighted(a, short, target, torch.tensor([2.0, 1.0, 0.0]))
        again = twice(b[rows], short[rows], target[rows])
    torch.testing.assert_close(loss, again)
    torch.testing.assert_close(weighted.induced, twice.induced)
    torch.testing.assert_close(weighted.count, twice.count)
    loss.backward()
    again.backward()
    torch.testing.assert_close(a.grad, b.grad)


def test_a_refused_batch_changes_nothing():
    matching = Streaming(2, 2, 5.0)
    log_q, short = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([0])
    target = torch.tensor([[0.3, 0.7]])
    bad = [
        (log_q, short, target * 2, None),
        (log_q, short, target, torch.tensor([-1.0])),
        (log_q, short, target, torch.tensor([math.nan])),
        (log_q + 1, short, target, None),
        (log_q, torch.tensor([2]), target, None),
        (log_q, torch.tensor([0, 0]), target, None),
    ]
    for given in bad:
        with pytest.raises(ValueError, match=r"must"):
            matching(*given)
        assert matching.count.sum() == 0
        assert matching.induced.sum() == 0


@pytest.mark.parametrize("code", [2, -1])
def test_a_code_outside_is_refused(code):
    with pytest.raises(ValueError, match=f"short must be codes 0 to 1, got {code} to {code}"):
        Streaming(2, 2, 5.0)(torch.tensor([[0.5, 0.5]]).log(), torch.tensor([code]), torch.tensor([[0.5, 0.5]]))


def test_an_unseen_short_context_has_no_induced_model():
    matching = Streaming(2, 2, 5.0)
    matching(torch.tensor([[0.5, 0.5]]).log(), torch.tensor([0]), torch.tensor([[0.5, 0.5]]))
    with pytest.raises(ValueError, match="short context 1 has had no prediction yet"):
        matching.log_induced(torch.tensor([0, 1]))


def test_the_state_continues_in_a_new_one():
    problem = Problem(dtype=torch.float32)
    first, second = Streaming(3, 4, 5.0), Streaming(3, 4, 5.0)
    first(problem.all(), problem.short, problem.target)
    second.load_state_dict(first.state_dict())
    a, b = (matching(problem.all() * 1.0, problem.short, problem.target) for matching in (first, second))
    assert a == b
    assert torch.equal(first.induced, second.induced)


def test_half_precision_predictions_are_averaged_in_float32(generator):
    log_q = torch.log_softmax(torch.randn(64, 5, generator=generator), -1).bfloat16()
    target = random_probabilities(64, 5, generator=generator, dtype=torch.float32)
    matching = Streaming(1, 5, math.inf)
    loss = matching(log_q, torch.zeros(64, dtype=torch.int64), target)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(matching.induced[0], log_q.float().exp().mean(0))


@pytest.mark.parametrize("bad", [float("nan"), 5.0])
def test_a_bad_row_is_refused_before_anything_is_kept(bad):
    matching = Streaming(3, 2, memory=10.0)
    log_q = torch.full((3, 2), 0.5).log()
    matching(log_q, torch.tensor([0, 1, 2]), log_q.exp())
    before = {name: value.clone() for name, value in matching.state_dict().items()}
    worse = log_q.clone()
    worse[2, 0] = bad
    with pytest.raises(ValueError, match="log-probabilities in every row; those of short context 2"):
        matching(worse, torch.tensor([0, 1, 2]), log_q.exp())
    for name, value in matching.state_dict().items():
        assert torch.equal(value, before[name])


def test_another_number_of_classes_is_refused():
    log_q = torch.full((1, 3), 1 / 3).log()
    with pytest.raises(ValueError, match=r"log_q must be \[n, 2\], got shape \(1, 3\)"):
        Streaming(3, 2, memory=10.0)(log_q, torch.tensor([0]), log_q.exp())


def test_a_second_differentiation_is_refused():
    log_q = torch.full((1, 2), 0.5).log().requires_grad_()
    loss = Streaming(1, 2, memory=10.0)(log_q, torch.tensor([0]), log_q.detach().exp())
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="differentiated already"):
        loss.backward()
