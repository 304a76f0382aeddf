import pytest
import torch

from imm.baselines import reverse_kd
from imm.inducers import Belief, Kernel, Multiset
from imm.matching import Exact, Serialized
from tests import reference
from tests.problems import Problem

ROWS = torch.arange(9)


def serialized(problem, refresh_every, inducer=None, target=None, **settings):
    inducer = Multiset(problem.short) if inducer is None else inducer
    return Serialized(problem.target if target is None else target, inducer, problem.predict, refresh_every, **settings)


def call(matching, problem, rows=ROWS):
    return matching(problem.logits(rows), problem.short[rows], rows)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("refresh_every", [1, 7])
def test_a_hundred_steps_are_the_references(seed, dtype, refresh_every):
    """The same trajectory as Alg. serialized-imm in plain loops, Q† by row."""
    fast, slow = Problem(seed, dtype), Problem(seed, dtype)
    matching = serialized(fast, refresh_every)
    twin = reference.Serialized(slow.short.tolist(), refresh_every)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(100):
        rows = torch.randperm(9, generator=generator)[:4]
        loss = call(matching, fast, rows)
        loss.backward()

        factor, induced = twin.step(torch.softmax(slow.logits(ROWS), -1).tolist(), rows.tolist())
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


@pytest.mark.parametrize("rows_at_once", [1, 4, 1024])
def test_a_fresh_snapshot_over_all_rows_has_the_exact_gradient(seed, rows_at_once):
    problem = Problem(seed)
    loss = call(serialized(problem, 1, rows_at_once=rows_at_once), problem)
    exact = Exact(problem.target, Multiset(problem.short), problem.predict)(None, problem.short, ROWS)
    torch.testing.assert_close(loss, exact, rtol=1e-6, atol=1e-6)  # weights of 1/3 are float32
    torch.testing.assert_close(problem.gradient(lambda: loss), problem.gradient(lambda: exact), rtol=1e-6, atol=1e-7)


def test_without_repeats_it_is_reverse_kd(seed):
    """Each short context once: the correction is one."""
    problem = Problem(seed)
    own = problem.short
    matching = Serialized(problem.target, Multiset(ROWS), lambda short, index: problem.predict(own[short], index), 1)
    found = problem.gradient(lambda: matching(problem.logits(ROWS), ROWS, ROWS))
    expected = problem.gradient(lambda: reverse_kd(problem.log_q(ROWS, ROWS), problem.target))
    torch.testing.assert_close(found, expected)


def test_the_correction_is_of_the_old_model_alone():
    """Not the current Q over a stale induced model, which the paper calls unstable."""
    problem = Problem()
    matching = serialized(problem, 10)
    call(matching, problem)
    q = torch.softmax(problem.logits(ROWS), -1).detach()
    induced = torch.stack([q[problem.short == code].mean(0) for code in problem.short])
    with torch.no_grad():
        problem.model.weight += 1.0 * torch.randn(4, 6, generator=torch.Generator().manual_seed(1))
    expected = problem.gradient(lambda: -(problem.target * q / induced * problem.log_q(ROWS, ROWS)).sum(1).mean())
    torch.testing.assert_close(problem.gradient(lambda: call(matching, problem)), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("rows_at_once", [1, 20, 1024])
def test_a_kernel_induces_the_snapshot(rows_at_once):
    problem = Problem()
    reals = problem.extended[:, 0].clone()
    own = dict(zip(reals.tolist(), problem.short, strict=True))

    def predict(short, index):
        return problem.predict(torch.stack([own[value] for value in short.tolist()]), index)

    kernel = Kernel(reals, alpha=1.0)
    matching = Serialized(problem.target, kernel, predict, 1, rows_at_once)
    loss = matching(problem.logits(ROWS), reals, ROWS)
    torch.testing.assert_close(loss, Exact(problem.target, kernel, predict)(None, reals, ROWS))


def test_it_refreshes_itself_every_r_calls_in_training_mode():
    problem, asked = Problem(), []

    def predict(short, index):
        asked.append(len(index))
        return problem.predict(short, index)

    matching = Serialized(problem.target, Multiset(problem.short), predict, 3)
    seen = []
    for _ in range(7):
        call(matching, problem)
        seen.append(len(asked))
    assert seen == [1, 1, 1, 2, 2, 2, 3]
    matching.eval()
    for _ in range(7):
        call(matching, problem)
    assert len(asked) == 3


def test_the_state_continues_in_a_new_one():
    problem = Problem()
    first = serialized(problem, 3)
    call(first, problem)
    second = serialized(problem, 3)
    second.load_state_dict(first.state_dict())
    with torch.no_grad():
        problem.model.weight += 1
    rows = torch.tensor([3, 1])
    losses = [[call(matching, problem, rows) for _ in range(4)] for matching in (first, second)]
    assert losses[0] == losses[1]
    assert losses[0][1] != losses[0][2]  # the fourth call of all refreshes
    before = second.stale.clone()
    first.stale += 1
    assert torch.equal(second.stale, before), "the state was shared, not copied"


def test_what_it_needs_is_named():
    problem = Problem()
    matching = serialized(problem, 1)
    with pytest.raises(ValueError, match="serialized IMM needs the batch's rows: which rows of the training data"):
        matching(problem.logits(ROWS), problem.short)
    for rows in ([0, 1, 9], [-1, 0, 1]):
        given = torch.tensor(rows)
        with pytest.raises(ValueError, match=rf"rows must be training rows 0 to 8, got {min(rows)} to {max(rows)}"):
            matching(problem.logits(ROWS[:3]), problem.short[:3], given)
    with pytest.raises(ValueError, match="needs an inducer over rows of the training data, got Belief"):
        serialized(problem, 1, Belief(torch.full((3, 9), 1 / 9)))
