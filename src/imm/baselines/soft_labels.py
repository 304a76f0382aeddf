"""Losses that pull the full model itself, not its induced model, towards some other distribution."""

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from imm.functional import cross_entropy_by_row, weighted_mean
from imm.validation import check_fraction, check_log_probabilities, check_probabilities, check_same_shape


def reverse_kd(log_q: Tensor, target: Tensor, temperature: float = 1.0, sample_weight: Tensor | None = None) -> Tensor:
    """``Σ_x π_n(x) KL(P̂_τ(·|short) || Q_τ(·|x))``   (Eq. knowledge-distillation, restricted model as teacher).

    ``P_τ ∝ P^(1/τ)``. At ``τ = 1`` its gradient is that of the second term of Eq. noising, and of IMM with
    one extended context. As in the paper there is no factor ``τ²``.

    Args:
        log_q: ``[n, classes]``, differentiated.
        target: ``[n, classes]``.
        temperature: τ.
        sample_weight: ``[n]``; equal if None.
    """
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature!r}")
    check_same_shape(log_q, target, "log_q and target")
    check_log_probabilities(log_q)
    check_probabilities(target, "target")
    log_q = log_q.to(torch.promote_types(log_q.dtype, torch.float32))
    teacher = torch.softmax(target.to(log_q.dtype).log() / temperature, -1)
    student = torch.log_softmax(log_q / temperature, -1)
    cross_entropy = cross_entropy_by_row(student, teacher)
    entropy = -torch.special.xlogy(teacher, teacher).sum(-1)
    return weighted_mean(cross_entropy - entropy, sample_weight)


def soft_noising(log_q: Tensor, labels: Tensor, target: Tensor, gamma: Tensor | float) -> Tensor:
    """Cross-entropy with labels that are noised in expectation: ``(1 - γ) 1{y = y_t} + γ P̂(y|short_t)``.

    Prediction noising draws a label with probability γ from P̂; this takes the mean of that draw, so its
    gradient is prediction noising's without the variance. With ``γ = λ/(1+λ)`` it is Eq. noising over ``1 + λ``.

    Args:
        log_q: ``[n, classes]``, differentiated.
        labels: ``[n]`` integers, 0 to ``classes - 1``.
        target: ``[n, classes]``.
        gamma: one number or ``[n]``.
    """
    check_same_shape(log_q, target, "log_q and target")
    check_log_probabilities(log_q)
    check_probabilities(target, "target")
    _check_labels(labels, log_q)
    log_q = log_q.to(torch.promote_types(log_q.dtype, torch.float32))
    share = torch.as_tensor(gamma, dtype=log_q.dtype)
    if share.shape not in ((), labels.shape):
        raise ValueError(f"gamma must be one number or {tuple(labels.shape)}, got shape {tuple(share.shape)}")
    if not bool(((share >= 0) & (share <= 1)).all()):
        raise ValueError(f"gamma must be between 0 and 1, got {gamma}")
    share = share.expand(len(labels))[:, None]
    soft = (1 - share) * one_hot(labels.long(), log_q.shape[-1]) + share * target.to(log_q.dtype)
    return cross_entropy_by_row(log_q, soft).mean()


def label_smoothing(log_q: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """:func:`soft_noising` towards the uniform distribution."""
    check_fraction(smoothing, "smoothing")
    # In float32 at least: many times a rounded 1 / classes is not one.
    dtype = torch.promote_types(log_q.dtype, torch.float32)
    return soft_noising(log_q, labels, torch.full_like(log_q, 1 / log_q.shape[-1], dtype=dtype), smoothing)


def _check_labels(labels: Tensor, log_q: Tensor) -> None:
    n_classes = log_q.shape[-1]
    if log_q.ndim != 2 or labels.shape != log_q.shape[:1]:
        raise ValueError(
            f"log_q must be [n, classes] and labels [n], got {tuple(log_q.shape)} and {tuple(labels.shape)}"
        )
    if labels.dtype == torch.bool or labels.is_floating_point():
        raise ValueError(f"labels must be integers, got {labels.dtype}")
    labels = labels.long()
    outside = (labels < 0) | (labels >= n_classes)
    if outside.any():
        raise ValueError(f"labels must be 0 to {n_classes - 1}, got {labels[outside][0].item()}")
