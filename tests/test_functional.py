import math

import pytest
import torch
from torch.autograd import gradcheck

from imm import functional
from tests import reference
from tests.problems import random_probabilities

DTYPES = [torch.float32, torch.float64]


def close(a, b, dtype=torch.float64):
    tolerance = 1e-5 if dtype == torch.float32 else 1e-11
    torch.testing.assert_close(
        torch.as_tensor(a, dtype=dtype), torch.as_tensor(b, dtype=dtype), rtol=tolerance, atol=tolerance
    )


@pytest.fixture
def q(generator):
    return random_probabilities(5, 4, 3, generator=generator)


@pytest.fixture
def target(generator):
    p = random_probabilities(5, 3, generator=generator)
    p[0] = torch.tensor([1.0, 0.0, 0.0])
    return p


@pytest.fixture
def weights(generator):
    w = torch.rand(5, 4, generator=generator, dtype=torch.float64)
    w[1, :3] = 0
    return w


class TestAgainstTheReference:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_induce(self, q, weights, dtype):
        log_q = q.to(dtype).log()
        close(functional.induce(log_q).exp(), reference.induce(q.tolist()), dtype)
        close(functional.induce(log_q, weights.to(dtype)).exp(), reference.induce(q.tolist(), weights.tolist()), dtype)
        assert functional.induce(log_q).dtype == dtype

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("sample_weight", [None, [1.0, 2.0, 0.0, 0.5, 3.0]])
    def test_risk_and_its_gradient(self, q, target, weights, dtype, sample_weight):
        log_q = q.to(dtype).log().requires_grad_()
        w = None if sample_weight is None else torch.tensor(sample_weight, dtype=dtype)
        loss = functional.matching_loss(functional.induce(log_q, weights.to(dtype)), target.to(dtype), w)
        (gradient,) = torch.autograd.grad(loss, log_q)
        induced = reference.induce(q.tolist(), weights.tolist())
        close(loss, reference.risk(induced, target.tolist(), sample_weight), dtype)
        close(gradient, reference.risk_gradient(q.tolist(), target.tolist(), weights.tolist(), sample_weight), dtype)


class TestGradients:
    """Numerical differentiation, float64."""

    def test_induce(self, q, weights):
        # Through log_softmax: induce checks that its input is normalised.
        logits = q.log().requires_grad_()
        assert gradcheck(lambda x: functional.induce(torch.log_softmax(x, -1)), logits)
        assert gradcheck(lambda x: functional.induce(torch.log_softmax(x, -1), weights), logits)

    def test_matching_loss(self, q, target):
        logits = q[:, 0].log().requires_grad_()
        sample_weight = torch.arange(5.0)
        assert gradcheck(lambda x: functional.matching_loss(torch.log_softmax(x, -1), target), logits)
        assert gradcheck(lambda x: functional.matching_loss(torch.log_softmax(x, -1), target, sample_weight), logits)

    def test_divergence_has_the_risks_gradient(self, q, target):
        log_induced = q[:, 0].log().requires_grad_()
        (a,) = torch.autograd.grad(functional.divergence(log_induced, target), log_induced)
        (b,) = torch.autograd.grad(functional.matching_loss(log_induced, target), log_induced)
        close(a, b)

    def test_corrected_loss_has_the_tampered_gradient_and_the_risks_value(self, q, target):
        sample_weight = torch.arange(1.0, 6.0, dtype=torch.float64)
        log_q = q[:, 0].log().requires_grad_()
        log_induced = q.mean(1).log().requires_grad_()
        factor = functional.correction(log_q, log_induced)
        loss = functional.corrected_loss(log_q, log_induced, target, factor, sample_weight)
        close(loss, functional.matching_loss(log_induced, target, sample_weight))
        loss.backward()
        assert log_induced.grad is None
        tampered = reference.tampered_cross_entropy(log_q, target, factor)
        (expected,) = torch.autograd.grad((tampered * sample_weight).sum() / sample_weight.sum(), log_q)
        close(log_q.grad, expected)


