"""The secondary pass over the contexts, delegated to the primary one."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from imm import functional
from imm.inducers import Inducer
from imm.matching.base import Forward
from imm.matching.exact import Exact
from imm.validation import check_count, check_log_probabilities


class Serialized(nn.Module):
    """IMM's gradient from the primary pass, with a correction that is refreshed every r steps.

    ``-(1/n) Σ_t Σ_y P̂(y|short_t) [Q†(y|x_t) / Q̂†(y|short_t)] ∇ log Q(y|x_t)``   (Alg. serialized-imm)

    ``Q†`` is the model as it was at the last refresh, ``Q̂†`` its induced model; the correction, their ratio,
    is not differentiated. Between refreshes a step costs what it costs without IMM. Right after a refresh,
    over all rows, the gradient is the exact one where the short context repeats (a multiset).

    Args:
        inducer: what gives the extended contexts at a refresh; it points to rows of the training data.
        refresh_every: r, in steps.

    The state (``state_dict``) holds ``log Q†`` and ``log Q̂†`` for all N training rows: 2 · N · classes numbers.

    Example:
        A step, with ``log_q`` the model as a matching sees it and ``rows`` the batch's rows of the data::

            if matching.due:
                matching.refresh(log_q, short)
            loss = cross_entropy + lam * matching(log_q(rows, rows), rows, target[rows])
    """

    log_stale: Tensor
    log_induced: Tensor
    steps: Tensor

    def __init__(self, inducer: Inducer, refresh_every: int) -> None:
        super().__init__()
        self.refresh_every = check_count(refresh_every, "refresh_every")
        self._exact = Exact(inducer)
        self.register_buffer("log_stale", torch.empty(0))
        self.register_buffer("log_induced", torch.empty(0))
        self.register_buffer("steps", torch.tensor(0))

    @property
    def due(self) -> bool:
        """Whether :meth:`refresh` must be called before the next step."""
        return int(self.steps) % self.refresh_every == 0 or self.log_stale.numel() == 0

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *args: Any) -> None:
        for name in ("log_stale", "log_induced"):  # empty until the first refresh, which a new module has not had
            if prefix + name in state_dict:
                setattr(self, name, torch.empty_like(state_dict[prefix + name], device=getattr(self, name).device))
        super()._load_from_state_dict(state_dict, prefix, *args)

    @torch.no_grad()
    def refresh(self, log_q: Forward, short: Any) -> None:
        """Takes the snapshot: the full model and its induced model at all N rows of the training data.

        Args:
            log_q: the full model now, in evaluation mode.
            short: the short context of each training row.
        """
        rows = torch.arange(len(short))
        # Both, or neither if the model fails.
        self.log_stale, self.log_induced = log_q(rows, rows), self._exact.log_induced(log_q, short)

    def forward(self, log_q: Tensor, rows: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """The loss of one step; see :func:`imm.functional.corrected_loss` for its value and gradient.

        Args:
            log_q: what the primary pass gave for the batch, ``[n, classes]``.
            rows: which training rows the batch is, ``[n]``.
            target: the restricted model there, ``[n, classes]``.
            sample_weight: ``[n]``; equal if None.
        """
        if self.log_stale.numel() == 0:
            raise RuntimeError("call refresh() before the first step: there is no Q† yet")
        check_log_probabilities(log_q)
        if int(rows.min()) < 0 or int(rows.max()) >= len(self.log_stale):
            given = f"{int(rows.min())} to {int(rows.max())}"
            raise ValueError(f"rows must be training rows 0 to {len(self.log_stale) - 1}, got {given}")
        self.steps += 1
        log_induced = self.log_induced[rows]
        factor = functional.correction(self.log_stale[rows], log_induced)
        return functional.corrected_loss(log_q, log_induced, target, factor, sample_weight)
