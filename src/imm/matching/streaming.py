"""A running induced model, fed by the predictions that the primary pass makes anyway."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from imm import functional
from imm.validation import (
    LOGITS_TOLERANCE,
    check_count,
    check_log_probabilities,
    check_not_negative,
    check_probabilities,
    check_same_shape,
    check_weights,
)

ROWS_AT_ONCE = 32

Target = Callable[[Tensor], Tensor]


class Streaming(nn.Module):
    """IMM without an extra forward pass: serialized IMM with a running ``Q̂`` for each short context.

    For the ``m`` rows of a batch that share a short context:

    ``Q̂ ← (1 - β) Q̂ + β · mean of their Q``,   ``β = m / (w + m)``,   ``w = min(count · exp(-age / τ), K)``

    where ``age`` is how many batches ago the short context was seen last, and ``count`` becomes ``w + m``. So ``Q̂`` is
    the plain mean of all predictions seen until K of them have come, and forgets older ones from then on; and what was
    predicted long ago, by a model that has changed since, counts less. With ``K = 0`` or ``τ = 0`` it is the mean of
    the batch's own rows, and the gradient is that of plain differentiation through this mean.

    The gradient is Eq. serialized-IMM-gradient with the correction ``Q / Q̂``, not differentiated. As ``Q̂`` contains
    ``β / m`` of each current ``Q``, the correction is at most ``m / β ≤ m + K``.

    Args:
        n_short: how many short contexts there are; they come as codes ``0 … n_short - 1``
            (:meth:`imm.inducers.Multiset.encode` makes them).
        n_classes: how many classes.
        memory: K, in predictions; infinite for the mean of everything seen.
        lifetime: τ, in batches; infinite for predictions that do not age.
        n_held: only the codes below it have a running ``Q̂``, which bounds the table; for the others it is the mean of
            their batch, as with ``K = 0``. All if None. Give the most frequent short contexts the lowest codes.
        dtype: of the table; bfloat16 halves it and keeps two to three digits, fewer if memory and
            lifetime are long.

    The state (``state_dict``) is ``Q̂``, ``[n_held, n_classes]`` probabilities, and the counts. A ``Q`` below 1e-38 is
    zero there: it adds nothing to the gradient, and its share of the risk stops growing at 87 nats.
    """

    induced: Tensor
    count: Tensor
    seen: Tensor
    steps: Tensor

    def __init__(
        self,
        n_short: int,
        n_classes: int,
        memory: float,
        lifetime: float = math.inf,
        n_held: int | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.n_short = check_count(n_short, "n_short")
        self.memory = memory if memory == math.inf else check_not_negative(memory, "memory")
        self.lifetime = lifetime if lifetime == math.inf else check_not_negative(lifetime, "lifetime")
        n_held = self.n_short if n_held is None else min(check_count(n_held, "n_held"), self.n_short)
        self.register_buffer("induced", torch.zeros(n_held, check_count(n_classes, "n_classes"), dtype=dtype))
        self.register_buffer("count", torch.zeros(n_held))
        self.register_buffer("seen", torch.zeros(n_held, dtype=torch.long))
        self.register_buffer("steps", torch.tensor(0))

    def forward(
        self, log_q: Tensor, short: Tensor, target: Tensor | Target, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Updates ``Q̂`` and gives the loss; see :func:`imm.functional.corrected_loss`.

        Args:
            log_q: what the primary pass gave for the batch, ``[n, classes]``.
            short: the code of each row's short context, ``[n]``.
            target: the restricted model there, ``[n, classes]``; or a function from different codes, ``[g]``, to its
                rows ``[g, classes]``, which saves a copy where short contexts repeat.
            sample_weight: ``[n]``; a weight of 2 counts as the row twice, in ``Q̂`` too.
        """
        self._check(log_q, short)
        if sample_weight is not None:
            check_same_shape(sample_weight, short, "sample_weight and rows")
            check_weights(sample_weight, "sample_weight")
            seen = sample_weight > 0
            if not bool(seen.all()):
                log_q, short, sample_weight = log_q[seen], short[seen], sample_weight[seen]
                target = target[seen] if isinstance(target, Tensor) else target
        with torch.no_grad():
            groups, q = self._grouped(log_q, short, sample_weight)
            rows = _Rows(target, groups, q)
            return self._loss(log_q, q, self._update(q, groups), groups, rows, sample_weight)

    def corrected(self, log_q: Tensor, log_stale: Tensor, short: Tensor, target: Tensor | Target) -> Tensor:
        """The loss with the factor ``Q†/Q̂`` and the table as it stands: serialized IMM, if ``Q†`` has fed the table.

        Args:
            log_q: what the primary pass gave for the batch, ``[n, classes]``; the only one that is differentiated.
            log_stale: ``log Q†`` at the same rows.
            short: the code of each row's short context, ``[n]``.
            target: as in :meth:`forward`.
        """
        self._check(log_q, short)
        check_same_shape(log_q, log_stale, "log_q and log_stale")
        with torch.no_grad():
            groups, q = self._grouped(log_stale, short, None)
            held = groups.short[: self._n_held(groups)]
            induced = self._row(held)
            if len(held) < len(groups.short):
                induced = torch.cat([induced, groups.mean(q)[len(held) :]])
            return self._loss(log_q, q, induced, groups, _Rows(target, groups, q), None)

    def _check(self, log_q: Tensor, short: Tensor) -> None:
        check_log_probabilities(log_q)
        if log_q.ndim != 2 or log_q.shape[1] != self.induced.shape[1]:
            raise ValueError(f"log_q must be [n, {self.induced.shape[1]}], got shape {tuple(log_q.shape)}")
        check_same_shape(short, log_q[:, 0], "short and rows")

    def _loss(
        self, log_q: Tensor, q: Tensor, induced: Tensor, groups: "_Groups", rows: "_Rows", weight: Tensor | None
    ) -> Tensor:
        """The loss of ``log_q`` with the factor ``q / induced``; both are overwritten."""
        # Q̂ is 0 only where Q is 0 too, or too small for the dtype: the context adds nothing, 0 / tiny = 0.
        induced.clamp_(min=torch.finfo(q.dtype).tiny)
        direction, risk = q, q.new_empty(len(q))
        # In place and some rows at a time: fresh memory for [n, classes] costs more than what is computed.
        for begin in range(0, len(q), ROWS_AT_ONCE):
            part = slice(begin, begin + ROWS_AT_ONCE)
            of_row, target = induced.index_select(0, groups.of_row[part]), rows(part)
            direction[part].div_(of_row).mul_(target)
            risk[part] = functional.cross_entropy_by_row(of_row.log_(), target)
        with torch.enable_grad():
            return functional.with_direction(functional.weighted_mean(risk, weight), log_q, direction, weight)

    @torch.no_grad()
    def feed(self, log_q: Tensor, short: Tensor) -> None:
        """Updates ``Q̂`` with the predictions of a batch, ``[n, classes]``, and nothing else."""
        check_log_probabilities(log_q)
        groups, q = self._grouped(log_q, short, None)
        self._update(q, groups)

    def log_induced(self, short: Tensor) -> Tensor:
        """``log Q̂(· | short)`` as it stands, ``[n, classes]``."""
        if len(short) and int(short.max()) >= len(self.count):
            raise ValueError(f"short context {int(short.max())} is not one of the {len(self.count)} that are held")
        return self._row(short).log()

    def _row(self, short: Tensor) -> Tensor:
        unseen = self.count[short] == 0
        if unseen.any():
            raise ValueError(f"short context {short[unseen][0].item()} has had no prediction yet")
        return self.induced.index_select(0, short).to(self._working)

    def _n_held(self, groups: "_Groups") -> int:
        return int((groups.short < len(self.count)).sum())  # they come first: codes are sorted

    @property
    def _working(self) -> torch.dtype:
        return torch.promote_types(self.induced.dtype, torch.float32)

    def _grouped(self, log_q: Tensor, short: Tensor, sample_weight: Tensor | None) -> tuple["_Groups", Tensor]:
        if int(short.min()) < 0 or int(short.max()) >= self.n_short:
            given = f"{int(short.min())} to {int(short.max())}"
            raise ValueError(f"short must be codes 0 to {self.n_short - 1}, got {given}")
        return _Groups(short, sample_weight, self._working), log_q.detach().to(self._working).exp()

    def _update(self, q: Tensor, groups: "_Groups") -> Tensor:
        """Feeds the batch in; returns ``Q̂`` of each of its groups, ``[groups, classes]``."""
        induced = groups.mean(q)
        total = induced.sum(-1)
        wrong = ~((total - 1).abs() <= LOGITS_TOLERANCE)
        if wrong.any():  # before anything is kept: NaN would stay for good
            where, given = groups.short[wrong][0].item(), total[wrong][0].item()
            raise ValueError(
                f"log_q must be log-probabilities in every row; those of short context {where} sum to {given:.6g}"
            )
        n_held = self._n_held(groups)
        short, m = groups.short[:n_held], groups.weight[:n_held]
        age = (self.steps - self.seen[short]).to(m.dtype)
        kept = self.count[short] * torch.exp(-age / max(self.lifetime, torch.finfo(m.dtype).tiny))
        kept.clamp_(max=self.memory)
        beta = m / (kept + m)
        held = induced[:n_held].lerp_(self.induced.index_select(0, short).to(q.dtype), (1 - beta)[:, None])
        self.induced.index_copy_(0, short, held.to(self.induced.dtype))
        self.count[short] = kept + m
        self.seen[short] = self.steps
        self.steps += 1
        return induced


