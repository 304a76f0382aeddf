"""What the four matchings share: how they are called, and how they call the target and the full model."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from imm import functional
from imm.inducers import Contexts, Inducer, Kernel
from imm.validation import check_probabilities, check_same_shape

Predict = Callable[[Any, Tensor], Tensor]
"""The full model as a matching calls it: ``predict(short, index)`` returns logits, ``[m, classes]``.

``short`` are the *values* of ``m`` short contexts, as the batch has them, and ``index``, ``[m]``, the rows of the
training data (or the states of a belief) that lend them their extended contexts. Log-probabilities are logits too.
"""

GivenTarget = Callable[[Any], Tensor] | Tensor
"""P̂: a function from short contexts to probabilities, such as a :class:`~imm.targets.Target`; or its probabilities
as a tensor with a row for each row of the training data."""


class Matching(nn.Module, ABC):
    """A loss that makes the full model's induced model agree with a target.

    Every matching is called with what a training loop has at hand, and returns a scalar to add and to differentiate::

        loss = cross_entropy(logits, labels) + lam * matching(logits, short, rows)

    ``eval()`` freezes what a matching keeps and the contexts that it draws; ``to(device)`` moves it. Values are checked
    at the first call, or at each with ``check=True``: to look at them, the host must wait for the device.

    A new matching writes :meth:`risk`.
    """

    def __init__(self, target: GivenTarget, check: bool = False) -> None:
        super().__init__()
        self.check = check
        self._checked = False
        self._target_rows: Tensor | None
        if isinstance(target, Tensor):
            check_probabilities(target, "target")
            self.register_buffer("_target_rows", target.detach(), persistent=False)
        elif callable(target):
            self._target_rows = None
            self.target = target  # if it is a module, it moves with the matching
        else:
            raise TypeError(f"target must be a target, a function or a tensor, got {type(target).__name__}")

    def forward(
        self, logits: Tensor | None, short: Any, rows: Tensor | None = None, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Returns the IMM risk of a batch, a scalar   (Eq. IMM-exact-coarse).

        Args:
            logits: what the model gave for the batch, ``[..., classes]``. A matching that calls ``predict`` does not
                look at them, and takes None.
            short: the values of the batch's short contexts: codes, ``[...]``, or features, ``[..., d]``.
            rows: which rows of the training data the batch has, ``[...]``.
            sample_weight: ``[...]``; a weight of 2 counts as the row twice. Equal if None.
        """
        batch = _flat(logits, short, rows, sample_weight)
        if self.checks:
            _check_values(batch)
        loss = self.risk(batch)
        self._checked = True
        return loss

    @property
    def checks(self) -> bool:
        """Whether this call looks at values."""
        return (self.check or not self._checked) and not torch.compiler.is_compiling()

    @abstractmethod
    def risk(self, batch: "Batch") -> Tensor:
        """Returns the risk of a batch whose shapes are right."""

    def targets(self, batch: "Batch", groups: "Groups", like: Tensor) -> Tensor:
        """Returns P̂ of each different short context, ``[groups, classes]``, beside ``like`` of the same shape.

        Of a tensor with rows it is the mean over the group's rows, as the risk is linear in P̂.
        """
        if self._target_rows is None:
            found = self.target(groups.short)
            if not isinstance(found, Tensor):
                raise TypeError(f"target must return a tensor [n, classes], got {type(found).__name__}")
            found = found.to(like.device)
        elif batch.rows is None:
            raise ValueError("the target is a tensor with a row for each row of the training data: give rows")
        else:
            found = groups.mean(self._target_rows[batch.rows])
        check_same_shape(found, like, "the target's probabilities and the model's")
        if self.checks:
            check_probabilities(found, "target")
        return found.to(like.dtype)


@dataclass(frozen=True)
class Batch:
    """A batch of ``n`` rows.

    Attributes:
        logits: ``[n, classes]``, or None.
        short: ``n`` values.
        rows: ``[n]``, or None.
        count: what each row counts for, ``[n]``: its sample weight, or one.
        weight: the same as a share of the whole, ``[n]``; sums to one.
    """

    logits: Tensor | None
    short: Any
    rows: Tensor | None
    count: Tensor
    weight: Tensor


