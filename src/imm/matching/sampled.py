"""k drawn extended contexts, one at a time."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Generator, Tensor

from imm import functional
from imm.inducers import Contexts, Inducer
from imm.matching.base import Forward, evaluate
from imm.validation import check_count, check_not_negative, check_probabilities


class Sampled:
    """The IMM risk with k draws for each short context, its gradient taken one context at a time.

    ``IMM_t ≈ -Σ_y P̂(y|short_t) log (1/k) Σ_i Q(y|short_t, extended_i)``   (Eq. IMM-component)

    The log of a sum does not split into k losses, but its gradient does, once the crosstalk is known
    (Eq. sequentializing-derivation). So :meth:`backward` first runs the model on all contexts without
    differentiation, keeping only the running sum, then replays each with its crosstalk as a constant. Peak
    memory does not grow with k; the price is a second forward pass.

    The replays are explicit calls, so whatever wraps the model (DistributedDataParallel, an accelerator)
    sees each of them. The model must give the same output for the same input in both passes: run it in
    evaluation mode, as the paper does.

    Args:
        inducer: what gives the extended contexts.
        n_contexts: k; with None every extended context is used, and the result is that of
            :class:`~imm.matching.Exact`. Give a number under DistributedDataParallel: the processes must replay
            equally often.
        chunk: how many contexts are run at once.
        generator: makes the draws reproducible.
    """

    def __init__(
        self, inducer: Inducer, n_contexts: int | None, chunk: int = 1, generator: Generator | None = None
    ) -> None:
        self.inducer = inducer
        self.n_contexts = None if n_contexts is None else check_count(n_contexts, "n_contexts")
        self.chunk = check_count(chunk, "chunk")
        self.generator = generator

    def contexts(self, short: Any) -> Contexts:
        """The contexts of one step: k draws, or all."""
        if self.n_contexts is None:
            return self.inducer.every(short)
        return self.inducer.draw(short, self.n_contexts, self.generator)

    def log_induced(self, log_q: Forward, short: Any) -> Tensor:
        """``log Q̂(· | short)`` from fresh draws, ``[n, classes]``, not differentiated."""
        return self._induce(log_q, self.contexts(short))[0]

    def backward(
        self,
        log_q: Forward,
        short: Any,
        target: Tensor,
        lam: float = 1.0,
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        """Adds the gradient of ``λ · IMM`` to the parameters' ``.grad``, as ``loss.backward()`` would.

        Args:
            log_q: the full model, see :data:`~imm.matching.Forward`.
            short: ``n`` short contexts.
            target: the restricted model there, ``[n, classes]``.
            lam: the factor λ of the gradient; with a loss scaler, λ times its scale.
            sample_weight: ``[n]``; equal if None.

        Returns:
            The IMM risk (without λ), for the log.
        """
        check_not_negative(lam, "lam")
        check_probabilities(target, "target")
        contexts = self.contexts(short)
        if contexts.index.shape[1] <= self.chunk:  # nothing to sequentialise: one differentiable pass is cheaper
            log_induced = functional.induce(evaluate(log_q, _rows(contexts), contexts), contexts.weights)
            risk = functional.matching_loss(log_induced, target, sample_weight)
            (lam * risk).backward()
            return risk.detach()

        log_induced, fingerprints = self._induce(log_q, contexts)
        risk = functional.matching_loss(log_induced, target, sample_weight)
        share = -lam * functional.shares(log_induced, sample_weight)[:, None]
        for piece, fingerprint in zip(self._pieces(contexts), fingerprints, strict=True):
            factor = share * piece.weights.to(share)
            _replay(evaluate(log_q, _rows(piece), piece), fingerprint, log_induced, target, factor)
        return risk

    def _pieces(self, contexts: Contexts) -> Iterator[Contexts]:
        for begin in range(0, contexts.index.shape[1], self.chunk):
            piece = slice(begin, begin + self.chunk)
            if bool(contexts.weights[:, piece].any()):
                yield Contexts(contexts.index[:, piece], contexts.weights[:, piece])

    @torch.no_grad()
    def _induce(self, log_q: Forward, contexts: Contexts) -> tuple[Tensor, list[Tensor]]:
        """The induced model, holding one piece at a time; and of each piece what tells a changed replay."""
        log_sum: Tensor | None = None
        fingerprints = []
        for piece in self._pieces(contexts):
            log_piece = evaluate(log_q, _rows(piece), piece)
            fingerprints.append(log_piece[..., 0].clone())
            log_piece = log_piece.to(torch.promote_types(log_piece.dtype, torch.float32))
            # The pieces' weights sum to one only together, and a piece may have none at all in some rows.
            log_part = torch.logsumexp(log_piece + piece.weights.to(log_piece).log()[..., None], 1)
            log_sum = log_part if log_sum is None else torch.logaddexp(log_sum, log_part)
        assert log_sum is not None
        return log_sum, fingerprints


def _rows(contexts: Contexts) -> Tensor:
    return torch.arange(len(contexts.index), device=contexts.index.device)


def _replay(log_piece: Tensor, fingerprint: Tensor, log_induced: Tensor, target: Tensor, factor: Tensor) -> None:
    """Back-propagates one piece. A function, so that nothing of a piece is still held when the next is run."""
    _check_replay(log_piece, fingerprint)
    crosstalk = functional.correction(log_piece, log_induced[:, None].expand_as(log_piece))
    # This is the gradient in the model's output: no loss needs to be computed to differentiate it.
    direction = crosstalk.mul_(target.detach()[:, None]).mul_(factor[..., None])
    log_piece.backward(direction.to(log_piece.dtype))


def _check_replay(log_piece: Tensor, fingerprint: Tensor) -> None:
    """Refuses a model that answers the replay otherwise than the first pass: its crosstalk would be wrong."""
    if not torch.allclose(log_piece.detach()[..., 0], fingerprint, rtol=1e-2, atol=1e-2, equal_nan=True):
        raise RuntimeError("log_q gave other predictions on the replay: put the model in evaluation mode (dropout?)")
