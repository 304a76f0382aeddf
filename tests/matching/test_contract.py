"""What every matching must do. A new one joins ``STEPS``; the last test tells when it is missing there.

A step is one full-batch step on a problem with discrete short contexts, started so that the estimate is exact:
with every context, right after a refresh, or after a pass with the model as it is. It leaves the gradient in
``.grad`` and gives the risk.
"""

import math

import pytest
import torch

import imm.matching
from imm.inducers import Multiset
from imm.matching import Exact, Sampled, Serialized, Streaming
from tests.problems import Problem


def exact(problem, log_q, short, target, sample_weight=None):
    loss = Exact(Multiset(problem.short))(log_q, short, target, sample_weight)
    loss.backward()
    return loss


def sampled(problem, log_q, short, target, sample_weight=None):
    return Sampled(Multiset(problem.short), None).backward(log_q, short, target, 1.0, sample_weight)


def sampled_at_once(problem, log_q, short, target, sample_weight=None):
    return Sampled(Multiset(problem.short), None, chunk=99).backward(log_q, short, target, 1.0, sample_weight)


def serialized(problem, log_q, short, target, sample_weight=None):
    matching = Serialized(Multiset(problem.short), refresh_every=1)
    matching.refresh(problem.log_q, problem.short)
    rows = torch.arange(len(short))
    loss = matching(log_q(rows, rows), rows, target, sample_weight)
    loss.backward()
    return loss


def streaming(problem, log_q, short, target, sample_weight=None):
    matching = Streaming(problem.n_short, 4, memory=math.inf)
    matching(problem.all(), problem.short, problem.target)
    rows = torch.arange(len(short))
    loss = matching(log_q(rows, rows), short, target, sample_weight)
    loss.backward()
    return loss


STEPS = {
    "Exact": [exact],
    "Sampled": [sampled, sampled_at_once],
    "Serialized": [serialized],
    "Streaming": [streaming],
}
each_step = pytest.mark.parametrize("step", [step for steps in STEPS.values() for step in steps])


@each_step
class TestMatching:
    def test_risk_and_gradient_are_those_of_the_definition(self, step, seed):
        problem = Problem(seed)
        definition = problem.risk(Multiset(problem.short).every(problem.short))
        expected = problem.gradient(lambda: definition)
        risk = []
        found = problem.gradient(
            lambda: risk.append(step(problem, problem.log_q, problem.short, problem.target).detach())
        )
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)  # Q̂ and weights of 1/3 are float32
        torch.testing.assert_close(risk[0].double(), definition.detach(), rtol=1e-6, atol=1e-6)
        assert expected.abs().max() > 1e-2

    def test_a_target_that_does_not_sum_to_one_is_refused(self, step):
        self.refuses(step, "row 0 sums to 1.1", target=lambda p: p * 1.1)

    def test_a_negative_target_is_refused(self, step):
        worse = torch.tensor([[1.5, -0.5, 0.0, 0.0]]).double()
        self.refuses(step, "negative value -0.5", target=lambda p: torch.cat([worse, p[1:]]))

    def test_a_target_with_nan_is_refused(self, step):
        self.refuses(step, "row 0 has NaN", target=lambda p: p * math.nan)

    def test_another_number_of_classes_is_refused(self, step):
        self.refuses(step, "same shape", target=lambda p: torch.full((len(p), 5), 0.2, dtype=p.dtype))

    def test_another_number_of_rows_is_refused(self, step):
        self.refuses(step, "same shape", target=lambda p: p[:2])

    def test_an_empty_batch_is_refused(self, step):
        self.refuses(step, "empty", short=lambda s: s[:0], target=lambda p: p[:0])

    def test_logits_are_refused(self, step):
        problem = Problem()
        self.refuses(step, "must be log-probabilities", log_q=lambda rows, index: problem.log_q(rows, index) + 1)

    def test_negative_sample_weights_are_refused(self, step):
        self.refuses(step, "got -1.0", sample_weight=-torch.ones(9))

    def test_other_sample_weights_are_refused(self, step):
        self.refuses(step, "same shape", sample_weight=torch.ones(4))

    def test_sample_weights_that_are_all_zero_are_refused(self, step):
        self.refuses(step, "all zero", sample_weight=torch.zeros(9))

    def refuses(self, step, message, *, log_q=None, short=lambda s: s, target=lambda p: p, sample_weight=None):
        problem = Problem()
        with pytest.raises(ValueError, match=message) as refused:
            step(problem, log_q or problem.log_q, short(problem.short), target(problem.target), sample_weight)
        assert "\n" not in str(refused.value)

    def test_sample_weight_two_is_the_row_twice(self, step):
        """With every short context's rows weighted alike: inducing counts each row once."""
        problem = Problem()
        weight = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)[problem.short]
        weighted = problem.gradient(
            lambda: step(problem, problem.log_q, problem.short, problem.target, weight) and None
        )
        rows = torch.repeat_interleave(torch.arange(9), weight.long())
        contexts = Multiset(problem.short).every(problem.short[rows])
        twice = Problem()
        twice.short, twice.target = problem.short[rows], problem.target[rows]
        # ``risk`` reads extended contexts by their row in the data, which stays as it was.
        torch.testing.assert_close(weighted, twice.gradient(lambda: twice.risk(contexts)), rtol=1e-6, atol=1e-7)

    def test_autocast_does_not_lower_the_precision(self, step):
        """With a model that has no matrix product: what autocast does to the model is not ours."""
        problem = Problem(dtype=torch.float32)
        problem.model = torch.nn.Embedding.from_pretrained(problem.all().detach(), freeze=False)
        problem.log_q = lambda rows, index: torch.log_softmax(problem.model(index), -1)
        gradients, risks = [], []

        def run():
            risks.append(step(problem, problem.log_q, problem.short, problem.target).detach())

        for enabled in (False, True):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
                gradients.append(problem.gradient(run))
        assert risks[1].dtype == torch.float32
        torch.testing.assert_close(risks[1], risks[0])
        torch.testing.assert_close(gradients[1], gradients[0])

    def test_equal_sample_weights_are_none(self, step):
        problem = Problem()
        inputs = problem.log_q, problem.short, problem.target
        plain = problem.gradient(lambda: step(problem, *inputs) and None)
        weighted = problem.gradient(lambda: step(problem, *inputs, torch.full((9,), 5.0)) and None)
        torch.testing.assert_close(plain, weighted, rtol=1e-6, atol=1e-7)


def test_everything_exported_stands_in_the_list():
    assert set(STEPS) == set(imm.matching.__all__) - {"Forward", "clipped_apart"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda multiset: Sampled(multiset, 0), "n_contexts must be a whole number of at least 1, got 0"),
        (lambda multiset: Sampled(multiset, 2, chunk=0), "chunk must be a whole number of at least 1, got 0"),
        (lambda multiset: Serialized(multiset, 0), "refresh_every must be a whole number of at least 1, got 0"),
        (lambda multiset: Streaming(0, 3, 1.0), "n_short must be a whole number of at least 1, got 0"),
        (lambda multiset: Streaming(3, 0, 1.0), "n_classes must be a whole number of at least 1, got 0"),
        (lambda multiset: Streaming(3, 3, -1.0), "memory must be finite and not negative, got -1.0"),
        (lambda multiset: Streaming(3, 3, math.nan), "memory must be finite and not negative, got nan"),
    ],
)
def test_bad_settings_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(Multiset(torch.tensor([0, 1])))