def _flat(logits: Tensor | None, short: Any, rows: Tensor | None, sample_weight: Tensor | None) -> Batch:
    """Returns the batch with one row dimension, its shapes checked."""
    if logits is not None and logits.ndim < 2:
        raise ValueError(f"logits must be [..., classes], got shape {tuple(logits.shape)}")
    if logits is not None and not logits.is_floating_point():
        raise ValueError(f"logits must be floating point, got {logits.dtype}")
    lead = (len(short),) if logits is None else tuple(logits.shape[:-1])
    n = int(np.prod(lead))
    if n == 0:
        raise ValueError("the batch is empty")
    if not isinstance(short, Tensor | np.ndarray):
        if len(short) != n:
            raise ValueError(f"short must have a value for each of the {n} rows of logits, got {len(short)}")
    elif tuple(short.shape[: len(lead)]) != lead:
        raise ValueError(f"short must be {list(lead)} as the rows of logits are, got shape {tuple(short.shape)}")
    else:
        short = short.reshape(n, *short.shape[len(lead) :])
    for name, given in (("rows", rows), ("sample_weight", sample_weight)):
        if given is not None and tuple(given.shape) != lead:
            raise ValueError(f"{name} must be {list(lead)}, got shape {tuple(given.shape)}")
    device = short.device if isinstance(short, Tensor) else None
    dtype = torch.float32 if device is not None and device.type == "mps" else torch.float64  # mps has no other
    if logits is not None:
        logits = logits.reshape(n, -1)
        device, dtype = logits.device, torch.promote_types(logits.dtype, torch.float32)
    if sample_weight is None:
        count = torch.ones(n, dtype=dtype, device=device)
        weight = count / n
    else:
        count = sample_weight.reshape(n).to(dtype)
        weight = count / count.sum()
    return Batch(logits, short, None if rows is None else rows.reshape(n), count, weight)


def _check_values(batch: Batch) -> None:
    if not bool(batch.weight.isfinite().all() & (batch.count >= 0).all()):
        raise ValueError("sample_weight must be finite, not negative and not all zero")
    if batch.logits is not None and bool(batch.logits.detach().isnan().any()):
        row = int(batch.logits.detach().isnan().any(-1).nonzero()[0, 0])
        raise ValueError(f"logits have NaN in row {row}: training diverged, or a row of the data has NaN")


@dataclass(frozen=True)
class Groups:
    """The rows of a batch by short context.

    Attributes:
        short: the different short contexts; compiled, there are as many as rows, and the last have no weight.
        of_row: the group of each row, ``[n]``.
        size: what the rows of each group count for together, ``[groups]``.
        weight: the same as a share of the batch, ``[groups]``; sums to one.
        share: what each row counts for within its group, ``[n]``.
    """

    short: Any
    of_row: Tensor
    size: Tensor
    weight: Tensor
    share: Tensor

    @classmethod
    def of(cls, batch: Batch) -> "Groups":
        """Finds the different short contexts of a batch."""
        short, of_row = distinct(batch.short)
        of_row = of_row.to(batch.weight.device)
        none = batch.count.new_zeros(len(short))
        size = none.index_add(0, of_row, batch.count)
        # A group without weight has a plain mean: it counts for nothing, but NaN times nothing would be NaN.
        given = torch.where(size[of_row] > 0, batch.count, 1.0)
        share = given / none.index_add(0, of_row, given)[of_row]
        return cls(short, of_row, size, size / batch.count.sum(), share)

    def mean(self, values: Tensor) -> Tensor:
        """Returns the weighted mean of each group's rows: ``[n, classes]`` to ``[groups, classes]``."""
        return segment_sum(values, self.of_row, len(self.weight), self.share.to(values.dtype))


def segment_sum(values: Tensor, group: Tensor, n_groups: int, weight: Tensor) -> Tensor:
    """Returns the weighted sum of the rows of each group: ``[n, classes]`` to ``[groups, classes]``."""
    if values.device.type != "cpu" or torch.compiler.is_compiling():
        return values.new_zeros(n_groups, values.shape[1]).index_add_(0, group, values * weight[:, None])
    # On a CPU one pass over the values; index_add_ needs them weighted first, and is many times slower.
    order = group.argsort()
    size = torch.bincount(group, minlength=n_groups)
    begin = size.cumsum(0) - size
    return nn.functional.embedding_bag(order, values, begin, mode="sum", per_sample_weights=weight[order])