class _Groups:
    """The rows of a batch by short context.

    Attributes:
        short: the different short contexts, ``[groups]``, sorted.
        weight: ``m``, the weight of each group's rows together, ``[groups]``.
        of_row: the group of each row, ``[n]``.
    """

    def __init__(self, short: Tensor, sample_weight: Tensor | None, dtype: torch.dtype) -> None:
        self.short, self.of_row, size = torch.unique(short, return_inverse=True, return_counts=True)
        self._rows = self.of_row.argsort()
        self._begin = size.cumsum(0) - size
        weight = torch.ones_like(short, dtype=dtype) if sample_weight is None else sample_weight.to(dtype)
        self.weight = torch.zeros_like(self.short, dtype=dtype).index_add_(0, self.of_row, weight)
        self._share = (weight / self.weight[self.of_row])[self._rows]

    def mean(self, values: Tensor) -> Tensor:
        """The weighted mean of each group's rows: ``[n, classes]`` to ``[groups, classes]``."""
        # One pass over the values; index_add_ needs them weighted first, and is many times slower on a CPU.
        return embedding_bag(
            self._rows, values.to(self._share.dtype), self._begin, mode="sum", per_sample_weights=self._share
        )


class _Rows:
    """The target of some of a batch's rows, from one row for each of them or for each group."""

    def __init__(self, target: Tensor | Target, groups: _Groups, q: Tensor) -> None:
        self._of_row = None if isinstance(target, Tensor) else groups.of_row
        self._target = target if isinstance(target, Tensor) else target(groups.short)
        expected = q if self._of_row is None else q[: len(groups.short)]
        check_same_shape(expected, self._target, "log_q and target")
        check_probabilities(self._target, "target")

    def __call__(self, part: slice) -> Tensor:
        return self._target[part] if self._of_row is None else self._target.index_select(0, self._of_row[part])
