"""Which rows' extended contexts go with each short context of a table: at most linear in the rows."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from imm.inducers import Kernel, Multiset
from imm.tabular.distinct_rows import distinct

Array = NDArray[Any]

BATCH = 1 << 21
"""Pairs looked up at a time: what is temporary stays small."""

EXACT = 1000
"""Rows up to which neighbours are exactly the nearest; beyond, they may be up to twice as far."""


@dataclass(frozen=True)
class Pairs:
    """Short contexts, and the rows whose extended contexts go with each: π(extended | short) as one flat list.

    Attributes:
        row: ``[T]``, a row of the table that has the short context.
        share: ``[T]``, what part of the rows has it; sums to one.
        start: ``[T + 1]``, where the pairs of each short context begin.
        extended: ``[P]``, the row whose extended context it is.
        weight: ``[P]``, its probability; sums to one over the pairs of a short context.
        code: ``[n]``, the short context of each row; -1 if it is none of these.
    """

    row: NDArray[np.intp]
    share: Array
    start: NDArray[np.intp]
    extended: NDArray[np.int32]
    weight: Array
    code: NDArray[np.intp]

    @cached_property
    def width(self) -> int | None:
        """How many pairs a short context has, if that is the same for all."""
        size = np.diff(self.start)
        return int(size[0]) if (size == size[0]).all() else None

    def among(self, rows: NDArray[np.intp], n: int) -> "Pairs":
        """The same, found for ``rows`` of a table that has ``n``."""
        code = np.full(n, -1, dtype=np.intp)
        if len(self.code):
            code[rows] = self.code
        return replace(self, row=rows[self.row], extended=rows[self.extended].astype(np.int32), code=code)

    def part(self, begin: int, end: int) -> "Pairs":
        """Short contexts ``begin`` to ``end`` only, as views."""
        first, last = self.start[begin], self.start[end]
        return Pairs(
            self.row[begin:end],
            self.share[begin:end],
            self.start[begin : end + 1] - first,
            self.extended[first:last],
            self.weight[first:last],
            self.code,
        )

    def sum(self, values: Array) -> Array:
        """Sums ``values``, ``[..., P]``, over each short context's pairs, ``[..., T]``."""
        if self.width is not None:
            by_context: Array = values.reshape(*values.shape[:-1], len(self.start) - 1, self.width).sum(-1)
            return by_context
        return np.add.reduceat(values, self.start[:-1], axis=-1)

    def spread(self, values: Array) -> Array:
        """The value ``[..., T]`` of its short context for each pair, ``[..., P]``."""
        return np.repeat(values, np.diff(self.start) if self.width is None else self.width, axis=-1)


def find_pairs(
    short: Array,
    weight: Array,
    n_neighbors: int | None,
    alpha: float = 1.0,
    alone: bool = False,
    asked: Array | None = None,
) -> Pairs:
    """The extended contexts for the short context of every row   (Eqs. induced-Q-full, induced-Q-logreg).

    Where ``n_neighbors`` rows or more have a short context in common, these rows are its extended contexts (the
    multiset). Where fewer do, the ``n_neighbors`` nearest rows are, with Laplace weights ``exp(-alpha · distance)``
    over standardised short features; with ``n_neighbors=None`` all rows are, always by the kernel.

    Args:
        short: ``[n, features]``. No two rows of the table may be the same one with a weight each.
        weight: ``[n]``, positive; a weight of 2 counts as the row twice.
        n_neighbors: see above.
        alpha: one over the kernel's bandwidth, in standard deviations.
        alone: every short context has its own row only; for a model that has no extended features.
        asked: other short contexts, ``[T, features]``, each of which is answered in its place; ``row`` and
            ``code`` are then empty.
    """
    n = len(short)
    groups = distinct(short)
    total = groups.total(weight)
    row, code, own = groups.first, groups.code, np.arange(len(groups.first))
    share, wanted = total / total.sum(), short[groups.first]
    if asked is not None:
        both = distinct(np.vstack([wanted, asked]))
        place = np.full(len(both.first), -1)
        place[both.code[: len(own)]] = own
        own, wanted, share = place[both.code[len(own) :]], asked, np.full(len(asked), 1 / len(asked))
        row = code = np.empty(0, dtype=np.intp)
    elif alone or n_neighbors == 1:
        ones = np.ones(len(own), dtype=weight.dtype)
        return Pairs(row, share, np.arange(len(own) + 1), row.astype(np.int32), ones, code)
    multiset = Multiset(torch.from_numpy(groups.code))
    offsets, rows = multiset.offsets.numpy(), multiset.rows.numpy()
    size = np.where(own >= 0, np.diff(offsets)[own], 0)
    is_few = np.ones(len(own), dtype=bool) if n_neighbors is None else size < n_neighbors
    width = n if n_neighbors is None else min(n_neighbors, n)
    start = np.concatenate([[0], np.cumsum(np.where(is_few, width, size), dtype=np.intp)])
    extended = np.empty(start[-1], dtype=np.int32)
    mass = np.empty(start[-1], dtype=weight.dtype)
    few = np.flatnonzero(is_few)
    if len(few):
        mean, scale = _standard(short, weight)
        tree = None if width == n else width
        slack = 0.0 if n <= EXACT else 1.0
        kernel = Kernel((short - mean) / scale, alpha, sample_weight=weight, n_neighbors=tree, slack=slack)
        step = max(1, BATCH // width)
        for part in (few[i : i + step] for i in range(0, len(few), step)):
            found = kernel.every((wanted[part] - mean) / scale)
            place = start[part][:, None] + np.arange(width)
            extended[place], mass[place] = found.index.numpy(), found.weights.numpy()
    for t in np.flatnonzero(~is_few):
        group = rows[offsets[own[t]] : offsets[own[t] + 1]]
        extended[start[t] : start[t + 1]] = group
        mass[start[t] : start[t + 1]] = weight[group] / total[own[t]]
    return Pairs(row, share, start, extended, mass, code)


def _standard(short: Array, weight: Array) -> tuple[Array, Array]:
    """Weighted mean and deviation of each feature; a constant one has deviation 1."""
    mean = np.average(short, axis=0, weights=weight)
    deviation = np.sqrt(np.average((short - mean) ** 2, axis=0, weights=weight))
    return mean, np.where(deviation > 1e-6 * np.abs(mean) + 1e-30, deviation, 1.0)
