"""Streaming matching of scores that are there already, some rows at a time."""

import hashlib

import torch
from torch import Tensor

from imm import functional
from imm.huggingface.context_index import Index, log_softmax
from imm.huggingface.distributed import Together
from imm.huggingface.positions import as_keys
from imm.matching.base import Batch, Groups, matching_risk
from imm.matching.induced_table import InducedTable
from imm.matching.streaming import corrected_gradient
from imm.targets import Target


class Codes:
    """Numbers of short contexts, the most frequent of the training data first: what an :class:`InducedTable` needs.

    Args:
        index: the training data.
    """

    def __init__(self, index: Index) -> None:
        multiset = index.multiset
        by_frequency = torch.argsort(multiset.offsets.diff(), descending=True, stable=True)
        self._index, self._occurs = index, multiset.offsets.diff() > 0
        self._code = torch.empty_like(by_frequency).index_put_((by_frequency,), torch.arange(len(by_frequency)))
        # A code that does not occur is refused by encode; it points to some row, which must exist.
        first = multiset.offsets[:-1][by_frequency].long().clamp(max=len(multiset.rows) - 1)
        self._example = multiset.rows[first].long()

    def __len__(self) -> int:
        return len(self._code)

    def fingerprint(self) -> str:
        """The same where every code means the same."""
        return hashlib.sha256(self.short(torch.arange(len(self))).numpy().tobytes()).hexdigest()[:16]

    def encode(self, short: Tensor) -> Tensor:
        """``[n, m]`` tokens to ``[n]`` codes; refuses tokens that do not stand before a predicted word of the data."""
        if len(short) == 0:
            return short.new_zeros(0)
        given = self._index.multiset.encode(as_keys(short))
        unseen = ~self._occurs[given]
        if bool(unseen.any()):
            first = short[unseen.to(short.device)][0].tolist()
            raise ValueError(
                f"short context {first} does not occur in the data before a predicted word: the collator must leave the"
                " words and labels of train_dataset as they are"
            )
        return self._code[given].to(short.device)

    def short(self, codes: Tensor) -> Tensor:
        """``[n]`` codes to ``[n, m]`` tokens."""
        return self._index.short[self._example[codes.cpu()]]


def streaming_loss(
    table: InducedTable,
    scores: Tensor,
    codes: Tensor,
    weight: Tensor,
    target: Target,
    of_code: Codes,
    rows_at_once: int = 32,
    together: Together | None = None,
) -> Tensor:
    """Returns ``Σ_t w_t IMM_t`` with the running ``Q̂`` of the short contexts   (Eq. serialized-IMM-gradient).

    What :class:`imm.matching.Streaming` computes, but never more than about ``rows_at_once`` rows of probabilities are
    held; and over all processes, so that each has the ``Q̂`` of the whole batch. Beside the scores, one tensor of their
    size is kept for the way back: the gradient.

    Args:
        table: what is updated; its codes are those of ``of_code``.
        scores: a head's output, ``[n, words]``; differentiated.
        codes: the short context of each row, ``[n]``; -1 for rows that are not matched.
        weight: ``[n]``.
        target: the restricted model.
        of_code: what the codes mean.
        rows_at_once: short contexts are taken together until they have as many rows.
        together: the processes.

    Returns:
        A scalar: the sum over all processes divided by their number; its gradient is that of the sum.
    """
    together = together or Together()
    matched = (codes >= 0).nonzero()[:, 0]
    every = together.whole(codes[matched])
    gradient = torch.empty_like(scores)
    gradient[codes < 0] = 0
    value = torch.zeros((), device=scores.device, dtype=torch.promote_types(scores.dtype, torch.float32))
    if len(every) == 0:
        return value
    groups, size = torch.unique(every, return_counts=True)
    part_of_group = (size.cumsum(0) - size) // rows_at_once
    part_of_row = part_of_group[torch.searchsorted(groups, codes[matched])]
    steps = table.steps.clone()
    for part in part_of_group.unique():
        mine = matched[part_of_row == part]
        risk, gradient[mine] = _part(table, scores.detach()[mine], codes[mine], weight[mine], target, of_code, together)
        table.steps.copy_(steps)  # the parts are one batch: none is older than another
        value += risk / together.size
    table.steps.copy_(steps + 1)
    # A process without rows takes part in the others' means; it has nothing to differentiate.
    return functional.with_gradient(value, scores, gradient) if len(scores) else value


def _part(
    table: InducedTable,
    scores: Tensor,
    codes: Tensor,
    weight: Tensor,
    target: Target,
    of_code: Codes,
    together: Together,
) -> tuple[Tensor, Tensor]:
    """Returns the risk of some short contexts, summed over all processes, and the gradient in one's own scores."""
    q = log_softmax(scores).exp_()
    whole = together.whole(codes)
    count = together.whole(weight).to(q.dtype)
    groups = Groups.of(Batch(None, whole, None, count, count / count.sum()))
    induced = table.update(together.whole(q), groups, groups.short).clamp_(min=torch.finfo(q.dtype).tiny)
    rows = target(as_keys(of_code.short(groups.short))).to(q)
    risk = matching_risk(induced.log(), rows, groups.size)
    own = torch.searchsorted(groups.short, codes)
    return risk, corrected_gradient(q, rows.div_(induced), own, weight.to(q.dtype)).to(scores.dtype)
