"""λ and γ that fall linearly to zero over the epochs."""

from dataclasses import replace

import pytest

from imm import baselines
from imm.language.methods.soft_labels import Softened
from tests.language.runs import run


def each_step(folder, look, **changes):
    """What ``look`` says of the log-probabilities, the step and the loss of each step of two epochs."""
    made = run(folder, falls=True, epochs=2, **changes)
    seen, forward = [], made.method.forward

    def looked(log_q, step):
        loss = forward(log_q, step)
        seen.append(look(log_q, step, loss))
        return loss

    made.method.forward = looked
    made.train()
    return seen, made


@pytest.mark.parametrize("method", ["reverse-kd", "imm-sampled", "imm-serialized", "imm-streaming"])
def test_lam_is_less_at_each_step(method, tmp_path):
    seen, _ = each_step(tmp_path / "run", lambda log_q, step, loss: step.lam, method=method, lam=3.0)
    assert seen == pytest.approx([3.0 * (1 - i / len(seen)) for i in range(len(seen))])


@pytest.mark.parametrize("method", ["reverse-kd", "imm-serialized", "imm-streaming"])
def test_the_loss_has_lam_times_the_matching(method, tmp_path):
    def look(log_q, step, loss):
        return loss.total.item(), loss.parts["cross_entropy"].item() + step.lam * loss.parts["matching"].item()

    seen, _ = each_step(tmp_path / "run", look, method=method, lam=3.0)
    assert all(total == pytest.approx(wanted, rel=1e-5) for total, wanted in seen)


@pytest.mark.parametrize("method", ["kn-noising", "unigram-noising"])
def test_noise_is_less_at_each_step(method, tmp_path, monkeypatch):
    noised, draw = [], baselines.noise
    monkeypatch.setattr(baselines, "noise", lambda *args: noised.append(args[2].gamma) or draw(*args))
    seen, made = each_step(tmp_path / "run", lambda log_q, step, loss: None, method=method, gamma=0.9)
    assert len(noised) == len(seen)
    for i, gamma in enumerate(noised):
        assert gamma.tolist() == pytest.approx((made.method.by.gamma * (1 - i / len(seen))).tolist())


@pytest.mark.parametrize("method", ["soft-noising", "label-smoothing"])
def test_soft_labels_have_less_at_each_step(method, tmp_path):
    def look(log_q, step, loss):
        return log_q.detach(), step, loss.total.item()

    seen, made = each_step(tmp_path / "run", look, method=method, gamma=0.8)
    for i, (log_q, step, total) in enumerate(seen):
        constant = Softened(made.method.bigram, 0.8 * (1 - i / len(seen)))
        assert total == pytest.approx(constant(log_q, replace(step, left=1.0)).total.item(), rel=1e-5)
