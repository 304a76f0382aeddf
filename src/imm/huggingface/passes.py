"""Sampled and exact matching: passes of their own over extended contexts from the training data."""

from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from imm import functional
from imm.huggingface.positions import as_keys
from imm.inducers import Contexts, Multiset
from imm.matching import Forward, Sampled
from imm.matching.base import distinct
from imm.targets import Target


class _Fixed:
    """Contexts that were drawn before, as an inducer."""

    def __init__(self, contexts: Contexts) -> None:
        self._contexts = contexts

    def every(self, short: Any) -> Contexts:  # noqa: ARG002
        return self._contexts

    def draw(self, *_: Any) -> Contexts:
        raise NotImplementedError


def sampled_backward(
    log_q: Forward,
    contexts: Contexts,
    short: Tensor,
    weight: Tensor,
    target: Target,
    scale: float,
    rows_at_once: int = 32,
) -> Tensor:
    """Adds the gradient of ``scale · Σ_t w_t IMM_t`` with drawn contexts to the ``.grad``   (Eq. IMM-component).

    The sum over places is taken apart, so that k contexts of few places are held at a time, and differentiated in one
    pass. Only where k is above ``rows_at_once`` are contexts replayed one by one (Eq. sequentializing-derivation).

    Args:
        log_q: the model, in evaluation mode, at numbers of extended contexts; see :data:`imm.matching.Forward`.
        contexts: ``[n, k]``.
        short: ``[n, m]``.
        weight: ``[n]``.
        target: the restricted model.
        scale: a factor of the gradient.
        rows_at_once: how many rows of ``log_q`` are held.

    Returns:
        ``Σ_t w_t IMM_t``, for the log.
    """
    k = contexts.index.shape[1]
    total = weight.new_zeros(())
    for places in torch.arange(len(short)).split(max(1, rows_at_once // k)):
        some = Contexts(contexts.index[places], contexts.weights[places])
        matching = Sampled(_Fixed(some), None, min(k, rows_at_once))
        w = weight[places]
        rows = target(as_keys(short[places])).to(weight.device)
        total += matching.backward(log_q, short[places], rows, scale * float(w.sum()), w) * w.sum()
    return total


def exact_loss(
    log_q: Forward, multiset: Multiset, short: Tensor, weight: Tensor, target: Target, rows_at_once: int = 32
) -> Tensor:
    """``Σ_t w_t IMM_t`` with every extended context   (Eq. IMM-exact), by plain differentiation.

    Each different short context is induced once. Predictions are made again on the way back, some at a time, and not
    kept.

    Args:
        log_q: the model at numbers of extended contexts. It is called on the way back too: it must see to evaluation
            mode itself.
        multiset: what gives the contexts.
        short: ``[n, m]``.
        weight: ``[n]``.
        target: the restricted model.
        rows_at_once: how many rows of ``log_q`` are held.
    """
    different, _, group = distinct(short)
    weights = weight.new_zeros(len(different)).index_add_(0, group, weight)
    total = weight.new_zeros(())
    for i in range(len(different)):
        one = as_keys(different[i : i + 1])
        pieces = multiset.every(one).index[0].split(rows_at_once)
        log_means = [checkpoint(_log_mean, log_q, piece, use_reentrant=False) for piece in pieces]
        sizes = torch.tensor([[float(len(piece)) for piece in pieces]], device=weight.device)
        log_induced = functional.induce(torch.cat(log_means)[None], sizes)
        total = total + weights[i] * functional.matching_loss(log_induced, target(one).to(weight.device))
    return total


def _log_mean(log_q: Forward, index: Tensor) -> Tensor:
    return functional.induce(log_q(torch.zeros_like(index), index)[None])
