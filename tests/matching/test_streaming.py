import math

import pytest
import torch

from imm import functional
from imm.inducers import Kernel, Multiset
from imm.matching import Exact, Streaming
from imm.targets import Table
from tests import reference
from tests.problems import Problem, random_probabilities

ROWS = torch.arange(9)


def streaming(problem, memory=1000.0, lifetime=30.0, **settings):
    return Streaming(Table.from_tensor(problem.table), None, memory, lifetime, **settings)


def uniform(n_short=1, classes=2):
    return Table.from_tensor(torch.full((n_short, classes), 1 / classes))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("memory", "lifetime"), [(0.0, math.inf), (5.0, math.inf), (math.inf, math.inf), (math.inf, 2.0), (5.0, 0.0)]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_hundred_steps_are_the_references(seed, dtype, memory, lifetime, weighted):
    fast, slow = Problem(seed, dtype), Problem(seed, dtype)
    matching, twin = streaming(fast, memory, lifetime), reference.Streaming(memory, lifetime)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(100):
        rows = torch.randint(9, (5,), generator=generator)
        weight = torch.rand(5, generator=generator, dtype=dtype) + 0.1 if weighted else None
        short, target = fast.short[rows], fast.target[rows]
        loss = matching(fast.logits(rows), short, sample_weight=weight)
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
        torch.testing.assert_close(matching.table.induced[x], torch.tensor(mean), rtol=1e-4, atol=1e-5)
        assert matching.table.count[x].item() == pytest.approx(twin.count[x], rel=1e-4)


def test_a_large_batch_is_matched_row_by_row(generator):
    """Rows are worked on some at a time: each must have its own target and correction."""
    log_q = random_probabilities(70, 4, generator=generator).log().requires_grad_()
    short = torch.randint(3, (70,), generator=generator)
    table = random_probabilities(3, 4, generator=generator)
    Streaming(Table.from_tensor(table), memory=0.0)(log_q, short).backward()
    factor, _ = reference.Streaming(0.0, math.inf).step(log_q.detach().exp().tolist(), short.tolist(), None)
    direction = table[short] * torch.tensor(factor, dtype=torch.float64)
    expected = (log_q.detach().exp() * direction.sum(-1, keepdim=True) - direction) / 70
    torch.testing.assert_close(log_q.grad, expected, rtol=1e-4, atol=1e-6)


