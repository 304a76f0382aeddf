import math

import pytest
import torch
from torch.autograd import gradcheck
from torch.nn.functional import cross_entropy, kl_div, nll_loss

from imm import functional
from imm.baselines import interpolate, label_smoothing, reverse_kd, soft_noising
from tests.problems import random_probabilities


@pytest.fixture
def logits(generator):
    return torch.randn(5, 4, generator=generator, dtype=torch.float64).requires_grad_()


@pytest.fixture
def target(generator):
    return random_probabilities(5, 4, generator=generator)


@pytest.fixture
def labels(generator):
    return torch.randint(4, (5,), generator=generator)


def gradient(loss, logits):
    return torch.autograd.grad(loss, logits)[0]


class TestReverseKd:
    @pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
    def test_gradient(self, logits, target, temperature):
        assert gradcheck(lambda x: reverse_kd(torch.log_softmax(x, -1), target, temperature), logits)

    def test_value_is_the_divergence(self, logits, target):
        log_q = torch.log_softmax(logits, -1)
        torch.testing.assert_close(reverse_kd(log_q, target), kl_div(log_q, target, reduction="batchmean"))
        torch.testing.assert_close(reverse_kd(log_q, target), functional.divergence(log_q, target))
        assert reverse_kd(target.log(), target).abs() < 1e-12

    def test_temperature_sharpens_both(self, logits, target):
        student = torch.log_softmax(logits / 3, -1)
        teacher = target ** (1 / 3) / (target ** (1 / 3)).sum(1, keepdim=True)
        found = reverse_kd(torch.log_softmax(logits, -1), target, temperature=3.0)
        torch.testing.assert_close(found, kl_div(student, teacher, reduction="batchmean"))

    def test_sample_weight_two_is_the_row_twice(self, logits, target):
        log_q, rows = torch.log_softmax(logits, -1), [0, 0, 1, 2, 3]
        weighted = reverse_kd(log_q, target, sample_weight=torch.tensor([2.0, 1, 1, 1, 0]))
        torch.testing.assert_close(weighted, reverse_kd(log_q[rows], target[rows]))

    def test_noising_is_reverse_kd_up_to_a_constant(self, logits, target, labels):
        """Eq. noising less Eq. knowledge-distillation is λ times the target's entropy, whatever the model."""
        lam, entropy = 0.7, -(target * target.log()).sum(1).mean()
        for x in (logits, logits * 2 - 1):
            log_q = torch.log_softmax(x, -1)
            ce = nll_loss(log_q, labels)
            noising = ce - lam * (target * log_q).sum(1).mean()
            torch.testing.assert_close(noising, ce + lam * reverse_kd(log_q, target) + lam * entropy)

    def test_zeros_give_no_nan(self):
        logits = torch.tensor([[0.5, -math.inf, 0.1]], requires_grad=True)
        loss = reverse_kd(torch.log_softmax(logits, -1), torch.tensor([[0.4, 0.0, 0.6]]), temperature=2.0)
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(logits.grad).all()

    @pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan])
    def test_bad_temperature_is_refused(self, target, temperature):
        with pytest.raises(ValueError, match=f"temperature must be above 0, got {temperature}"):
            reverse_kd(target.log(), target, temperature)


class TestSoftNoising:
    def test_gradient(self, logits, target, labels):
        gamma = torch.linspace(0, 1, 5, dtype=torch.float64)
        assert gradcheck(lambda x: soft_noising(torch.log_softmax(x, -1), labels, target, gamma), logits)

    def test_it_is_the_noising_objective_over_one_plus_lam(self, logits, target, labels):
        lam = 1.5
        log_q = torch.log_softmax(logits, -1)
        noising = functional.objective(nll_loss(log_q, labels), -(target * log_q).sum(1).mean(), lam)
        torch.testing.assert_close(soft_noising(log_q, labels, target, lam / (1 + lam)), noising / (1 + lam))

    def test_it_is_the_mean_of_prediction_noising(self, logits, target, labels, generator):
        log_q = torch.log_softmax(logits, -1).detach()
        draws = torch.multinomial(target, 20_000, replacement=True, generator=generator)
        coin = torch.rand(5, 20_000, generator=generator) < 0.3
        noised = draws.where(coin, labels[:, None])
        sampled = -log_q.gather(1, noised)
        error = sampled.std(1).pow(2).sum().div(25 * 20_000).sqrt()
        assert (sampled.mean() - soft_noising(log_q, labels, target, 0.3)).abs() < 5 * error

    def test_gamma_may_differ_by_row(self, logits, target, labels):
        log_q = torch.log_softmax(logits, -1)
        rows = [soft_noising(log_q[t : t + 1], labels[t : t + 1], target[t : t + 1], t / 4) for t in range(5)]
        found = soft_noising(log_q, labels, target, torch.arange(5) / 4)
        torch.testing.assert_close(found, torch.stack(rows).mean())

    def test_the_ends(self, logits, target, labels):
        log_q = torch.log_softmax(logits, -1)
        torch.testing.assert_close(soft_noising(log_q, labels, target, 0.0), nll_loss(log_q, labels))
        at_one = gradient(soft_noising(log_q, labels, target, 1.0), logits)
        torch.testing.assert_close(at_one, gradient(reverse_kd(torch.log_softmax(logits, -1), target), logits))

    @pytest.mark.parametrize("gamma", [-0.1, 1.1])
    def test_bad_gamma_is_refused(self, target, labels, gamma):
        with pytest.raises(ValueError, match=f"gamma must be between 0 and 1, got {gamma}"):
            soft_noising(target.log(), labels, target, gamma)

    @pytest.mark.parametrize(
        ("labels", "message"),
        [
            ([2], r"labels \[n\], got \(5, 4\) and \(1,\)"),
            ([[0], [1], [2], [3], [0]], r"got \(5, 4\) and \(5, 1\)"),
            ([0, 1, 2, 3, 4], "labels must be 0 to 3, got 4"),
            ([0, 1, 2, -100, 3], "labels must be 0 to 3, got -100"),
            ([0.0, 1.0, 2.0, 3.0, 0.0], "labels must be integers, got torch.float32"),
            ([True, False, True, False, True], "labels must be integers, got torch.bool"),
        ],
    )
    def test_bad_labels_are_refused(self, target, labels, message):
        with pytest.raises(ValueError, match=message) as refused:
            soft_noising(target.log(), torch.tensor(labels), target, 0.5)
        assert "\n" not in str(refused.value)

    def test_labels_may_be_small_integers(self, target, labels):
        found = soft_noising(target.log(), labels.to(torch.int32), target, 0.5)
        assert found == soft_noising(target.log(), labels, target, 0.5)


