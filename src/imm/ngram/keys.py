"""n-grams packed into integers, so that counting them is sorting.

A symbol takes ``bits`` bits. An n-gram fills one int64 column if it fits into 63 bits, otherwise as many columns as it
needs: the last column holds the last symbols, and n-grams are ordered by the first column first. Symbol 0 is the pad,
which stands before the beginning; token ``i`` is symbol ``i + 1``.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Columns = list[Ints]

PAD = 0

RADIX = 1 << 22
"""Up to so many keys are sorted by torch, digit by digit: on x86 two or three times as quick, for more memory."""


def bits_for(n_tokens: int) -> int:
    """How many bits a symbol needs: tokens below ``n_tokens``, and the pad."""
    return int(max(n_tokens, 1)).bit_length()


def _sizes(order: int, bits: int) -> list[int]:
    """How many symbols each column holds: the first what is left over, the others as many as fit."""
    per = 63 // bits
    first = order % per or per
    return [first] + [per] * ((order - first) // per)


def pack(symbols: Iterable[Ints], order: int, bits: int) -> Columns:
    """The columns of n-grams whose first symbols, second symbols, ... are given, ``[n]`` each.

    Example:
        >>> [hex(column[0]) for column in pack(np.array([[1], [2], [3]]), order=3, bits=8)]
        ['0x10203']
        >>> [hex(column[0]) for column in pack(np.array([[1], [2], [3]]), order=3, bits=30)]
        ['0x1', '0x80000003']
    """
    symbols = iter(symbols)  # one at a time: a whole list of them would be larger than what comes out
    columns = []
    for size in _sizes(order, bits):
        column = next(symbols).astype(np.int64)
        for symbol in islice(symbols, size - 1):
            column <<= bits
            column |= symbol
        columns.append(column)
    return columns


def unpack(columns: Columns, order: int, bits: int) -> Iterator[Ints]:
    """The inverse of :func:`pack`."""
    mask = (1 << bits) - 1
    for column, size in zip(columns, _sizes(order, bits), strict=True):
        for j in range(size - 1, -1, -1):
            yield (column >> bits * j) & mask


def without_first(columns: Columns, order: int, bits: int) -> Columns:
    """The n-grams without their first symbol, one order lower."""
    left = _sizes(order, bits)[0] - 1
    if left == 0:
        return columns[1:]
    return [columns[0] & ((1 << bits * left) - 1), *columns[1:]]


def count(columns: Columns, width: int) -> tuple[Columns, Ints]:
    """The different n-grams in ascending order, and how often each occurs. ``width`` is the bits of a whole n-gram."""
    if len(columns) > 1:
        return add_up(columns, np.ones(len(columns[0]), np.int64))
    keys = columns[0]
    ordered = _ascending(keys.astype(np.int32) if width < 32 else keys)  # half the bytes, half the time
    begin = _beginnings([ordered])
    return [ordered[begin].astype(np.int64)], np.diff(begin, append=len(ordered))


def _ascending(keys: NDArray[np.integer]) -> NDArray[np.integer]:
    if len(keys) > RADIX:
        return np.sort(keys)
    found: NDArray[np.integer] = torch.sort(torch.from_numpy(keys)).values.numpy()
    return found


def add_up(columns: Columns, counts: Ints) -> tuple[Columns, Ints]:
    """The same, where each row comes with a count. Quick where the rows are few ascending runs one after the other."""
    order = np.argsort(columns[0], kind="stable") if len(columns) == 1 else np.lexsort(columns[::-1])
    columns = [column[order] for column in columns]
    counts = counts[order]
    del order  # for large texts these are most of the memory
    begin = _beginnings(columns)
    if len(begin) == len(counts):
        return columns, counts
    return [column[begin] for column in columns], np.add.reduceat(counts, begin)


def _beginnings(ordered: Sequence[NDArray[np.integer]]) -> Ints:
    """Where a new n-gram begins."""
    if len(ordered[0]) == 0:
        return np.empty(0, np.int64)
    new = np.ones(len(ordered[0]), np.bool_)
    np.not_equal(ordered[0][1:], ordered[0][:-1], out=new[1:])
    for column in ordered[1:]:
        new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(new)