class TestIdentities:
    def test_the_gradient_of_the_log_sum_is_the_sum_of_tampered_gradients(self, q, target, weights):
        """Eq. sequentializing-derivation, first line and last."""
        log_q = q.log().requires_grad_()
        log_induced = functional.induce(log_q, weights)
        (whole,) = torch.autograd.grad(functional.matching_loss(log_induced, target), log_q, retain_graph=True)
        share = weights / weights.sum(1, keepdim=True)
        crosstalk = [share[:, i, None] * functional.correction(log_q[:, i], log_induced) for i in range(4)]
        parts = [reference.tampered_cross_entropy(log_q[:, i], target, crosstalk[i]).mean() for i in range(4)]
        (sequential,) = torch.autograd.grad(sum(parts), log_q)
        close(whole, sequential)

    def test_crosstalk_is_the_references_and_sums_to_one_over_contexts(self, q, weights):
        log_induced, share = functional.induce(q.log(), weights), weights / weights.sum(1, keepdim=True)
        factors = [share[:, i, None] * functional.correction(q[:, i].log(), log_induced) for i in range(4)]
        close(torch.stack(factors, 1), reference.crosstalk(q.tolist(), weights.tolist()))
        close(sum(factors), torch.ones(5, 3))

    def test_correction_averages_to_one_over_a_group(self, q):
        log_induced = functional.induce(q.log())
        factors = [functional.correction(q[:, i].log(), log_induced) for i in range(4)]
        close(torch.stack(factors).mean(0), torch.ones(5, 3))

    def test_correction_is_the_ratio_and_zero_where_both_are_zero(self):
        log_q = torch.tensor([[0.8, 0.2, 0.0]]).log().requires_grad_()
        factor = functional.correction(log_q, torch.tensor([[0.4, 0.6, 0.0]]).log())
        close(factor, [[2.0, 1 / 3, 0.0]], torch.float32)
        assert not factor.requires_grad

    def test_risk_less_entropy_is_a_divergence(self, q, target):
        log_induced = functional.induce(q.log())
        entropy = -torch.special.xlogy(target, target).sum(-1)
        divergence = functional.divergence(log_induced, target)
        close(functional.matching_loss(log_induced, target) - entropy.mean(), divergence)
        assert divergence > 0.01

    def test_divergence_is_zero_exactly_when_equal(self, q):
        p = q[:, 0]
        close(functional.divergence(p.log(), p), 0.0)
        moved = p.clone()
        moved[0, 0], moved[0, 1] = p[0, 0] * 0.9, p[0, 1] + p[0, 0] * 0.1
        assert functional.divergence(moved.log(), p) > 1e-6

    def test_jensen(self, q, target):
        """Eq. jensen: the mean of single-sample risks bounds the risk, strictly unless all contexts agree."""
        risk = functional.matching_loss(functional.induce(q.log()), target)
        singles = [functional.matching_loss(q[:, i].log(), target) for i in range(4)]
        assert risk < torch.stack(singles).mean() - 1e-3
        same = q[:, :1].expand(-1, 4, -1)
        close(functional.matching_loss(functional.induce(same.log()), target), singles[0])

    def test_one_context_is_itself(self, q):
        close(functional.induce(q[:, :1].log()), q[:, 0].log())

    def test_weights_need_not_sum_to_one(self, q, weights):
        close(functional.induce(q.log(), weights), functional.induce(q.log(), 7 * weights))

    def test_weight_two_is_the_context_twice(self, q):
        twice = torch.cat([q, q[:, :1]], 1)
        close(functional.induce(q.log(), torch.tensor([2.0, 1, 1, 1]).expand(5, 4)), functional.induce(twice.log()))

    def test_sample_weight_two_is_the_row_twice(self, q, target):
        log_induced = functional.induce(q.log())
        weighted = functional.matching_loss(log_induced, target, torch.tensor([2.0, 1, 1, 1, 0]))
        rows = [0, 0, 1, 2, 3]
        close(weighted, functional.matching_loss(log_induced[rows], target[rows]))

    def test_objective_by_ratio_is_the_objective_by_lam_over_one_plus_lam(self):
        ce, matching, lam = torch.tensor(1.3), torch.tensor(0.4), 1.5
        ratio = lam / (1 + lam)
        by_ratio = (1 - ratio) * ce + ratio * matching
        close(by_ratio, functional.objective(ce, matching, lam) / (1 + lam), torch.float32)

    def test_lam_zero_is_the_cross_entropy(self):
        assert functional.objective(torch.tensor(1.3), torch.tensor(0.4), 0.0) == torch.tensor(1.3)


class TestRefusals:
    """One line that repeats what was given."""

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda p: functional.induce(p[0, 0]), r"log_q must be \[n, k, classes\], got shape \(3,\)"),
            (lambda p: functional.induce(p), "log-probabilities"),
            (lambda p: functional.induce(p.log(), torch.ones(5, 3)), r"got \(5, 3\) and \(5, 4\)"),
            (lambda p: functional.induce(p.log(), -torch.ones(5, 4)), "got -1.0"),
            (lambda p: functional.induce(p.log(), torch.zeros(5, 4)), "all zero"),
            (lambda p: functional.induce(p[:0].log()), r"empty: shape \(0, 4, 3\)"),
            (lambda p: functional.induce(p[:, :0].log()), r"empty: shape \(5, 0, 3\)"),
            (lambda p: functional.matching_loss(p[:, 0], p[:, 0]), "log_induced must be log-prob.*sums to"),
            (lambda p: functional.matching_loss(p[:, 0].log(), p[:, 0] * 2), "target must be .*row 0 sums to 2"),
            (lambda p: functional.matching_loss(p[:, 0].log(), p[:, 0, :2]), r"\(5, 3\) and \(5, 2\)"),
            (lambda p: functional.matching_loss(p[:0, 0].log(), p[:0, 0]), r"empty: shape \(0, 3\)"),
            (lambda p: functional.matching_loss(p[:, 0].log(), p[:, 0], torch.ones(4)), r"\(4,\) and \(5,\)"),
            (lambda p: functional.matching_loss(p[:, 0].log(), p[:, 0], -torch.ones(5)), "got -1.0"),
            (lambda p: functional.divergence(p[:, 0].log(), p[:, 0] * 2), "sums to 2"),
            (lambda p: functional.correction(p[:, 0], p), r"\(5, 3\) and \(5, 4, 3\)"),
            (lambda p: functional.objective(p.sum(), p.sum(), -0.5), "lam must be .* got -0.5"),
            (lambda p: functional.objective(p.sum(), p.sum(), math.nan), "got nan"),
        ],
    )
    def test_bad_input(self, q, call, message):
        with pytest.raises(ValueError, match=message) as refused:
            call(q)
        assert "\n" not in str(refused.value)


def test_nan_in_any_row_is_refused():
    log_q = torch.full((3, 2, 2), 0.5).log()
    log_q[2, 1, 0] = float("nan")
    with pytest.raises(ValueError, match="log_induced has NaN in row 2"):
        functional.matching_loss(functional.induce(log_q), torch.full((3, 2), 0.5))
