"""Precision: long rows, half precision, autocast, zeros and infinities."""

import math

import pytest
import torch

from imm import functional


def test_induce_does_not_underflow_at_fifty_thousand_classes(generator):
    logits = torch.randn(2, 3, 50_000, generator=generator, dtype=torch.float64)
    logits[:, :, ::7] -= 190  # far below what a float32 probability can hold
    log_q = torch.log_softmax(logits, -1)
    assert log_q.min() < -200
    single = functional.induce(log_q.float())
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), functional.induce(log_q), rtol=1e-6, atol=1e-5)
    assert single.exp().sum(-1).sub(1).abs().max() < 1e-4


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_input_is_summed_in_float32(generator, dtype):
    """A thousand contexts: in half precision the running sum would stop growing."""
    log_q = torch.log_softmax(torch.randn(2, 1000, 5, generator=generator), -1).to(dtype)
    induced = functional.induce(log_q)
    assert induced.dtype == torch.float32
    torch.testing.assert_close(induced.double(), functional.induce(log_q.double()), rtol=1e-5, atol=1e-5)
    weights = torch.rand(2, 1000, generator=generator)
    weighted = functional.induce(log_q, weights)
    assert weighted.dtype == torch.float32
    torch.testing.assert_close(weighted.double(), functional.induce(log_q.double(), weights), rtol=1e-5, atol=1e-5)


def test_half_precision_risk_is_float32(generator):
    target = torch.softmax(torch.randn(64, 5, generator=generator), -1)
    log_induced = torch.log_softmax(torch.randn(64, 5, generator=generator), -1).bfloat16()
    risk = functional.matching_loss(log_induced, target)
    assert risk.dtype == torch.float32
    torch.testing.assert_close(risk.double(), functional.matching_loss(log_induced.double(), target.double()))


def test_autocast_gives_the_float32_answer(generator):
    x = torch.randn(6, 8, generator=generator)
    layer = torch.nn.Linear(8, 5)
    layer.weight.data = torch.randn(5, 8, generator=generator)
    target = torch.softmax(torch.randn(2, 5, generator=generator), -1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = layer(x)
        assert logits.dtype == torch.bfloat16
        log_q = torch.log_softmax(logits, -1).view(2, 3, 5)
        induced = functional.induce(log_q)
        risk = functional.matching_loss(induced, target)
    assert induced.dtype == risk.dtype == torch.float32
    outside = functional.matching_loss(functional.induce(log_q.double()), target.double())
    torch.testing.assert_close(risk.double(), outside, rtol=1e-6, atol=1e-6)


def test_a_target_with_zeros_costs_nothing_where_the_model_has_zeros():
    """0 · log 0 = 0 in the value and in the gradient."""
    logits = torch.tensor([[[0.3, -math.inf, 0.1], [0.2, -math.inf, 0.9]]], requires_grad=True)
    target = torch.tensor([[0.25, 0.0, 0.75]])
    risk = functional.matching_loss(functional.induce(torch.log_softmax(logits, -1)), target)
    risk.backward()
    two = torch.log_softmax(logits.detach()[..., [0, 2]], -1)
    torch.testing.assert_close(risk.detach(), functional.matching_loss(functional.induce(two), target[:, [0, 2]]))
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[..., 1] == 0).all()
    assert logits.grad[..., 0].abs().min() > 0


def test_an_infinity_without_weight_is_left_out():
    logits = torch.tensor([[[0.3, 0.2], [0.4, -math.inf]]], requires_grad=True)
    weights, target = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.5, 0.5]])
    log_q = torch.log_softmax(logits, -1)
    risk = functional.matching_loss(functional.induce(log_q, weights), target)
    risk.backward()
    torch.testing.assert_close(risk.detach(), functional.matching_loss(log_q[:, 0].detach(), target))
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[0, 1] == 0).all()


def test_a_padded_first_context_is_left_out():
    """A context without weight may be all -inf, and may come first."""
    log_q = torch.tensor([[[-math.inf, -math.inf], [math.log(0.25), math.log(0.75)]]], requires_grad=True)
    weights = torch.tensor([[0.0, 1.0]])
    induced = functional.induce(log_q, weights)
    torch.testing.assert_close(induced.exp().detach(), torch.tensor([[0.25, 0.75]]))
    induced.sum().backward()
    assert torch.isfinite(log_q.grad).all()


def test_a_zero_in_one_context_only_is_averaged():
    log_q = torch.tensor([[[0.0, 1.0], [0.5, 0.5]]]).log().requires_grad_()
    induced = functional.induce(log_q)
    torch.testing.assert_close(induced.exp().detach(), torch.tensor([[0.25, 0.75]]))
    functional.matching_loss(induced, torch.tensor([[0.5, 0.5]])).backward()
    assert torch.isfinite(log_q.grad).all()


def test_corrected_loss_is_finite_where_the_model_has_zeros():
    log_q = torch.tensor([[0.0, 1.0]]).log().requires_grad_()
    log_induced = torch.tensor([[0.0, 1.0]]).log()
    target = torch.tensor([[0.0, 1.0]])
    loss = functional.corrected_loss(log_q, log_induced, target, functional.correction(log_q, log_induced))
    loss.backward()
    assert loss.item() == 0
    torch.testing.assert_close(log_q.grad, torch.tensor([[0.0, -1.0]]))


def test_log_probabilities_that_were_rounded_to_bfloat16_are_not_taken_for_logits():
    """The worst case: every class rounded the same way, and by 2 %."""
    log_q = torch.full((1, 2, 29_000), -math.log(29_000)).bfloat16()
    induced = functional.induce(log_q)
    assert abs(induced.exp().sum().item() - 1) > 0.01
    target = torch.full((1, 29_000), 1 / 29_000)
    assert functional.matching_loss(induced, target).item() == pytest.approx(math.log(29_000), rel=0.01)