def test_label_smoothing_is_torchs(logits, labels):
    found = label_smoothing(torch.log_softmax(logits, -1), labels, 0.1)
    torch.testing.assert_close(found, cross_entropy(logits, labels, label_smoothing=0.1))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_label_smoothing_takes_half_precision_over_many_classes(dtype):
    log_q = torch.full((2, 10_000), -math.log(10_000), dtype=dtype)
    found = label_smoothing(log_q, torch.tensor([3, 9_999]), 0.1)
    torch.testing.assert_close(found, -log_q[0, 0].float())


class TestInterpolation:
    @pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0])
    def test_value_and_gradient(self, logits, target, ratio):
        log_q = torch.log_softmax(logits, -1)
        mixed = interpolate(log_q, target, ratio)
        torch.testing.assert_close(mixed.exp(), (1 - ratio) * log_q.exp() + ratio * target)
        assert gradcheck(lambda x: interpolate(torch.log_softmax(x, -1), target, ratio), logits)

    def test_zeros_in_either_are_averaged(self):
        mixed = interpolate(torch.tensor([[0.0, 1.0, 0.0]]).log(), torch.tensor([[0.5, 0.5, 0.0]]), 0.5)
        torch.testing.assert_close(mixed.exp(), torch.tensor([[0.25, 0.75, 0.0]]))

    @pytest.mark.parametrize("ratio", [-0.1, 1.1])
    def test_bad_ratio_is_refused(self, target, ratio):
        with pytest.raises(ValueError, match=f"ratio must be between 0 and 1, got {ratio}"):
            interpolate(target.log(), target, ratio)


@pytest.mark.parametrize(
    "call",
    [
        lambda log_q, p: reverse_kd(log_q, p),
        lambda log_q, p: soft_noising(log_q, torch.zeros(len(p), dtype=torch.int64), p, 0.5),
        lambda log_q, p: interpolate(log_q, p, 0.5),
    ],
    ids=["reverse_kd", "soft_noising", "interpolate"],
)
class TestEach:
    def test_logits_are_refused(self, call, target):
        with pytest.raises(ValueError, match="log-probabilities"):
            call(target.log() + 1, target)

    def test_bad_targets_are_refused(self, call, target):
        with pytest.raises(ValueError, match="row 0 sums to 2"):
            call(target.log(), target * 2)

    def test_another_number_of_classes_is_refused(self, call, target):
        with pytest.raises(ValueError, match=r"\(5, 4\) and \(5, 3\)"):
            call(target.log(), torch.full((5, 3), 1 / 3))

    def test_an_empty_batch_is_refused(self, call, target):
        with pytest.raises(ValueError, match="empty"):
            call(target[:0].log(), target[:0])

    def test_half_precision_is_computed_in_float32(self, call, target):
        log_q = target.flip(0).log().bfloat16()
        found = call(log_q, target.float())
        assert found.dtype == torch.float32
        torch.testing.assert_close(found.double(), call(log_q.double(), target), rtol=1e-5, atol=1e-5)


def test_gamma_of_another_length_is_refused():
    log_q = torch.full((3, 2), 0.5).log()
    with pytest.raises(ValueError, match=r"gamma must be one number or \(3,\), got shape \(2,\)"):
        soft_noising(log_q, torch.tensor([0, 1, 0]), log_q.exp(), torch.tensor([0.1, 0.2]))
