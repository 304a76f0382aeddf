"""A running induced model: ``Q̂`` of each short context as a table, fed with predictions."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from imm.matching.base import Groups
from imm.validation import check_count, check_not_negative


class InducedTable(nn.Module):
    """``Q̂(· | short)`` for short contexts that are codes, as a mean over predictions that forgets.

    For the ``m`` rows of a batch that share a short context:

    ``Q̂ ← (1 - β) Q̂ + β · mean of their Q``,   ``β = m / (w + m)``,   ``w = min(count · exp(-age / τ), K)``

    where ``age`` is how many batches ago the short context was seen last, and ``count`` becomes ``w + m``. So ``Q̂`` is
    the plain mean of all predictions until K of them have come, and forgets older ones from then on; and what was
    predicted long ago, by a model that has changed since, counts less. With ``K = 0`` or ``τ = 0`` it is the mean of
    the batch's own rows.

    Args:
        n_short: how many short contexts there are: codes are ``0 … n_short - 1``.
        memory: K, in predictions; infinite for the mean of everything seen.
        lifetime: τ, in batches; infinite for predictions that do not age.
        n_held: only codes below it have a row, which bounds the table; of the others ``Q̂`` is the mean of the batch's
            own rows. All if None. Give the most frequent short contexts the lowest codes.
        dtype: of the table; bfloat16 halves it and keeps two to three digits, fewer if memory and lifetime are long.

    The state is ``induced``, ``[n_held + 1, classes]``, whose last row is scratch; it is made with the first batch.
    """

    induced: Tensor
    count: Tensor
    seen: Tensor
    steps: Tensor

    def __init__(
        self,
        n_short: int,
        memory: float = 1000.0,
        lifetime: float = 30.0,
        n_held: int | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.n_short = check_count(n_short, "n_short")
        self.memory = memory if memory == math.inf else check_not_negative(memory, "memory")
        self.lifetime = lifetime if lifetime == math.inf else check_not_negative(lifetime, "lifetime")
        self.n_held = self.n_short if n_held is None else min(check_count(n_held, "n_held"), self.n_short)
        self.register_buffer("induced", torch.empty(0, 0, dtype=dtype))
        self.register_buffer("count", torch.zeros(self.n_held + 1))
        self.register_buffer("seen", torch.zeros(self.n_held + 1, dtype=torch.long))
        self.register_buffer("steps", torch.tensor(0))

    @torch.no_grad()
    def update(self, q: Tensor, groups: Groups, codes: Tensor) -> Tensor:
        """Takes in the predictions of a batch, and returns ``Q̂`` of each of its groups, ``[groups, classes]``.

        In evaluation mode nothing is kept. Predictions that are not finite are not taken in.

        Args:
            q: probabilities, ``[n, classes]``.
            groups: which rows share a short context; ``size`` is what they count for.
            codes: the code of each group, ``[groups]``.
        """
        if self.induced.numel() == 0:
            self.induced = q.new_zeros((self.n_held + 1, q.shape[1]), dtype=self.induced.dtype)
        elif self.induced.shape[1] != q.shape[1]:
            raise ValueError(f"the table has {self.induced.shape[1]} classes, and these predictions {q.shape[1]}")
        mean, m = groups.mean(q), groups.size.to(self.count.dtype)
        finite = mean.sum(-1).isfinite()
        row = torch.where((m > 0) & finite, codes.clamp(max=self.n_held), self.n_held)
        age = (self.steps - self.seen[row]).to(m.dtype)
        kept = self.count[row] * torch.exp(-age / max(self.lifetime, torch.finfo(m.dtype).tiny))
        kept = torch.where(row < self.n_held, kept.clamp(max=self.memory), 0.0)
        beta = torch.where(m > 0, m / (kept + m).clamp(min=torch.finfo(m.dtype).tiny), 1.0).to(q.dtype)
        mean.lerp_(self.induced.index_select(0, row).to(q.dtype), (1 - beta)[:, None])
        if self.training:
            self.induced.index_copy_(0, row, mean.to(self.induced.dtype))
            self.count.index_copy_(0, row, kept + m)
            self.seen.index_copy_(0, row, self.steps.expand(len(row)))
            self.steps += 1
        return mean

    def rows(self, codes: Tensor) -> Tensor:
        """Returns ``Q̂(· | short)`` of codes that have had predictions, ``[n, classes]``."""
        if self.induced.numel() == 0:
            raise ValueError("the table has had no predictions yet")
        if int(codes.min()) < 0 or int(codes.max()) >= self.n_held:
            raise ValueError(f"codes must be 0 to {self.n_held - 1}, got {int(codes.min())} to {int(codes.max())}")
        unseen = self.count[codes] == 0
        if bool(unseen.any()):
            raise ValueError(f"short context {int(codes[unseen][0])} has had no prediction yet")
        return self.induced.index_select(0, codes)

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *args: Any) -> None:
        if prefix + "induced" in state_dict:  # a new one has no size yet
            self.induced = torch.empty_like(state_dict[prefix + "induced"], device=self.induced.device)
        super()._load_from_state_dict(state_dict, prefix, *args)
