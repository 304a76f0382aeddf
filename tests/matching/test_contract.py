"""What every matching must do; the list at the top fails where one is missing."""

import math

import numpy as np
import pytest
import torch

import imm.matching
from imm.inducers import Kernel, Multiset
from imm.matching import Exact, Sampled, Serialized, Streaming
from imm.targets import Table
from tests.problems import Problem

ROWS = torch.arange(9)


def exact(problem, target, **more):
    return Exact(target, Multiset(problem.short), problem.predict, **more)


def sampled(problem, target, **more):
    return Sampled(target, Multiset(problem.short), problem.predict, None, **more)


def sampled_at_once(problem, target, **more):
    return Sampled(target, Multiset(problem.short), problem.predict, None, 100, **more)


def serialized(problem, target, **more):
    return Serialized(target, Multiset(problem.short), problem.predict, 1, **more)


def streaming(problem, target, **more):
    return Streaming(target, Multiset(problem.short), math.inf, math.inf, dtype=torch.float64, **more)


MAKE = {
    "Exact": [exact],
    "Sampled": [sampled, sampled_at_once],
    "Serialized": [serialized],
    "Streaming": [streaming],
}
each = pytest.mark.parametrize("make", [make for makes in MAKE.values() for make in makes])


def table(problem):
    return Table.from_tensor(problem.table)


def call(matching, problem, rows=ROWS, weight=None):
    return matching(problem.logits(rows), problem.short[rows], rows, weight)


