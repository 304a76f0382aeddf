"""Rows of a table, each once: a weight of 2 and the row twice must become the same thing."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

PART = 1 << 15
"""Rows at a time where something temporary would be as large as the table."""


def parts(n: int) -> list[slice]:
    """All ``n`` rows, :data:`PART` at a time."""
    return [slice(i, i + PART) for i in range(0, n, PART)]


@dataclass(frozen=True)
class Distinct:
    """Which rows are the same.

    Attributes:
        first: the number of one row for each different one, ``[m]``, in an order that depends on the rows'
            content only, not on the order in which they came.
        code: for each row its place in ``first``, ``[n]``.
    """

    first: NDArray[np.intp]
    code: NDArray[np.intp]

    def total(self, weight: Array) -> Array:
        """The summed weight of each different row, ``[m]``."""
        return np.bincount(self.code, weights=weight, minlength=len(self.first))


def distinct(*columns: Array, also: Array | None = None) -> Distinct:
    """Finds equal rows of some arrays side by side, ``[n]`` or ``[n, width]`` each, by a 64-bit hash of each row.

    Args:
        columns: what is compared, and what the order of ``first`` depends on.
        also: compared too, but the order depends on it only where all else is equal.
    """
    key = _hash(columns, np.full(len(columns[0]), 0x9E3779B97F4A7C15, dtype=np.uint64))
    both = columns if also is None else (*columns, also)
    keys = key[None] if also is None else np.stack([key, _hash((also,), key.copy())])
    order = np.lexsort(keys[::-1])
    new = np.append(True, (keys[:, order[1:]] != keys[:, order[:-1]]).any(0))
    first = order[new]
    code = np.empty(len(key), dtype=np.intp)
    code[order] = np.cumsum(new) - 1
    for column in both:
        if len(first) < len(key) and not np.array_equal(column[first][code], column):  # the same hash for two rows
            together = np.hstack([np.reshape(column, (len(column), -1)).astype(np.float64) for column in both])
            _, first, code = np.unique(together, axis=0, return_index=True, return_inverse=True)
            break
    return Distinct(first, code.ravel())


def _hash(columns: tuple[Array, ...], key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One number a row, from ``key`` on; one column at a time, so that memory stays that of a column."""
    for block in columns:
        for column in np.reshape(block, (len(block), -1)).T:
            bits = (column.astype(np.float64) + 0.0).view(np.uint64)  # + 0.0: -0 is 0
            key ^= bits
            key *= np.uint64(0xFF51AFD7ED558CCD)
            key ^= key >> np.uint64(32)
    return key
