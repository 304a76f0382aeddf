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


def test_a_large_batch_is_matched_row_by_row(generator):
    """Targets are taken some rows at a time: each row must have its own."""
    log_q = random_probabilities(70, 4, generator=generator).log().requires_grad_()
    short, target = torch.randint(3, (70,), generator=generator), random_probabilities(70, 4, generator=generator)
    Streaming(3, 4, 0.0)(log_q, short, target).backward()
    factor, _ = reference.Streaming(0.0, math.inf).step(log_q.detach().exp().tolist(), short.tolist(), None)
    expected = -target * torch.tensor(factor, dtype=torch.float64) / 70
    torch.testing.assert_close(log_q.grad, expected, rtol=1e-4, atol=1e-6)


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


class TestBounded:
    """With ``n_held`` only the first codes are remembered."""

    def batches(self, generator):
        for _ in range(6):
            q = random_probabilities(8, 5, generator=generator, dtype=torch.float32)
            target = random_probabilities(8, 5, generator=generator, dtype=torch.float32)
            yield q.log(), torch.randint(4, (8,), generator=generator), target

    def directions(self, matching, batches):
        found = []
        for log_q, short, target in batches:
            leaf = log_q.clone().requires_grad_()
            loss = matching(leaf, short, target)
            loss.backward()
            found.append((loss.detach(), leaf.grad, short))
        return found

    def test_the_others_have_memory_zero(self, generator):
        batches = list(self.batches(generator))
        bounded = self.directions(Streaming(4, 5, 7.0, n_held=2), batches)
        whole = self.directions(Streaming(4, 5, 7.0), batches)
        none = self.directions(Streaming(4, 5, 0.0), batches)
        for (_, found, short), (_, remembered, _), (_, forgot, _) in zip(bounded, whole, none, strict=True):
            torch.testing.assert_close(found[short < 2], remembered[short < 2])
            torch.testing.assert_close(found[short >= 2], forgot[short >= 2])
        assert not torch.allclose(whole[-1][1], none[-1][1], atol=1e-3)

    def test_the_table_has_as_many_rows(self, generator):
        matching = Streaming(4, 5, 7.0, n_held=2)
        self.directions(matching, self.batches(generator))
        assert matching.induced.shape == (2, 5)
        assert matching.count.shape == (2,)
        assert Streaming(4, 5, 7.0, n_held=9).induced.shape == (4, 5)
        with pytest.raises(ValueError, match="n_held must be a whole number of at least 1, got 0"):
            Streaming(4, 5, 7.0, n_held=0)

    def test_a_batch_without_any_that_is_held(self, generator):
        matching = Streaming(4, 5, 7.0, n_held=2)
        q = random_probabilities(3, 5, generator=generator, dtype=torch.float32)
        loss = matching(q.log(), torch.tensor([3, 2, 3]), q)
        assert math.isfinite(loss.item())
        assert matching.count.tolist() == [0, 0]
        assert matching.log_induced(torch.empty(0, dtype=torch.int64)).shape == (0, 5)

    def test_an_induced_model_that_is_not_held(self, generator):
        matching = Streaming(4, 5, 7.0, n_held=2)
        self.directions(matching, self.batches(generator))
        with pytest.raises(ValueError, match="short context 2 is not one of the 2 that are held"):
            matching.log_induced(torch.tensor([0, 2]))

    def test_codes_beyond_all_are_still_refused(self):
        with pytest.raises(ValueError, match="short must be codes 0 to 3, got 4 to 4"):
            Streaming(4, 2, 7.0, n_held=2)(
                torch.tensor([[0.5, 0.5]]).log(), torch.tensor([4]), torch.tensor([[0.5, 0.5]])
            )


@pytest.mark.parametrize("memory", [5.0, math.inf])
def test_a_bfloat16_table_is_close_to_a_float32_one(generator, memory):
    coarse, fine = Streaming(3, 6, memory, dtype=torch.bfloat16), Streaming(3, 6, memory)
    for _ in range(40):
        q = random_probabilities(9, 6, generator=generator, dtype=torch.float32)
        short = torch.randint(3, (9,), generator=generator)
        leaves = [q.log().requires_grad_() for _ in range(2)]
        losses = [matching(leaf, short, q) for matching, leaf in zip((coarse, fine), leaves, strict=True)]
        for loss in losses:
            loss.backward()
        torch.testing.assert_close(losses[0], losses[1], rtol=0.01, atol=0.01)
        torch.testing.assert_close(leaves[0].grad, leaves[1].grad, rtol=0.05, atol=1e-3)
    assert coarse.induced.dtype == torch.bfloat16
    assert coarse.induced.element_size() == 2
    assert coarse.log_induced(torch.tensor([0])).dtype == torch.float32
    torch.testing.assert_close(coarse.induced.float(), fine.induced, rtol=0.03, atol=1e-3)
    assert coarse.count.tolist() == fine.count.tolist()


def test_what_is_fed_is_induced_as_its_mean(seed):
    problem = Problem(seed, torch.float32)
    matching = Streaming(3, 4, math.inf)
    for rows in torch.arange(9).split(4):
        matching.feed(problem.log_q(rows, rows), problem.short[rows])
    expected = Exact(Multiset(problem.short)).log_induced(problem.log_q, problem.short)
    torch.testing.assert_close(matching.log_induced(problem.short), expected, rtol=1e-5, atol=1e-6)
    assert not matching.induced.requires_grad


def test_feeding_is_what_a_step_does_to_the_table(generator):
    fed, stepped = Streaming(3, 4, 5.0), Streaming(3, 4, 5.0)
    problem = Problem(dtype=torch.float32)
    for _ in range(3):
        fed.feed(problem.all(), problem.short)
        stepped(problem.all(), problem.short, problem.target)
    assert torch.equal(fed.induced, stepped.induced)
    assert torch.equal(fed.count, stepped.count)


def test_logits_are_not_fed():
    with pytest.raises(ValueError, match="must be log-probabilities"):
        Streaming(1, 2, 5.0).feed(torch.tensor([[1.0, 2.0]]), torch.tensor([0]))