def test_with_infinite_memory_and_a_frozen_model_it_is_exact(seed):
    """After one pass in batches Q̂ is the induced model; a second, full-batch pass has the exact gradient."""
    problem = Problem(seed)
    matching = streaming(problem, math.inf, math.inf)
    for rows in ROWS.split(2):
        matching(problem.logits(rows), problem.short[rows])
    found = matching(problem.logits(ROWS), problem.short)
    exact = Exact(Table.from_tensor(problem.table), Multiset(problem.short), problem.predict)(None, problem.short)
    torch.testing.assert_close(found, exact, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(problem.gradient(lambda: found), problem.gradient(lambda: exact), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("memory", [0.0, 3.0, 100.0, math.inf])
def test_the_correction_is_bounded(memory):
    """At most m / β: also for a prediction that all earlier ones made impossible."""
    matching = Streaming(uniform(), memory=memory, lifetime=math.inf)
    for _ in range(20):
        matching(torch.tensor([[1e-30, 1.0]]).log(), torch.tensor([0]))
    count, m = matching.table.count[0].item(), 3
    log_q = torch.tensor([[0.9, 0.1], [1e-30, 1.0], [1e-30, 1.0]]).log().requires_grad_()
    matching(log_q, torch.zeros(m, dtype=torch.int64)).backward()
    beta = max(m / (count + m), m / (m + memory))
    # The gradient of a row is (q Σ d - d) / m with d = ½ · factor: of both classes' equations one follows the factors.
    q, induced = torch.tensor([0.9, 0.1]), matching.table.induced[0]
    factor = q / induced
    assert factor.max() <= m / beta * (1 + 1e-5)
    assert factor[0].item() == pytest.approx(m / beta, rel=1e-4)  # the bound is reached
    direction = 0.5 * factor
    torch.testing.assert_close(log_q.grad[0], (q * direction.sum() - direction) / m, rtol=1e-4, atol=1e-5)


def test_a_prediction_too_small_for_float32_keeps_the_correction_finite():
    logits = torch.tensor([[-120.0, 0.0]], requires_grad=True)
    loss = Streaming(uniform(), memory=math.inf)(logits, torch.tensor([0]))
    loss.backward()
    assert math.isfinite(loss.item())
    assert torch.isfinite(logits.grad).all()
    assert logits.grad.abs().max() <= 0.5 + 1e-6  # a correction of one and no more


def test_short_contexts_of_any_kind_are_numbered_by_a_multiset():
    problem = Problem()
    words = [f"word {code}" for code in problem.short.tolist()]
    named = Table({f"word {code}": row for code, row in enumerate(problem.table)}, classes=range(4))
    found = Streaming(named, Multiset(words))(problem.logits(ROWS).float(), words)
    plain = Streaming(Table.from_tensor(problem.table.float()))(problem.logits(ROWS).float(), problem.short)
    torch.testing.assert_close(found, plain)


def test_a_batch_that_is_refused_changes_nothing():
    problem = Problem()
    matching = streaming(problem, check=True)
    good = problem.logits(ROWS), problem.short
    matching(*good)
    before = {name: value.clone() for name, value in matching.state_dict().items()}
    for logits, short in (
        (good[0], good[1] + 1),
        (good[0], good[1] - 1),
        (good[0], good[1].double()),
        (good[0] * math.nan, good[1]),
        (torch.cat([good[0], good[0][:, :1]], 1), good[1]),
    ):
        with pytest.raises(ValueError, match=r"must|have NaN|has 4 classes"):
            matching(logits, short)
        assert all(torch.equal(value, before[name]) for name, value in matching.state_dict().items())


@pytest.mark.parametrize(("short", "given"), [(3, "3 to 3"), (-1, "-1 to -1")])
def test_a_code_outside_is_refused(short, given):
    problem = Problem()
    with pytest.raises(ValueError, match=f"short must be codes 0 to 2, got {given}"):
        streaming(problem)(problem.logits(ROWS[:1]), torch.tensor([short]))


def test_nan_does_not_stay_in_the_table():
    problem = Problem()
    matching = streaming(problem)
    matching(problem.logits(ROWS), problem.short)
    before = matching.table.induced.clone()
    bad = problem.logits(ROWS).detach().clone()
    bad[problem.short == 1] = math.nan
    assert math.isnan(matching(bad, problem.short).item())
    assert torch.equal(matching.table.induced[1], before[1])
    assert matching.table.induced[:3].isfinite().all()
    assert not torch.equal(matching.table.induced[0], before[0]) or matching.table.count[0] > 3


def test_the_state_continues_in_a_new_one():
    problem = Problem(dtype=torch.float32)
    first, second = streaming(problem, 5.0), streaming(problem, 5.0)
    first(problem.logits(ROWS), problem.short)
    second.load_state_dict(first.state_dict())
    a, b = (matching(problem.logits(ROWS) * 1.0, problem.short) for matching in (first, second))
    assert a == b
    assert torch.equal(first.table.induced, second.table.induced)


def test_half_precision_predictions_are_averaged_in_float32(generator):
    logits = torch.randn(64, 5, generator=generator).bfloat16()
    matching = Streaming(uniform(1, 5), memory=math.inf, lifetime=math.inf)
    loss = matching(logits, torch.zeros(64, dtype=torch.int64))
    assert loss.dtype == torch.float32
    torch.testing.assert_close(matching.table.induced[0], torch.softmax(logits.float(), -1).mean(0))


def test_a_second_differentiation_is_refused():
    logits = torch.zeros(1, 2, requires_grad=True)
    loss = Streaming(uniform())(logits, torch.tensor([0]))
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="differentiated already"):
        loss.backward()


def test_short_contexts_that_do_not_repeat_are_refused():
    problem = Problem()
    with pytest.raises(TypeError, match=r"streaming needs a Multiset, .* got Kernel: .* take Exact or Sampled"):
        Streaming(problem.target, Kernel(torch.randn(50)))
    with pytest.raises(ValueError, match="streaming needs the batch's logits, got None"):
        streaming(problem)(None, problem.short)


@pytest.mark.parametrize("memory", [5.0, math.inf])
def test_a_bfloat16_table_is_close_to_a_float32_one(generator, memory):
    target = Table.from_tensor(random_probabilities(3, 6, generator=generator, dtype=torch.float32))
    coarse, fine = Streaming(target, memory=memory, dtype=torch.bfloat16), Streaming(target, memory=memory)
    for _ in range(40):
        logits = torch.randn(9, 6, generator=generator)
        short = torch.randint(3, (9,), generator=generator)
        leaves = [logits.clone().requires_grad_() for _ in range(2)]
        losses = [matching(leaf, short) for matching, leaf in zip((coarse, fine), leaves, strict=True)]
        for loss in losses:
            loss.backward()
        torch.testing.assert_close(losses[0], losses[1], rtol=0.01, atol=0.01)
        torch.testing.assert_close(leaves[0].grad, leaves[1].grad, rtol=0.05, atol=1e-3)
    assert coarse.table.induced.element_size() == 2
    torch.testing.assert_close(coarse.table.induced[:3].float(), fine.table.induced[:3], rtol=0.03, atol=1e-3)


class TestBounded:
    """With ``n_held`` only the first codes are remembered."""

    def batches(self, generator):
        for _ in range(6):
            yield torch.randn(8, 5, generator=generator), torch.randint(4, (8,), generator=generator)

    def gradients(self, matching, batches):
        found = []
        for logits, short in batches:
            leaf = logits.clone().requires_grad_()
            matching(leaf, short).backward()
            found.append((leaf.grad, short))
        return found

    def test_the_others_have_memory_zero(self, generator):
        batches, target = list(self.batches(generator)), uniform(4, 5)
        bounded = self.gradients(Streaming(target, memory=7.0, n_held=2), batches)
        whole = self.gradients(Streaming(target, memory=7.0), batches)
        none = self.gradients(Streaming(target, memory=0.0), batches)
        for (found, short), (remembered, _), (forgot, _) in zip(bounded, whole, none, strict=True):
            torch.testing.assert_close(found[short < 2], remembered[short < 2])
            torch.testing.assert_close(found[short >= 2], forgot[short >= 2])
        assert not torch.allclose(whole[-1][0], none[-1][0], atol=1e-3)

    def test_the_table_has_as_many_rows_and_one_of_scratch(self, generator):
        matching = Streaming(uniform(4, 5), memory=7.0, n_held=2)
        self.gradients(matching, self.batches(generator))
        assert matching.table.induced.shape == (3, 5)
        assert Streaming(uniform(4, 5), n_held=9).table.n_held == 4

    def test_a_batch_without_any_that_is_held(self):
        matching = Streaming(uniform(4, 5), memory=7.0, n_held=2)
        assert math.isfinite(matching(torch.randn(3, 5), torch.tensor([3, 2, 3])).item())
        assert matching.table.count[:2].tolist() == [0, 0]
