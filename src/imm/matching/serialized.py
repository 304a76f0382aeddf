"""The secondary pass over the contexts, delegated to the primary one."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from imm import functional
from imm.inducers import Inducer
from imm.matching.base import (
    Batch,
    GivenTarget,
    Groups,
    Matching,
    Pairs,
    Predict,
    distinct,
    matching_risk,
    pairs_of,
    predicted,
    segment_sum,
    with_neighbors,
)
from imm.validation import check_count


class Serialized(Matching):
    """IMM's gradient from the primary pass, with a correction that is refreshed every r steps.

    ``-(1/n) Σ_t Σ_y P̂(y|short_t) [Q†(y|x_t) / Q̂†(y|short_t)] ∇ log Q(y|x_t)``   (Alg. serialized-imm)

    ``Q†`` is the model as it was at the last refresh, ``Q̂†`` its induced model; their ratio is not differentiated.
    Between refreshes a step costs what it costs without IMM. Right after one, over all rows, the gradient is the exact
    one where the short context repeats (a multiset). The value is the risk of ``Q̂†``.

    It refreshes itself: at the first call and after every r calls in training mode, ``predict`` is called for all rows
    of the training data. Let it run the model in evaluation mode if that has dropout.

    Args:
        target: the restricted model P̂.
        inducer: what gives the extended contexts, made from the training data's short contexts.
        predict: the full model, see :data:`~imm.matching.Predict`.
        refresh_every: r, in calls.
        rows_at_once: how many rows, or pairs, ``predict`` is called with at a refresh.
        check: whether values are checked at each call, and not at the first only.

    The state is ``Q†`` of each training row and ``Q̂†`` of each different short context.
    """

    predict: Predict
    _group: Tensor
    stale: Tensor
    induced: Tensor
    steps: Tensor

    def __init__(
        self,
        target: GivenTarget,
        inducer: Inducer,
        predict: Predict,
        refresh_every: int = 100,
        rows_at_once: int = 1024,
        check: bool = False,
    ) -> None:
        super().__init__(target, check)
        if inducer.data is None:
            raise ValueError(
                f"serialized IMM needs an inducer over rows of the training data, got {type(inducer).__name__}"
            )
        self.inducer = with_neighbors(inducer)
        object.__setattr__(self, "predict", predict)  # or a model's parameters would become the matching's too
        self.refresh_every = check_count(refresh_every, "refresh_every")
        self.rows_at_once = check_count(rows_at_once, "rows_at_once")
        self._short, of_row = distinct(inducer.data)
        self.register_buffer("_group", of_row, persistent=False)
        self.register_buffer("stale", torch.empty(0))
        self.register_buffer("induced", torch.empty(0))
        self.register_buffer("steps", torch.tensor(0))
        self._steps = 0  # the same on the host, which need not wait for it

    @torch.no_grad()
    def refresh(self) -> None:
        """Takes the snapshot: the model at all rows of the training data, and its induced model."""
        n, n_groups, device = len(self._group), len(self._short), self._group.device
        one_each = torch.ones(n, device=device)
        stale = []
        for rows in torch.arange(n, device=device).split(self.rows_at_once):
            pairs = Pairs(self._group[rows], rows, one_each[rows], 1)
            stale.append(predicted(self.predict, self._short, pairs).exp_())
        q = torch.cat(stale)
        if self.inducer.own_short:  # the pairs of a short context are the rows that have it
            size = torch.bincount(self._group, minlength=n_groups)
            induced = segment_sum(q, self._group, n_groups, (1 / size).to(q.dtype)[self._group])
        else:
            induced = self._induced_by_pairs(n_groups)
        self.stale, self.induced = q, induced.clamp_(min=torch.finfo(q.dtype).tiny)

    def _induced_by_pairs(self, n_groups: int) -> Tensor:
        found, begin = [], 0
        while begin < n_groups:
            width = self.inducer.every(self._short[begin : begin + 1]).index.shape[1]
            end = min(n_groups, begin + max(1, self.rows_at_once // width))
            some = self._short[begin:end]
            pairs = pairs_of(self.inducer.every(some))
            found.append(pairs.log_sum(predicted(self.predict, some, pairs), end - begin).exp_())
            begin = end
        return torch.cat(found)

    def risk(self, batch: Batch) -> Tensor:
        """See :class:`Matching`."""
        if batch.logits is None or batch.rows is None:
            missing = "logits" if batch.logits is None else "rows: which rows of the training data the batch has"
            raise ValueError(f"serialized IMM needs the batch's {missing}")
        if self.checks and (int(batch.rows.min()) < 0 or int(batch.rows.max()) >= len(self._group)):
            given = f"{int(batch.rows.min())} to {int(batch.rows.max())}"
            raise ValueError(f"rows must be training rows 0 to {len(self._group) - 1}, got {given}")
        if self.stale.numel() == 0 or (self.training and self._steps % self.refresh_every == 0):
            self.refresh()
        if self.training:
            self._steps += 1
            self.steps += 1
        with torch.no_grad():
            q = functional.log_softmax(batch.logits.detach()).exp_()
            groups = Groups.of(batch)
            induced = self.induced.index_select(0, self._group[batch.rows])
            target = self.targets(batch, groups, induced.new_empty(len(groups.weight), induced.shape[1]))
            target = target.index_select(0, groups.of_row)
            value = matching_risk(induced.log(), target, batch.weight)
            direction = self.stale.index_select(0, batch.rows).div_(induced).mul_(target).to(q.dtype)
            gradient = q.mul_(direction.sum(-1, keepdim=True)).sub_(direction).mul_(batch.weight[:, None])
        return functional.with_gradient(value, batch.logits, gradient)

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *args: Any) -> None:
        for name in ("stale", "induced"):  # empty until the first refresh, which a new module has not had
            if prefix + name in state_dict:
                setattr(self, name, torch.empty_like(state_dict[prefix + name], device=self._group.device))
        super()._load_from_state_dict(state_dict, prefix, *args)
        self._steps = int(self.steps)