@each
class TestMatching:
    def test_risk_and_gradient_are_those_of_the_definition(self, make, seed):
        problem = Problem(seed)
        matching = make(problem, table(problem))
        definition = problem.risk(Multiset(problem.short).every(problem.short))
        expected = problem.gradient(lambda: definition)
        loss = call(matching, problem)
        assert loss.shape == ()
        torch.testing.assert_close(loss, definition, rtol=1e-6, atol=1e-6)  # weights of 1/3 are float32
        torch.testing.assert_close(problem.gradient(lambda: loss), expected, rtol=1e-6, atol=1e-7)
        assert expected.abs().max() > 1e-2

    @pytest.mark.parametrize("kind", ["function", "rows", "rows of a repeated context differ"])
    def test_every_kind_of_target_gives_the_same(self, make, kind):
        problem = Problem()
        rows = problem.target.clone()
        if kind == "rows of a repeated context differ":  # the risk is linear in the target: what counts is their mean
            same = (problem.short == problem.short[0]).nonzero()[:, 0]
            rows[same[0]] += torch.tensor([0.01, -0.01, 0.0, 0.0])
            rows[same[1]] -= torch.tensor([0.01, -0.01, 0.0, 0.0])
        given = (lambda short: problem.table[short]) if kind == "function" else rows
        one, other = (call(make(problem, target), problem) for target in (table(problem), given))
        torch.testing.assert_close(one, other)
        torch.testing.assert_close(problem.gradient(lambda: one), problem.gradient(lambda: other))

    def test_leading_dimensions_are_free(self, make):
        problem = Problem()
        flat = call(make(problem, table(problem)), problem)
        rows = ROWS.view(3, 3)
        shaped = make(problem, table(problem))(problem.logits(ROWS).view(3, 3, 4), problem.short.view(3, 3), rows)
        torch.testing.assert_close(shaped, flat)
        torch.testing.assert_close(problem.gradient(lambda: shaped), problem.gradient(lambda: flat))

    def test_log_probabilities_are_logits_too(self, make):
        problem = Problem()
        plain = call(make(problem, table(problem)), problem)
        again = make(problem, table(problem))(torch.log_softmax(problem.logits(ROWS), -1), problem.short, ROWS)
        torch.testing.assert_close(again, plain)
        torch.testing.assert_close(problem.gradient(lambda: again), problem.gradient(lambda: plain))

    def test_it_has_no_parameters_and_no_data_in_its_state(self, make):
        problem = Problem()
        matching = make(problem, table(problem))
        assert list(matching.parameters()) == []
        assert not any("target" in name or "inducer" in name for name in matching.state_dict())

    def test_in_evaluation_mode_nothing_moves(self, make):
        problem = Problem()
        matching = make(problem, table(problem))
        call(matching, problem)
        before = {name: value.clone() for name, value in matching.state_dict().items()}
        matching.eval()
        first, second = call(matching, problem), call(matching, problem)
        assert first == second
        assert all(torch.equal(value, before[name]) for name, value in matching.state_dict().items())

    def test_sample_weight_two_is_the_row_twice(self, make):
        """With every short context's rows weighted alike: inducing counts each row of the data once."""
        problem = Problem()
        weight = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)[problem.short]
        weighted = call(make(problem, table(problem)), problem, weight=weight)
        twice = call(make(problem, table(problem)), problem, torch.repeat_interleave(ROWS, weight.long()))
        torch.testing.assert_close(weighted, twice)
        torch.testing.assert_close(
            problem.gradient(lambda: weighted), problem.gradient(lambda: twice), rtol=1e-6, atol=1e-7
        )

    def test_weights_of_zero_leave_rows_out(self, make):
        problem = Problem()
        weight = (problem.short != 1).double()
        some = call(make(problem, table(problem)), problem, weight=weight)
        left = call(make(problem, table(problem)), problem, ROWS[problem.short != 1])
        torch.testing.assert_close(some, left)
        torch.testing.assert_close(problem.gradient(lambda: some), problem.gradient(lambda: left))

    def test_losses_add_up_before_they_are_differentiated(self, make):
        problem = Problem()
        matching = make(problem, table(problem))
        alone = problem.gradient(lambda: call(matching.eval(), problem))
        both = problem.gradient(lambda: 2 * call(matching, problem) + 0.5 * call(matching, problem))
        torch.testing.assert_close(both, 2.5 * alone)

    def test_autocast_does_not_lower_the_precision(self, make):
        """With a model that has no matrix product: what autocast does to the model is not ours."""
        problem = Problem(dtype=torch.float32)
        problem.model = torch.nn.Embedding.from_pretrained(problem.logits(ROWS).detach(), freeze=False)
        problem.predict = lambda short, index: problem.model(index)
        found = []
        for enabled in (False, True):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
                loss = call(make(problem, table(problem)), problem)
                found.append((loss.detach(), problem.gradient(lambda loss=loss: loss)))
        assert found[1][0].dtype == torch.float32
        torch.testing.assert_close(found[1][0], found[0][0])
        torch.testing.assert_close(found[1][1], found[0][1])

    def test_without_a_gradient_it_is_the_risk(self, make):
        problem = Problem()
        loss = call(make(problem, table(problem)), problem)
        with torch.no_grad():
            alone = call(make(problem, table(problem)), problem)
        assert not alone.requires_grad
        torch.testing.assert_close(alone, loss.detach())

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            (lambda p: p * 1.1, "row 0 sums to 1.1"),
            (lambda p: p * math.nan, "row 0 has NaN"),
            (lambda p: p - torch.tensor([1.0, -1.0, 0.0, 0.0]), "negative value"),
            (lambda p: torch.full((len(p), 5), 0.2, dtype=p.dtype), "same shape"),
            (lambda p: p[:2], "same shape"),
            (lambda p: p.tolist(), "target must return a tensor"),
        ],
    )
    def test_a_bad_target_is_refused(self, make, changed, message):
        problem = Problem()
        with pytest.raises((ValueError, TypeError), match=message) as refused:
            call(make(problem, lambda short: changed(problem.table[short])), problem)
        assert "\n" not in str(refused.value)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"short": torch.zeros(4, dtype=torch.long)}, r"short must be \[9\] as the rows of logits are, got shape"),
            ({"logits": torch.zeros(0, 4), "short": torch.zeros(0, dtype=torch.long)}, "the batch is empty"),
            ({"logits": torch.zeros(9)}, r"logits must be \[..., classes\], got shape \(9,\)"),
            ({"logits": torch.zeros(9, 4).long()}, "logits must be floating point, got torch.int64"),
            ({"rows": ROWS[:2]}, r"rows must be \[9\], got shape \(2,\)"),
            ({"sample_weight": torch.ones(4)}, r"sample_weight must be \[9\], got shape \(4,\)"),
            ({"sample_weight": -torch.ones(9)}, "sample_weight must be finite, not negative"),
            ({"sample_weight": torch.zeros(9)}, "not all zero"),
            ({"logits": torch.full((9, 4), math.nan)}, "logits have NaN in row 0"),
        ],
    )
    def test_a_bad_batch_is_refused(self, make, given, message):
        problem = Problem()
        batch = {"logits": problem.logits(ROWS), "short": problem.short, "rows": ROWS, **given}
        with pytest.raises(ValueError, match=message) as refused:
            make(problem, table(problem))(**batch)
        assert "\n" not in str(refused.value)

    def test_values_are_checked_at_the_first_call_or_at_each(self, make):
        problem = Problem()
        factor = [1.0]

        def target(short):
            return problem.table[short] * factor[0]

        trusting, careful = make(problem, target), make(problem, target, check=True)
        for matching in (trusting, careful):
            call(matching, problem)
        factor[0] = 1.1
        call(trusting, problem)
        with pytest.raises(ValueError, match=r"sums to 1\.1"):
            call(careful, problem)

    def test_nan_in_the_model_is_nan_in_the_loss(self, make):
        problem = Problem()
        matching = make(problem, table(problem))
        call(matching, problem)
        with torch.no_grad():
            problem.model.weight[0, 0] = math.nan
        assert math.isnan(call(matching, problem).item()) or isinstance(matching, Serialized)

    def test_a_target_of_rows_needs_rows(self, make):
        problem = Problem()
        with pytest.raises(ValueError, match="rows"):
            make(problem, problem.target)(problem.logits(ROWS), problem.short)


