"""The mathematics of induced model matching: tensors in, tensors out, no state.

Shapes: ``n`` short contexts, ``k`` extended contexts for each, ``classes`` predictions.
Each docstring names the paper's equation by its label. All work is in log space and at least float32,
also under autocast and for half-precision input.
"""

import math
from typing import Any, cast

import torch
from torch import Tensor

from imm.validation import (
    check_log_probabilities,
    check_no_nan,
    check_not_negative,
    check_probabilities,
    check_same_shape,
    check_weights,
)


def _full(x: Tensor) -> Tensor:
    """At least float32: half-precision sums over many contexts or classes would be wrong."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def induce(log_q: Tensor, weights: Tensor | None = None) -> Tensor:
    """The induced model: the weighted mean of Q over extended contexts, in log space.

    ``log Q̂(y|short) = log Σ_i w_i Q(y|short, extended_i) - log Σ_i w_i``

    Eqs. induced-Q-full (equal weights), induced-Q-logreg (kernel weights), k-approx-induced-q (k draws).

    Args:
        log_q: log-probabilities of the full model, ``[n, k, classes]``.
        weights: not negative, ``[n, k]``; need not sum to one; a weight of zero leaves a context out. Equal if None.

    Returns:
        ``[n, classes]`` log-probabilities, differentiable in ``log_q``.

    Example:
        >>> q = torch.tensor([[[0.9, 0.1], [0.5, 0.5]]])  # one short context, two extended, two classes
        >>> induce(q.log()).exp()
        tensor([[0.7000, 0.3000]])
        >>> induce(q.log(), weights=torch.tensor([[3.0, 1.0]])).exp()
        tensor([[0.8000, 0.2000]])
    """
    if log_q.ndim < 2:
        raise ValueError(f"log_q must be [n, k, classes], got shape {tuple(log_q.shape)}")
    if weights is None:
        check_log_probabilities(log_q)
        log_q = _full(log_q)
        return log_sum(log_q) - math.log(log_q.shape[-2])
    log_q = _full(log_q)
    log_w = _log_weights(log_q, weights)
    return log_sum(log_q + log_w.unsqueeze(-1)) - torch.logsumexp(log_w, -1, keepdim=True)


def log_softmax(logits: Tensor) -> Tensor:
    """Returns the log-probabilities of logits, ``[..., classes]``, at least in single precision, also under autocast.

    Of log-probabilities it returns the same.
    """
    return torch.log_softmax(_full(logits), -1)


def log_sum(log_q: Tensor) -> Tensor:
    """Returns ``log Σ_i Q_i`` over contexts: ``[n, k, classes]`` to ``[n, classes]``.

    A class that has no probability in any context stays -inf, with gradient 0.
    """
    # Where a class has none anywhere, the gradient of logsumexp would be exp(-inf + inf), NaN.
    none = (log_q.detach() == -torch.inf).all(-2)
    return torch.logsumexp(log_q.masked_fill(none.unsqueeze(-2), 0.0), -2).masked_fill(none, -torch.inf)


def log_sum_groups(log_q: Tensor, weight: Tensor, group: Tensor, n_groups: int) -> Tensor:
    """Returns ``log Σ w Q`` of each group of rows, as :func:`log_sum` does where groups differ in size.

    Args:
        log_q: ``[m, classes]``.
        weight: ``[m]``, above zero.
        group: which group each row belongs to, ``[m]``.
        n_groups: how many groups there are.
    """
    largest = log_q.new_full((n_groups, log_q.shape[1]), -torch.inf)
    largest = largest.scatter_reduce(0, group[:, None].expand_as(log_q), log_q.detach(), "amax")
    largest = largest.masked_fill(largest == -torch.inf, 0.0)
    scaled = (log_q - largest.index_select(0, group)).exp() * weight.to(log_q.dtype)[:, None]
    total = torch.zeros_like(largest).index_add(0, group, scaled)
    none = total.detach() == 0
    return (total.masked_fill(none, 1.0).log() + largest).masked_fill(none, -torch.inf)


def _log_weights(log_q: Tensor, weights: Tensor) -> Tensor:
    check_same_shape(weights, log_q[..., 0], "weights and log_q's [n, k]")
    check_weights(weights, "weights")
    check_log_probabilities(log_q, weights=weights)
    return weights.to(log_q).log()


def weighted_mean(values: Tensor, sample_weight: Tensor | None = None) -> Tensor:
    """The mean over rows ``[n]``; with ``sample_weight`` a weight of 2 counts as the row twice."""
    if sample_weight is None:
        return values.mean()
    check_same_shape(sample_weight, values, "sample_weight and rows")
    check_weights(sample_weight, "sample_weight")
    weight = sample_weight.to(values.dtype)
    return (weight * values).sum() / weight.sum()


def shares(rows: Tensor, sample_weight: Tensor | None = None) -> Tensor:
    """What each of the ``rows``, ``[n, classes]``, counts for in :func:`weighted_mean`: ``[n]``, sums to one."""
    if sample_weight is None:
        return rows.new_full((len(rows),), 1 / len(rows))
    check_same_shape(sample_weight, rows[:, 0], "sample_weight and rows")
    check_weights(sample_weight, "sample_weight")
    weight = sample_weight.to(rows.dtype)
    return weight / weight.sum()


def matching_loss(log_induced: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
    """The IMM risk: cross-entropy of the induced model under the target, averaged over short contexts.

    ``IMM(Q) = -(1/n) Σ_t Σ_y P̂(y|short_t) log Q̂(y|short_t)``   (Eq. IMM-exact-coarse)

    Args:
        log_induced: from :func:`induce`, ``[n, classes]``.
        target: the restricted model's probabilities, ``[n, classes]``. Not differentiated.
        sample_weight: ``[n]``; equal if None.

    Returns:
        A scalar, differentiable in ``log_induced``. It is at least the target's entropy.
    """
    check_same_shape(log_induced, target, "log_induced and target")
    check_log_probabilities(log_induced, "log_induced")
    check_probabilities(target, "target")
    by_row = cross_entropy_by_row(_full(log_induced), target)
    check_no_nan(by_row, "log_induced")
    return weighted_mean(by_row, sample_weight)


def cross_entropy_by_row(log_q: Tensor, target: Tensor) -> Tensor:
    """``-Σ_y target log_q`` by row, with 0 · log 0 = 0."""
    target = target.detach().to(log_q.dtype)
    with torch.autocast(log_q.device.type, enabled=False):  # which would take the dot product in half precision
        product: Tensor = torch.linalg.vecdot(target, log_q)
    if bool(product.isnan().any()):  # 0 · -inf; to mask always would cost two more passes
        product = torch.linalg.vecdot(target, log_q.masked_fill(target == 0, 0.0))
    return -product


def divergence(log_induced: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
    """``Σ_x π(x) KL(P̂(·|short) || Q̂(·|short))``   (Eq. KL-induced): the IMM risk less the target's entropy.

    Zero exactly when the induced model equals the target. Same gradient as :func:`matching_loss`.
    """
    entropy = -torch.special.xlogy(_full(target), _full(target)).sum(-1)
    return matching_loss(log_induced, target, sample_weight) - weighted_mean(entropy, sample_weight)


def correction(log_q: Tensor, log_induced: Tensor) -> Tensor:
    """Returns ``Q(y|x) / Q̂(y|short)``, the factor of Eq. serialized-IMM-gradient.

    Its mean over the extended contexts of a short context is one for every ``y``. Times a context's weight it is the
    crosstalk of Eq. sequentializing-derivation: how much of the induced model this context contributes.

    Args:
        log_q: ``[n, classes]``, the full model at each row.
        log_induced: ``[n, classes]``, the induced model at each row's short context.

    Returns:
        ``[n, classes]``, detached.
    """
    check_same_shape(log_q, log_induced, "log_q and log_induced")
    log_q, log_induced = _full(log_q).detach(), _full(log_induced).detach()
    # Where both are zero the context adds nothing: the limit along any path with Q ≤ Q̂ is finite, take 0.
    least = torch.finfo(log_induced.dtype).min
    return (log_q - log_induced.clamp(min=least)).exp_()


def corrected_loss(
    log_q: Tensor,
    log_induced: Tensor,
    target: Tensor,
    factor: Tensor,
    sample_weight: Tensor | None = None,
) -> Tensor:
    """A scalar whose gradient is serialized IMM's and whose value is the IMM risk.

    gradient: ``-(1/n) Σ_t Σ_y P̂(y|short_t) factor_t(y) ∇ log Q(y|x_t)``   (Eq. serialized-IMM-gradient)
    value: :func:`matching_loss` of ``log_induced``, so that what is logged means something.

    Args:
        log_q: the full model at each row, ``[n, classes]``; the only one that is differentiated.
        log_induced: the induced model held for each row's short context, ``[n, classes]``.
        target: ``[n, classes]``.
        factor: the :func:`correction`, ``[n, classes]``.
        sample_weight: ``[n]``; equal if None.
    """
    risk = matching_loss(log_induced.detach(), target, sample_weight)
    check_same_shape(log_q, target, "log_q and target")
    check_same_shape(log_q, factor, "log_q and factor")
    return with_direction(risk, log_q, target * factor, sample_weight)


def with_direction(value: Tensor, log_q: Tensor, direction: Tensor, sample_weight: Tensor | None = None) -> Tensor:
    """The scalar ``value``, with the gradient of ``-(1/n) Σ_t Σ_y direction_t(y) log Q(y|x_t)``.

    With the target times the :func:`correction` as direction this is Eq. serialized-IMM-gradient. A sum that
    has this gradient need not be computed: on the way forward nothing of size ``[n, classes]`` is read.

    Args:
        value: a scalar, not differentiated.
        log_q: ``[n, classes]``; the only one that is differentiated.
        direction: ``[n, classes]``, not differentiated. It is kept, not copied, and scaled in place on the way
            back: so the result can be differentiated once, and a second time is refused.
        sample_weight: ``[n]``; equal if None.
    """
    share = shares(direction, sample_weight)
    loss = _WithDirection.apply(log_q, value.detach(), direction.detach(), share)  # type: ignore[no-untyped-call]
    return cast(Tensor, loss)


class _WithDirection(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, log_q: Tensor, value: Tensor, direction: Tensor, share: Tensor) -> Tensor:
        ctx.save_for_backward(direction, share)
        ctx.dtype, ctx.spent = log_q.dtype, False
        return value.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        if ctx.spent:
            raise RuntimeError("this matching loss was differentiated already: call the matching again")
        ctx.spent = True
        direction, share = ctx.saved_tensors
        return direction.mul_((-grad * share)[:, None]).to(ctx.dtype), None, None, None


def with_gradient(value: Tensor, logits: Tensor, gradient: Tensor) -> Tensor:
    """Returns the scalar ``value``, whose gradient in ``logits`` is ``gradient``.

    Args:
        value: a scalar, not differentiated.
        logits: ``[n, classes]``; the only one that is differentiated.
        gradient: ``[n, classes]``. It is kept, not copied, and scaled in place on the way back: so the result can be
            differentiated once, and a second time is refused.
    """
    loss = _WithGradient.apply(logits, value, gradient)  # type: ignore[no-untyped-call]
    return cast(Tensor, loss)


class _WithGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
        ctx.save_for_backward(gradient)
        ctx.dtype, ctx.spent = logits.dtype, False
        return value.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        if ctx.spent:
            raise RuntimeError("this matching loss was differentiated already: call the matching again")
        ctx.spent = True
        (gradient,) = ctx.saved_tensors
        return gradient.mul_(grad).to(ctx.dtype), None, None


def objective(cross_entropy: Tensor, matching: Tensor, lam: float) -> Tensor:
    """``Cross-Entropy(Q) + λ IMM(Q)``   (Eq. main-objective)."""
    return cross_entropy + check_not_negative(lam, "lam") * matching
