"""Sampled and exact matching: passes of their own over extended contexts from the training data."""

from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from imm import functional
from imm.huggingface.positions import as_keys
from imm.inducers import Contexts, Multiset
from imm.matching import Predict, Sampled
from imm.matching.base import distinct
from imm.targets import Target


class _Drawn:
    """Contexts that were drawn before, for short contexts that are numbers of places."""

    data = None
    own_short = False

    def __init__(self, contexts: Contexts) -> None:
        self._contexts = contexts

    def every(self, short: Tensor) -> Contexts:
        return Contexts(self._contexts.index[short], self._contexts.weights[short])

    def draw(self, *_: Any) -> Contexts:
        raise NotImplementedError


def sampled_backward(
    predict: Predict,
    contexts: Contexts,
    short: Tensor,
    weight: Tensor,
    target: Target,
    scale: float,
    rows_at_once: int = 32,
) -> Tensor:
    """Adds the gradient of ``scale · Σ_t w_t IMM_t`` with drawn contexts to the ``.grad``   (Eq. IMM-component).

    The sum over places is taken apart, so that k contexts of few places are held at a time, and differentiated in one
    pass. Only where k is above ``rows_at_once`` are contexts run again on the way back.

    Args:
        predict: the model, in evaluation mode, at numbers of extended contexts; see :data:`imm.matching.Predict`.
        contexts: ``[n, k]``, those of each place.
        short: ``[n, m]``.
        weight: ``[n]``.
        target: the restricted model.
        scale: a factor of the gradient.
        rows_at_once: how many rows of probabilities are held.

    Returns:
        ``Σ_t w_t IMM_t``, for the log.
    """
    k = contexts.index.shape[1]

    def of_place(place: Tensor) -> Tensor:
        found: Tensor = target(as_keys(short[place]))
        return found

    matching = Sampled(of_place, _Drawn(contexts), predict, None, min(k, rows_at_once))
    total = weight.new_zeros(())
    for places in torch.arange(len(short), device=weight.device).split(max(1, rows_at_once // k)):
        w = weight[places]
        loss = matching(None, places, sample_weight=w) * w.sum()
        (scale * loss).backward()
        total += loss.detach()
    return total


def exact_loss(
    predict: Predict, multiset: Multiset, short: Tensor, weight: Tensor, target: Target, rows_at_once: int = 32
) -> Tensor:
    """``Σ_t w_t IMM_t`` with every extended context   (Eq. IMM-exact), by plain differentiation.

    Each different short context is induced once. Predictions are made again on the way back, some at a time, and not
    kept.

    Args:
        predict: the model at numbers of extended contexts. It is called on the way back too: it must see to evaluation
            mode itself.
        multiset: what gives the contexts.
        short: ``[n, m]``.
        weight: ``[n]``.
        target: the restricted model.
        rows_at_once: how many rows of probabilities are held.
    """
    different, group = distinct(short)
    weights = weight.new_zeros(len(different)).index_add_(0, group, weight)
    total = weight.new_zeros(())
    for i in range(len(different)):
        one = as_keys(different[i : i + 1])
        pieces = multiset.every(one).index[0].split(rows_at_once)
        log_means = [checkpoint(_log_mean, predict, piece, use_reentrant=False) for piece in pieces]
        sizes = torch.tensor([[float(len(piece)) for piece in pieces]], device=weight.device)
        log_induced = functional.induce(torch.cat(log_means)[None], sizes)
        total = total + weights[i] * functional.matching_loss(log_induced, target(one).to(weight.device))
    return total


def _log_mean(predict: Predict, index: Tensor) -> Tensor:
    return functional.induce(predict(None, index)[None])