@pytest.mark.parametrize("make", [exact, sampled])
@pytest.mark.parametrize(
    "kind",
    [
        lambda short: short.numpy(),
        lambda short: [f"word {code}" for code in short.tolist()],
        lambda short: torch.stack([short, -short], 1),
        lambda short: torch.stack([short, -short], 1).numpy(),
        lambda short: np.array([f"word {code}" for code in short.tolist()]),
    ],
    ids=["array", "strings", "rows", "array of rows", "array of strings"],
)
def test_every_form_of_short_context_gives_the_same(make, kind):
    problem = Problem()
    expected = call(make(problem, problem.target), problem)
    short, own = kind(problem.short), problem.short
    problem.short, predict = short, problem.predict
    problem.predict = lambda _, index: predict(own[index], index)
    found = make(problem, problem.target)(None, short, ROWS)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p, m: Sampled(p.target, m, p.predict, 0), "n_contexts must be a whole number of at least 1, got 0"),
        (lambda p, m: Sampled(p.target, m, p.predict, 2, 0), "contexts_at_once must be a whole number of at least 1"),
        (lambda p, m: Serialized(p.target, m, p.predict, 0), "refresh_every must be a whole number of at least 1"),
        (lambda p, m: Streaming(p.target, m, memory=-1.0), "memory must be finite and not negative, got -1.0"),
        (lambda p, m: Streaming(p.target, m, lifetime=math.nan), "lifetime must be finite and not negative, got nan"),
        (lambda p, m: Streaming(p.target, m, n_held=0), "n_held must be a whole number of at least 1, got 0"),
        (lambda p, m: Streaming(p.target), "the target does not say how many short contexts there are"),
        (lambda p, m: Exact(p.target * 2, m, p.predict), "target must be probabilities; row 0 sums to 2"),
    ],
)
def test_bad_settings_are_refused(make, message):
    problem = Problem()
    with pytest.raises(ValueError, match=message):
        make(problem, Multiset(problem.short))


def test_a_target_of_another_kind_is_refused():
    problem = Problem()
    with pytest.raises(TypeError, match="target must be a target, a function or a tensor, got list"):
        exact(problem, [[0.5, 0.5]])


@pytest.mark.parametrize("make", [Exact, Sampled, Serialized])
def test_a_kernel_that_is_reverse_kd_says_so(make, generator):
    incomes, target = 30_000 + 10_000 * torch.randn(100, generator=generator), torch.full((100, 2), 0.5)
    with pytest.warns(UserWarning, match="has 1 effective neighbours; with fewer than two, matching is reverse KD"):
        make(target, Kernel(incomes, alpha=1.0), lambda short, index: torch.zeros(len(index), 2))
    make(target, Kernel(incomes), lambda short, index: torch.zeros(len(index), 2))


def test_everything_exported_stands_in_the_list():
    assert set(MAKE) == set(imm.matching.__all__) - {"Matching", "Predict", "clipped_apart"}
