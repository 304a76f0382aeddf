"""Checks that refuse bad input with one line that repeats what was given.

Nothing here repairs: a wrong value is an error, never clipped or rescaled.
"""

import math

import torch
from torch import Tensor

SUM_TOLERANCE = 1e-3
"""How far a row of probabilities may be from one: float32 over 50,000 classes rounds by about 1e-4."""

LOGITS_TOLERANCE = 0.05
"""The same for log-probabilities, which may once have been bfloat16: -10 is rounded by 0.03 there."""


def check_probabilities(p: Tensor, name: str) -> None:
    """Refuses rows (last dimension) that are not probabilities: negative, NaN, or not summing to one."""
    if p.ndim == 0 or p.numel() == 0:
        raise ValueError(f"{name} is empty: shape {tuple(p.shape)}")
    if not p.is_floating_point():
        raise ValueError(f"{name} must be floating point, got {p.dtype}")
    # A half-precision sum is too coarse to judge by.
    total = p.sum(-1, dtype=torch.promote_types(p.dtype, torch.float32))
    wrong = ~((total - 1).abs() <= SUM_TOLERANCE)  # NaN is wrong too
    if bool(p.amin() < 0):
        wrong |= (p < 0).any(-1)
    if wrong.any():
        raise ValueError(f"{name} must be probabilities; {_describe_bad_row(p, wrong, total)}")


def _describe_bad_row(p: Tensor, wrong: Tensor, total: Tensor) -> str:
    row = tuple(wrong.nonzero()[0].tolist())
    where = f"row {row[0] if len(row) == 1 else row}" if row else "it"
    if p[row].isnan().any():
        return f"{where} has NaN"
    if (p[row] < 0).any():
        return f"{where} has the negative value {p[row].min().item():.6g}"
    return f"{where} sums to {total[row].item():.6g}"


def check_log_probabilities(log_q: Tensor, name: str = "log_q", weights: Tensor | None = None) -> None:
    """Refuses what cannot be log-probabilities: empty, not floating point, or first row not normalised.

    Only the first row's sum is looked at: that tells logits from log-probabilities at no cost. With
    ``weights`` (one for each row) it is the heaviest of the first row's contexts: others may be padding.
    """
    if log_q.ndim == 0 or log_q.numel() == 0:
        raise ValueError(f"{name} is empty: shape {tuple(log_q.shape)}")
    if not log_q.is_floating_point():
        raise ValueError(f"{name} must be floating point, got {log_q.dtype}")
    first = log_q.detach()[(0,) * (log_q.ndim - (1 if weights is None else 2))]
    if weights is not None:
        first = first[weights[(0,) * (weights.ndim - 1)].argmax()]
    total = torch.logsumexp(first.to(torch.promote_types(first.dtype, torch.float32)), 0).exp().item()
    if math.isnan(total):
        raise ValueError(f"{name} has NaN in row 0: if it is a model's, training diverged; try a lower learning rate")
    if abs(total - 1) > LOGITS_TOLERANCE:
        raise ValueError(f"{name} must be log-probabilities (log_softmax, not logits); row 0 sums to {total:.6g}")


def check_no_nan(by_row: Tensor, name: str) -> None:
    """Refuses NaN in what was summed by row, ``[n]``: cheaper than looking at every class."""
    if bool(by_row.detach().isnan().any()):
        raise ValueError(f"{name} has NaN in row {int(by_row.detach().isnan().nonzero()[0, 0])}")


def check_same_shape(a: Tensor, b: Tensor, names: str) -> None:
    """Refuses two tensors of different shapes; ``names`` says which two."""
    if a.shape != b.shape:
        raise ValueError(f"{names} must have the same shape, got {tuple(a.shape)} and {tuple(b.shape)}")


def check_weights(weights: Tensor, name: str) -> None:
    """Refuses weights that are negative, not finite, or all zero along the last dimension."""
    if weights.numel() == 0:
        raise ValueError(f"{name} is empty: shape {tuple(weights.shape)}")
    if not bool(((weights >= 0) & weights.isfinite()).all()):
        bad = weights[~((weights >= 0) & weights.isfinite())][0].item()
        raise ValueError(f"{name} must be finite and not negative, got {bad}")
    if not bool((weights.sum(-1) > 0).all()):
        raise ValueError(f"{name} must not be all zero along the last dimension")


def check_count(value: int, name: str, least: int = 1) -> int:
    """Refuses what is not a whole number of at least ``least``."""
    if isinstance(value, bool | str) or not least <= value < math.inf or int(value) != value:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def check_not_negative(value: float, name: str) -> float:
    """Refuses NaN, infinity and anything below zero."""
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be finite and not negative, got {value!r}")
    return float(value)


def check_fraction(value: float, name: str) -> float:
    """Refuses what is not in [0, 1]."""
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be between 0 and 1, got {value!r}")
    return float(value)