def distinct(short: Any) -> tuple[Any, Tensor]:
    """Returns each different short context once, and which of them each row has, ``[n]``."""
    if isinstance(short, np.ndarray) and short.dtype.kind in "iuf":
        short = torch.from_numpy(short)
    if isinstance(short, Tensor):
        if short.ndim == 1 and torch.compiler.is_compiling():
            ordered, order = short.sort()
            number = torch.cat([ordered.new_zeros(1), (ordered[1:] != ordered[:-1]).long()]).cumsum(0)
            of_row = torch.empty_like(number).index_copy(0, order, number)
            return ordered[:1].expand(len(short)).clone().index_copy(0, number, ordered), of_row
        different, of_row = torch.unique(short, dim=0, return_inverse=True)
        return different, of_row
    seen: dict[Any, int] = {}
    of_row = torch.tensor([seen.setdefault(value, len(seen)) for value in short])
    return list(seen), of_row


@dataclass(frozen=True)
class Pairs:
    """Short contexts with extended ones, one pair a row.

    Attributes:
        group: which of the short contexts, ``[m]``, in rising order.
        index: which extended context, ``[m]``.
        weight: ``[m]``.
        each: how many pairs every group has, if all have as many; else 0.
    """

    group: Tensor
    index: Tensor
    weight: Tensor
    each: int

    def log_sum(self, log_q: Tensor, n_groups: int) -> Tensor:
        """Returns ``log Σ w Q`` of each group, ``[groups, classes]``, from log-probabilities ``[m, classes]``."""
        if self.each == 0:
            return functional.log_sum_groups(log_q, self.weight, self.group, n_groups)
        log_w = self.weight.to(log_q.dtype).log()[:, None]
        return functional.log_sum((log_q + log_w).view(n_groups, self.each, -1))


def pairs_of(contexts: Contexts, columns: slice = slice(None)) -> Pairs:
    """Returns the pairs of some columns of contexts, without those that are padding."""
    index, weights = contexts.index[:, columns], contexts.weights[:, columns]
    n, width = index.shape
    if not contexts.padded:
        group = torch.arange(n, device=index.device).repeat_interleave(width)
        return Pairs(group, index.flatten(), weights.flatten(), width)
    where = (weights.flatten() > 0).nonzero()[:, 0]
    return Pairs(where // width, index.flatten()[where], weights.flatten()[where], 0)


def predicted(predict: Predict, short: Any, pairs: Pairs) -> Tensor:
    """Calls the full model on pairs; returns log-probabilities, ``[m, classes]``."""
    if isinstance(short, Tensor):
        values: Any = short.index_select(0, pairs.group.to(short.device))
    else:
        values = [short[group] for group in pairs.group.tolist()]
    logits = predict(values, pairs.index)
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != len(pairs.index):
        given = f"shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else f"a {type(logits).__name__}"
        raise ValueError(
            f"predict(short, index) must return logits [{len(pairs.index)}, classes] for {len(pairs.index)} contexts,"
            f" got {given}"
        )
    return functional.log_softmax(logits)


def with_neighbors(inducer: Inducer) -> Inducer:
    """Returns the inducer; a kernel that has hardly any neighbours to average over warns first."""
    if isinstance(inducer, Kernel):
        inducer.warn_of_few()
    return inducer


def matching_risk(log_induced: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """Returns ``-Σ_g weight_g Σ_y P̂_g(y) log Q̂_g(y)``, without looking at values.

    A ``Q̂`` below the smallest number of its type counts as that: its share of the risk stops growing at 87 nats in
    single precision, and its gradient is zero.
    """
    floor = float(np.log(torch.finfo(log_induced.dtype).tiny))
    with torch.autocast(log_induced.device.type, enabled=False):  # which would take the product in half precision
        by_group: Tensor = torch.linalg.vecdot(target, log_induced.clamp(min=floor))
    return -(weight.to(by_group.dtype) * by_group).sum()
