"""A running induced model, fed by the predictions that the primary pass makes anyway."""

import torch
from torch import Tensor, nn

from imm import functional
from imm.validation import check_count, check_log_probabilities, check_not_negative


class Streaming(nn.Module):
    """IMM without an extra forward pass: serialized IMM with a running ``Q̂`` for each short context.

    For the ``m`` rows of a batch that share a short context:

    ``Q̂ ← (1 - β) Q̂ + β · mean of their Q``,   ``β = max(m / (count + m), m / (m + K))``

    so that ``Q̂`` is the plain mean of all predictions seen until K of them have come, and forgets older ones
    from then on. The gradient is Eq. serialized-IMM-gradient with the correction ``Q / Q̂``, not
    differentiated. As ``Q̂`` contains ``β / m`` of each current ``Q``, the correction is at most
    ``m / β ≤ m + K``.

    Args:
        n_short: how many short contexts there are; they come as codes ``0 … n_short - 1``
            (:meth:`imm.inducers.Multiset.encode` makes them).
        n_classes: how many classes.
        memory: K, in predictions; infinite for the mean of everything seen.

    The state (``state_dict``) is ``Q̂``, ``[n_short, n_classes]``, and the counts.
    """

    induced: Tensor
    count: Tensor

    def __init__(self, n_short: int, n_classes: int, memory: float) -> None:
        super().__init__()
        self.memory = memory if memory == float("inf") else check_not_negative(memory, "memory")
        shape = check_count(n_short, "n_short"), check_count(n_classes, "n_classes")
        self.register_buffer("induced", torch.zeros(shape))
        self.register_buffer("count", torch.zeros(n_short))

    def forward(self, log_q: Tensor, short: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """Updates ``Q̂`` and gives the loss; see :func:`imm.functional.corrected_loss`.

        Args:
            log_q: what the primary pass gave for the batch, ``[n, classes]``.
            short: the code of each row's short context, ``[n]``.
            target: the restricted model there, ``[n, classes]``.
            sample_weight: ``[n]``; a weight of 2 counts as the row twice, in ``Q̂`` too.
        """
        check_log_probabilities(log_q)
        if sample_weight is not None and not bool(sample_weight.all()):
            seen = sample_weight > 0
            log_q, short, target, sample_weight = log_q[seen], short[seen], target[seen], sample_weight[seen]
        log_induced = self._update(log_q.detach(), short, sample_weight)
        factor = functional.correction(log_q, log_induced)
        return functional.corrected_loss(log_q, log_induced, target, factor, sample_weight)

    def log_induced(self, short: Tensor) -> Tensor:
        """``log Q̂(· | short)`` as it stands, ``[n, classes]``."""
        unseen = self.count[short] == 0
        if unseen.any():
            raise ValueError(f"short context {short[unseen][0].item()} has had no prediction yet")
        return self.induced[short].log()

    @torch.no_grad()
    def _update(self, log_q: Tensor, short: Tensor, sample_weight: Tensor | None) -> Tensor:
        """Feeds the batch in; returns ``log Q̂`` at its rows."""
        if int(short.min()) < 0 or int(short.max()) >= len(self.count):
            raise ValueError(
                f"short must be codes 0 to {len(self.count) - 1}, got {int(short.min())} to {int(short.max())}"
            )
        groups, inverse = torch.unique(short, return_inverse=True)
        weight = torch.ones_like(short, dtype=self.count.dtype) if sample_weight is None else sample_weight
        m = torch.zeros_like(groups, dtype=self.count.dtype).index_add_(0, inverse, weight.to(self.count.dtype))
        beta = torch.maximum(m / (self.count[groups] + m), m / (m + self.memory))
        share = (beta / m)[inverse] * weight
        q = log_q.to(self.induced.dtype).exp()
        mixed = self.induced[groups].mul_((1 - beta)[:, None]).index_add_(0, inverse, q.mul_(share[:, None]))
        self.induced[groups] = mixed
        self.count[groups] += m
        return mixed.log()[inverse]
