"""IMM without an extra forward pass: the running induced model of the predictions that are made anyway."""

from typing import Any

import torch
from torch import Tensor

from imm import functional
from imm.inducers import Multiset
from imm.matching.base import Batch, GivenTarget, Groups, Matching, matching_risk
from imm.matching.induced_table import InducedTable

ROWS_AT_ONCE = 32
"""On a CPU as many rows are worked on at a time: fresh memory for a whole batch costs more than the arithmetic."""


class Streaming(Matching):
    """Serialized IMM with a running ``Q̂`` for each short context   (Eq. serialized-IMM-gradient).

    ``-(1/n) Σ_t Σ_y P̂(y|short_t) [Q(y|x_t) / Q̂(y|short_t)] ∇ log Q(y|x_t)``

    The correction, in brackets, is not differentiated. ``Q̂`` is an :class:`~imm.matching.induced_table.InducedTable`,
    which takes in the batch before it is used: as it contains ``β / m`` of each current ``Q``, the correction is at
    most ``m / β ≤ m + K``. With an infinite memory, and a model that does not change, ``Q̂`` becomes the exact one.

    Args:
        target: the restricted model P̂.
        inducer: a :class:`~imm.inducers.Multiset` of the training data's short contexts, which numbers them; None where
            short contexts are codes already and the target knows how many there are (a table, a bigram).
        memory: K, in predictions; see :class:`~imm.matching.induced_table.InducedTable`.
        lifetime: τ, in batches.
        n_held: the largest number of short contexts that are held; all if None.
        dtype: of the table.
        check: whether values are checked at each call, and not at the first only.

    Example:
        >>> from imm.targets import Table
        >>> matching = Streaming(Table.from_tensor(torch.tensor([[0.5, 0.5], [0.9, 0.1]])))
        >>> logits = torch.zeros(3, 2, requires_grad=True)
        >>> matching(logits, torch.tensor([0, 0, 1])).backward()
        >>> logits.grad[2]  # (q - p) / 3
        tensor([-0.1333,  0.1333])
    """

    def __init__(
        self,
        target: GivenTarget,
        inducer: Multiset | None = None,
        memory: float = 1000.0,
        lifetime: float = 30.0,
        n_held: int | None = None,
        dtype: torch.dtype = torch.float32,
        check: bool = False,
    ) -> None:
        super().__init__(target, check)
        if inducer is not None and not isinstance(inducer, Multiset):
            raise TypeError(
                f"streaming needs a Multiset, which numbers short contexts that repeat, got {type(inducer).__name__}:"
                " for short contexts that do not repeat take Exact or Sampled"
            )
        n_short = getattr(target, "n_short", None) if inducer is None else len(inducer)
        if n_short is None:
            raise ValueError("the target does not say how many short contexts there are: give Multiset(short) too")
        self.inducer = inducer
        self.table = InducedTable(n_short, memory, lifetime, n_held, dtype)

    def risk(self, batch: Batch) -> Tensor:
        """See :class:`Matching`."""
        if batch.logits is None:
            raise ValueError("streaming needs the batch's logits, got None")
        groups = Groups.of(batch)
        codes = self._codes(groups.short).to(batch.logits.device)
        with torch.no_grad():
            q = functional.log_softmax(batch.logits.detach()).exp_()
            induced = self.table.update(q, groups, codes).clamp_(min=torch.finfo(q.dtype).tiny)
            target = self.targets(batch, groups, induced)
            value = matching_risk(induced.log(), target, groups.weight)
            # Q̂ is 0 only where Q is, or too small for its type: the context adds nothing, 0 / tiny = 0.
            gradient = corrected_gradient(q, target.div_(induced), groups.of_row, batch.weight)
        return functional.with_gradient(value, batch.logits, gradient)

    def _codes(self, short: Any) -> Tensor:
        if self.inducer is not None:
            return self.inducer.encode(short)
        if not isinstance(short, Tensor) or short.ndim != 1 or short.is_floating_point() or short.dtype == torch.bool:
            given = f"{short.dtype} {list(short.shape)}" if isinstance(short, Tensor) else f"a {type(short).__name__}"
            raise ValueError(
                f"short must be codes, integers [n], got {given}: for others give Multiset(short) as inducer"
            )
        if self.checks and (int(short.min()) < 0 or int(short.max()) >= self.table.n_short):
            given = f"{int(short.min())} to {int(short.max())}"
            raise ValueError(f"short must be codes 0 to {self.table.n_short - 1}, got {given}")
        return short.long()


def corrected_gradient(q: Tensor, ratio: Tensor, of_row: Tensor, weight: Tensor) -> Tensor:
    """Returns the gradient of ``-Σ_t w_t Σ_y d_t(y) log Q_t(y)`` in the logits, with ``d = Q · ratio`` a constant.

    It is ``w (Q Σ_y d - d)``, and takes the memory of ``q``.

    Args:
        q: probabilities, ``[n, classes]``; overwritten.
        ratio: ``P̂ / Q̂`` of each group, ``[groups, classes]``.
        of_row: the group of each row, ``[n]``.
        weight: ``[n]``.
    """
    at_once = ROWS_AT_ONCE if q.device.type == "cpu" and not torch.compiler.is_compiling() else max(1, len(q))
    for begin in range(0, len(q), at_once):
        part = slice(begin, begin + at_once)
        direction = ratio.index_select(0, of_row[part]).mul_(q[part])
        q[part].mul_(direction.sum(-1, keepdim=True)).sub_(direction).mul_(weight[part, None])
    return q
