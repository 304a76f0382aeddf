"""Counting n-grams in one pass over a stream of tokens, in pieces."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imm.ngram.keys import PAD, Columns, Ints, add_up, bits_for, count, pack, unpack


@dataclass(frozen=True)
class Counts:
    """How often each n-gram of one order occurs, padded: everything that smoothing needs, of all lower orders too.

    There is one n-gram for each predicted token: the token and the ``order - 1`` symbols before it. Before the
    beginning of the stream, or of the sentence's ``<s>``, stands the pad.

    Attributes:
        order: of the n-grams.
        bits: of a symbol; see :mod:`imm.ngram.keys`.
        columns: the different n-grams, packed, ascending.
        counts: how often each occurs.
        eos: the token that ends a sentence.
        bos: the token that stands before each sentence; None if the tokens are one stream.
    """

    order: int
    bits: int
    columns: Columns
    counts: Ints
    eos: int | None
    bos: int | None

    @property
    def largest(self) -> int:
        """The largest token that was counted."""
        return int((self.columns[-1] & ((1 << self.bits) - 1)).max()) - 1

    def symbols(self) -> Iterator[Ints]:
        """The j-th symbols of the n-grams, for each j."""
        return unpack(self.columns, self.order, self.bits)

    def renamed(self, names: NDArray[np.integer]) -> "Counts":
        """The counts where token ``i`` is called ``names[i]``; tokens that get the same name are counted together."""
        symbol = np.concatenate([[PAD], np.asarray(names, np.int64) + 1])
        bits = bits_for(int(symbol.max()))
        symbols = (symbol[old] for old in self.symbols())
        columns, counts = add_up(pack(symbols, self.order, bits), self.counts)
        eos, bos = (None if token is None else int(names[token]) for token in (self.eos, self.bos))
        return Counts(self.order, bits, columns, counts, eos, bos)


class Windows:
    """Cuts a stream that is given in pieces into n-grams, one for each predicted token.

    Args:
        order: of the n-grams, at least 2.
        eos: the token that ends a sentence. Needed for ``bos``.
        bos: the token that begins each sentence, put there by :meth:`next`; None for one stream.
    """

    def __init__(self, order: int, eos: int | None = None, bos: int | None = None) -> None:
        if isinstance(order, bool) or int(order) != order or order < 2:
            raise ValueError(f"order must be a whole number of at least 2, got {order!r}")
        if bos is not None and (eos is None or eos == bos):
            raise ValueError(f"sentences need two different tokens eos and bos, got {eos} and {bos}")
        self.order, self.eos, self.bos = int(order), eos, bos
        opening = [PAD] * (order - 1) if bos is None else [PAD] * (order - 2) + [bos + 1]
        self._opening = self._before = np.array(opening, np.int64)

    def next(self, tokens: Ints) -> list[Ints]:
        """The j-th symbols of the n-grams that end in ``tokens``, for each j; the pad stands before the beginning."""
        symbols = np.concatenate([self._before, self._with_openings(tokens)])
        self._before = symbols[len(symbols) - self.order + 1 :]
        windows = [symbols[j : len(symbols) - self.order + 1 + j] for j in range(self.order)]
        if self.bos is None:
            return windows
        predicted = (windows[-1] != PAD) & (windows[-1] != self.bos + 1)
        return [window[predicted] for window in windows]

    def _with_openings(self, tokens: Ints) -> Ints:
        if self.bos is None:
            return tokens + 1
        if (tokens == self.bos).any():
            raise ValueError(f"token {self.bos} is bos, which is put before each sentence by itself: leave it out")
        after = np.flatnonzero(tokens == self.eos) + 1
        place = np.repeat(after, len(self._opening))
        return np.insert(tokens + 1, place, np.tile(self._opening, len(after)))


class Counter:
    """Counts n-grams of a stream that is given in pieces; memory grows with the different n-grams only.

    Args:
        order: of the n-grams, at least 2.
        eos: the token that ends a sentence. Needed for ``bos``.
        bos: given, n-grams do not cross sentences, and each sentence begins with this token, which
            :meth:`add` puts there: it does not stand in the stream. None: one stream.

    Example:
        >>> counter = Counter(2)
        >>> counter.add(np.array([7, 3, 7]))
        >>> counter.add(np.array([3]))
        >>> counts = counter.counts()
        >>> [(int(x) - 1, int(y) - 1, int(c)) for x, y, c in zip(*counts.symbols(), counts.counts)]
        [(-1, 7, 1), (3, 7, 1), (7, 3, 2)]
    """

    def __init__(self, order: int, eos: int | None = None, bos: int | None = None) -> None:
        self._windows = Windows(order, eos, bos)
        self.order, self.eos, self.bos = int(order), eos, bos
        self._largest = max(eos or 0, bos or 0)
        self._runs: list[tuple[Columns, Ints]] = []
        self._bits = bits_for(self._largest + 1)

    def add(self, tokens: Any) -> None:
        """Counts the next piece of the stream, integers ``[n]``."""
        tokens = check_tokens(tokens)
        if len(tokens) == 0:
            return
        self._widen(int(tokens.max()))
        windows = self._windows.next(tokens)
        self._runs.append(count(pack(windows, self.order, self._bits), self.order * self._bits))
        # Runs at least halve from each to the next: a count takes part in few merges, and memory stays bounded.
        while len(self._runs) > 1 and 2 * len(self._runs[-1][1]) > len(self._runs[-2][1]):
            self._merge()

    def counts(self) -> Counts:
        """What was counted so far."""
        while len(self._runs) > 1:
            self._merge()
        if not self._runs:
            raise ValueError("there are no tokens to count")
        columns, counts = self._runs[0]
        return Counts(self.order, self._bits, columns, counts, self.eos, self.bos)

    def _merge(self) -> None:
        *columns, counts = map(np.concatenate, zip(*((*c, n) for c, n in self._runs[-2:]), strict=True))
        del self._runs[-2:]
        self._runs.append(add_up(columns, counts))

    def _widen(self, largest: int) -> None:
        """Gives symbols more bits when a larger token comes; the order of the n-grams stays."""
        self._largest = max(self._largest, largest)
        bits = bits_for(self._largest + 1)
        if bits > self._bits:
            for i, (columns, counts) in enumerate(self._runs):
                self._runs[i] = pack(unpack(columns, self.order, self._bits), self.order, bits), counts
            self._bits = bits


def check_tokens(tokens: Any) -> Ints:
    """Refuses what are not integers from 0 up, ``[n]``."""
    array = np.asarray(tokens)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(f"tokens must be integers [n], got {array.dtype} of shape {array.shape}")
    if array.size and int(array.min()) < 0:
        raise ValueError(f"tokens must not be negative, got {int(array.min())}")
    return array.astype(np.int64, copy=False)
