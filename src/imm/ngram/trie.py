"""Where n-grams are found: by their first n-1 words' place, then their last word."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from imm.ngram.keys import Ints

Floats = NDArray[Any]


@dataclass(frozen=True)
class Level:
    """All n-grams of one order, at least 2, ascending.

    Attributes:
        keys: ``parent << bits | word``: the parent is the place of the first n-1 words one level below, or the
            first word itself for bigrams.
        values: the discounted part of the probability of each, ``(a - D(a)) / Σ a``.
    """

    keys: Ints
    values: Floats


class Span(NamedTuple):
    """For some rows of a batch, where their contexts' entries begin and end in a level, and what they are times."""

    level: Level
    rows: Ints
    begin: Ints
    end: Ints
    weight: Floats


@dataclass(frozen=True)
class Trie:
    """``P(y|x) = value(x y) + ν(x) P(y|x without its first word)``, down to ``base(y)``.

    Attributes:
        base: the last back-off, ``[words]``.
        levels: orders 2, 3, ...
        missing: ν(x) for the n-grams x of orders 1, 2, ... below the highest; one where x was never a context.
    """

    base: Floats
    levels: tuple[Level, ...]
    missing: tuple[Floats, ...]

    @property
    def order(self) -> int:
        """Of the longest n-grams."""
        return len(self.levels) + 1

    def without(self, words: NDArray[np.bool_]) -> "Trie":
        """The same where these, with which no n-gram of a higher order ends, have no probability."""
        base = np.where(words, 0, self.base)
        return Trie(base / base.sum(), self.levels, self.missing)

    @property
    def bits(self) -> int:
        """Of a word in a key."""
        return word_bits(len(self.base))

    @cached_property
    def offsets(self) -> tuple[Ints, ...]:
        """Where the rows of the contexts of orders 1, 2, ... begin one level above, and the end."""
        return tuple(
            np.concatenate([[0], np.cumsum(np.bincount(level.keys >> self.bits, minlength=len(missing)))])
            for level, missing in zip(self.levels, self.missing, strict=True)
        )

    def children(self, node: Ints, word: Ints, order: int) -> Ints:
        """The place of the n-gram ``(node, word)`` at ``order``; -1 if there is none, or if ``node`` is -1."""
        keys = self.levels[order - 2].keys
        if len(keys) == 0:
            return np.full(len(node), -1)
        wanted = (node << self.bits) | word
        place = np.searchsorted(keys, wanted)
        place[place == len(keys)] = 0
        place[(node < 0) | (keys[place] != wanted)] = -1
        return place

    def find(self, words: Sequence[Ints]) -> Ints:
        """The places of n-grams whose first words, second words, ... are given; -1 for those that are not there."""
        node = words[0]
        for order, word in enumerate(words[1:], 2):
            node = self.children(node, word, order)
        return node

    def words(self, order: int) -> Ints:
        """The n-grams of an order word by word, ``[n, order]``."""
        columns: list[Ints] = []
        node = np.arange(len(self.base) if order == 1 else len(self.levels[order - 2].keys))
        for n in range(order, 1, -1):
            keys = self.levels[n - 2].keys[node]
            columns.append(keys & ((1 << self.bits) - 1))
            node = keys >> self.bits
        return np.stack([node, *columns[::-1]], 1)

    def score(self, contexts: Ints, words: Ints) -> NDArray[np.float64]:
        """``P(word|context)``, ``[n]``, for contexts ``[n, m]``; a negative entry stands before the beginning."""
        p = self.base[words].astype(np.float64)
        for length in range(1, contexts.shape[1] + 1):
            node = self._context(contexts, length)
            place = self.children(node, words, length + 1)
            seen, known = place >= 0, node >= 0
            p[known] *= self.missing[length - 1][node[known]]
            p[seen] += self.levels[length - 1].values[place[seen]]
        return p

    def dense(self, contexts: Ints) -> Floats:
        """``P(·|context)``, ``[n, words]``."""
        spans, nu = self.spans(contexts)
        out = np.multiply.outer(nu, self.base)
        mask = (1 << self.bits) - 1
        for span in spans:
            keys, values = span.level.keys, span.level.values
            # Row by row: a row's entries are next to each other, and so is where they go.
            for i, begin, end, weight in zip(*(part.tolist() for part in span[1:]), strict=True):
                entries = values[begin:end]
                out[i][keys[begin:end] & mask] += entries if weight == 1 else weight * entries
        return out

    def sparse(self, contexts: Ints) -> tuple[Ints, Floats, Floats]:
        """Rows as two parts: ``P(y|x) = Σ value + ν(x) base(y)``, the sum over the entries of that row and word.

        Returns:
            Row and word of each entry, ``[2, entries]``, its value, and ν ``[n]``.
        """
        spans, nu = self.spans(contexts)
        indices, values = [np.empty((2, 0), np.int64)], [nu[:0]]
        for level, rows, begin, end, weight in spans:
            size = end - begin
            place = np.arange(size.sum()) + np.repeat(end - np.cumsum(size), size)
            word = level.keys[place] & ((1 << self.bits) - 1)
            indices.append(np.stack([np.repeat(rows, size), word]))
            values.append(level.values[place] * np.repeat(weight, size))
        return np.concatenate(indices, 1), np.concatenate(values), nu

    def spans(self, contexts: Ints) -> tuple[list[Span], Floats]:
        """Where the entries of each context are, for all orders, and ν ``[n]``, the product of all missing masses."""
        out = []
        nu = np.ones(len(contexts), self.base.dtype)
        for length in range(contexts.shape[1], 0, -1):
            node = self._context(contexts, length)
            rows = np.flatnonzero(node >= 0)
            node = node[rows]
            offsets = self.offsets[length - 1]
            out.append(Span(self.levels[length - 1], rows, offsets[node], offsets[node + 1], nu[rows]))
            nu[rows] *= self.missing[length - 1][node]
        return out, nu

    def renamed(self, names: Ints, n_words: int) -> "Trie":
        """The same where word ``i`` is called ``names[i]``, of ``n_words``; -1 leaves it out.

        The last back-off of the others then adds up to one. New words have no probability. Two words may get one name
        if nothing follows one of them.
        """
        kept, lost = names >= 0, float(self.base[names < 0].sum())
        base = np.zeros(n_words, self.base.dtype)
        np.add.at(base, names[kept], self.base[kept] / (1 - lost))
        missing = [np.ones(n_words, self.base.dtype)]
        leads = kept & (np.diff(self.offsets[0]) > 0)
        missing[0][names[leads]] = self.missing[0][leads]
        node, levels, bits = names, [], word_bits(n_words)
        for order, level in enumerate(self.levels, 2):
            parent, word = node[level.keys >> self.bits], names[level.keys & ((1 << self.bits) - 1)]
            if ((parent >= 0) & (word < 0)).any():
                raise ValueError(f"a word that is left out is predicted by {order}-grams")
            kept = parent >= 0
            keys = (parent[kept] << bits) | word[kept]
            rank = np.argsort(keys, kind="stable")
            levels.append(Level(keys[rank], level.values[kept][rank]))
            node = np.full(len(kept), -1)
            node[np.flatnonzero(kept)[rank]] = np.arange(len(keys))
            if order <= len(self.missing):
                missing.append(self.missing[order - 1][kept][rank])
        return Trie(base, tuple(levels), tuple(missing))

    def _context(self, contexts: Ints, length: int) -> Ints:
        """The places of the last ``length`` words of each context."""
        words = contexts[:, contexts.shape[1] - length :]
        node = self.find(list(words.clip(min=0).T))
        node[(words < 0).any(1)] = -1
        return node


def word_bits(n_words: int) -> int:
    """How many bits hold any of ``n_words`` words."""
    return max(n_words - 1, 1).bit_length()
