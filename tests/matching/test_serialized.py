import pytest
import torch

from imm.baselines import reverse_kd
from imm.inducers import Kernel, Multiset
from imm.matching import Exact, Serialized
from tests import reference
from tests.problems import Problem


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("refresh_every", [1, 7])
def test_a_hundred_steps_are_the_references(seed, dtype, refresh_every):
    """The same trajectory as Alg. serialized-imm in plain loops."""
    fast, slow = Problem(seed, dtype), Problem(seed, dtype)
    matching = Serialized(Multiset(fast.short), refresh_every)
    twin = reference.Serialized(slow.short.tolist(), refresh_every)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(100):
        rows = torch.randperm(9, generator=generator)[:4]
        if matching.due:
            matching.refresh(fast.log_q, fast.short)
        loss = matching(fast.log_q(rows, rows), rows, fast.target[rows])
        loss.backward()

        factor, induced = twin.step(slow.all().exp().tolist(), rows.tolist())
        tampered = -(slow.target[rows] * torch.tensor(factor, dtype=dtype) * slow.log_q(rows, rows)).sum(1).mean()
        tampered.backward()
        assert loss.item() == pytest.approx(reference.risk(induced, slow.target[rows].tolist()), rel=1e-4)
        for problem in (fast, slow):
            with torch.no_grad():
                for parameter in problem.model.parameters():
                    parameter -= 0.3 * parameter.grad
                    parameter.grad = None
    tolerance = 1e-4 if dtype == torch.float32 else 1e-6
    torch.testing.assert_close(fast.model.weight, slow.model.weight, rtol=tolerance, atol=tolerance)
    assert not torch.allclose(fast.model.weight, Problem(seed, dtype).model.weight, atol=0.05)


def test_a_fresh_snapshot_over_all_rows_has_the_exact_gradient(seed):
    problem = Problem(seed)
    multiset = Multiset(problem.short)
    matching = Serialized(multiset, 1)
    matching.refresh(problem.log_q, problem.short)
    rows = torch.arange(9)
    loss = matching(problem.log_q(rows, rows), rows, problem.target)
    exact = Exact(multiset)(problem.log_q, problem.short, problem.target)
    torch.testing.assert_close(loss, exact)
    torch.testing.assert_close(problem.gradient(lambda: loss), problem.gradient(lambda: exact), rtol=1e-8, atol=1e-9)


def test_without_repeats_it_is_reverse_kd(seed):
    """Each short context once: the correction is one."""
    problem = Problem(seed)
    alone = torch.arange(9)
    matching = Serialized(Multiset(alone), 1)
    matching.refresh(problem.log_q, alone)
    loss = problem.gradient(lambda: matching(problem.all(), alone, problem.target))
    torch.testing.assert_close(loss, problem.gradient(lambda: reverse_kd(problem.all(), problem.target)))


def test_a_stale_snapshot_gives_a_stale_correction():
    problem = Problem()
    matching = Serialized(Multiset(problem.short), 10)
    matching.refresh(problem.log_q, problem.short)
    factor = (matching.log_stale - matching.log_induced).exp()
    with torch.no_grad():
        problem.model.weight += 1.0 * torch.randn(4, 6, generator=torch.Generator().manual_seed(1))
    rows = torch.arange(9)
    expected = problem.gradient(lambda: -(problem.target * factor * problem.all()).sum(1).mean())
    found = problem.gradient(lambda: matching(problem.log_q(rows, rows), rows, problem.target))
    torch.testing.assert_close(found, expected)


def test_a_kernel_induces_the_snapshot():
    problem = Problem()
    reals = problem.extended[:, 0]
    matching = Serialized(Kernel(reals), 1)
    matching.refresh(problem.log_q, reals)
    torch.testing.assert_close(matching.log_induced, Exact(Kernel(reals)).log_induced(problem.log_q, reals).detach())
    assert not matching.log_induced.requires_grad


def test_a_refresh_is_due_every_r_steps():
    problem = Problem()
    matching = Serialized(Multiset(problem.short), 3)
    due = []
    for _ in range(7):
        due.append(matching.due)
        if matching.due:
            matching.refresh(problem.log_q, problem.short)
        matching(problem.all(), torch.arange(9), problem.target)
    assert due == [True, False, False, True, False, False, True]


def test_a_step_before_the_first_refresh_is_refused():
    problem = Problem()
    with pytest.raises(RuntimeError, match="call refresh"):
        Serialized(Multiset(problem.short), 3)(problem.all(), torch.arange(9), problem.target)


def test_the_state_continues_in_a_new_one():
    problem = Problem()
    first = Serialized(Multiset(problem.short), 3)
    first.refresh(problem.log_q, problem.short)
    first(problem.all(), torch.arange(9), problem.target)
    second = Serialized(Multiset(problem.short), 3)
    second.load_state_dict(first.state_dict())
    assert not second.due
    with torch.no_grad():
        problem.model.weight += 1
    rows = torch.tensor([3, 1])
    a, b = (matching(problem.log_q(rows, rows), rows, problem.target[rows]) for matching in (first, second))
    assert a == b
    before = second.log_stale.clone()
    first.log_stale += 1
    assert torch.equal(second.log_stale, before), "the state was shared, not copied"


def test_rows_outside_the_training_data_are_refused():
    short = torch.tensor([0, 0, 1])
    log_q = torch.full((3, 2), 0.5).log()
    matching = Serialized(Multiset(short), refresh_every=1)
    matching.refresh(lambda rows, index: log_q[index], short)
    for rows in ([0, 1, 3], [-1, 0, 1]):
        with pytest.raises(ValueError, match=rf"rows must be training rows 0 to 2, got {min(rows)} to {max(rows)}"):
            matching(log_q, torch.tensor(rows), log_q.exp())
