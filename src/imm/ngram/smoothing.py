"""Modified Kneser-Ney: from counts to probabilities, in two conventions.

At the highest order ``a(g)`` is how often the n-gram ``g`` occurs; below, it is how many different words stand
before it, ``N1+(· g)``, or, if ``g`` begins with ``<s>``, before which nothing stands, again how often it occurs. With
``D`` from counts of these counts, order by order:

``P(y|x) = (a(x y) - D(a(x y))) / Σ_y a(x y) + ν(x) P(y|x without its first word)``,
``ν(x) = Σ_y D(a(x y)) / Σ_y a(x y)``.

The conventions differ in where this ends:

* ``stream``: ``P(y) = N1+(· y) / Σ_y N1+(· y)``, not discounted; one stream, no ``<s>``.
* ``sentence``: discounted too, and ``ν`` spread evenly over all words, ``</s>`` and ``<unk>``, but not ``<s>``.
"""

from typing import NamedTuple

import numpy as np

from imm.ngram.counting import Counts
from imm.ngram.discounts import Discounts
from imm.ngram.keys import PAD, Columns, Ints, add_up, count, unpack, without_first
from imm.ngram.trie import Floats, Level, Trie

ZERO_COUNTS = ("one", "keep")

PIECE = 1 << 20
"""How many n-grams are worked on at once: what is needed besides the counts and the result stays small."""


def smooth(counts: Counts, n_words: int, zero_counts: str) -> tuple[Trie, tuple[Discounts | None, ...]]:
    """The smoothed n-grams of ``counts`` over ``n_words`` words, and the discounts of orders 1, 2, ...

    Args:
        counts: of the highest order.
        n_words: words are ``0 .. n_words - 1``.
        zero_counts: in the ``stream`` convention, what to do with a word that never stands after another, so that
            ``N1+(· y) = 0``: ``one`` takes it as one, ``keep`` leaves its probability zero.
    """
    check_zero_counts(zero_counts)
    largest = max(counts.largest, counts.bos or 0, counts.eos or 0)
    if largest >= n_words:
        raise ValueError(f"token {largest} is not below the number of classes, {n_words}")
    orders = _adjust(counts)
    words = (orders[0].columns[-1] & ((1 << counts.bits) - 1)) - 1
    base, taken = _base(np.bincount(words, minlength=n_words), counts.bos, zero_counts)
    trie, discounts = Trie(base, (), ()), [taken]
    while orders:
        adjusted = orders.pop(0)
        taken = Discounts.estimate(adjusted.a)
        discounts.append(taken)
        level, missing = _level(trie, adjusted, counts.bits, taken)
        trie = Trie(base, (*trie.levels, level), (*trie.missing, missing))
    return trie, tuple(discounts)


def check_zero_counts(zero_counts: str) -> None:
    """Refuses what :func:`smooth` would, for those who count long before."""
    if zero_counts not in ZERO_COUNTS:
        raise ValueError(f"zero_counts must be one of {', '.join(ZERO_COUNTS)}, got {zero_counts!r}")


class _Adjusted(NamedTuple):
    """The n-grams of an order, packed and ascending, and their ``a``."""

    order: int
    columns: Columns
    a: Ints


def _adjust(counts: Counts) -> list[_Adjusted]:
    """Orders 2, 3, ..., without what the pad stands before."""
    bos = None if counts.bos is None else counts.bos + 1
    columns, a = counts.columns, counts.counts
    out: list[_Adjusted] = []
    for order in range(counts.order, 1, -1):
        # The pad is the smallest symbol: what begins with it comes first.
        begin = int(np.searchsorted(next(unpack(columns, order, counts.bits)), PAD, side="right"))
        out.insert(0, _Adjusted(order, [column[begin:] for column in columns], a[begin:]))
        if order > 2:
            columns, a = _shorten(columns, a, begin, order, counts.bits, bos)
    return out


def _shorten(columns: Columns, a: Ints, begin: int, order: int, bits: int, bos: int | None) -> tuple[Columns, Ints]:
    """The n-grams without their first symbol, and how many different words stood before each.

    Those up to ``begin`` have the pad before them. They keep their count if they begin with ``<s>``, or with the
    pad again; otherwise they are the beginning of the stream, and nothing is added: they are listed only.
    """
    shorter = without_first(columns, order, bits)
    first = next(unpack([column[:begin] for column in shorter], order - 1, bits))
    kept = np.where((first == PAD) | (first == bos), a[:begin], 0)
    after_words, before = count([column[begin:] for column in shorter], (order - 1) * bits)
    together = [np.concatenate([column[:begin], after]) for column, after in zip(shorter, after_words, strict=True)]
    return add_up(together, np.concatenate([kept, before]))


def _base(unigrams: Ints, bos: int | None, zero_counts: str) -> tuple[Floats, Discounts | None]:
    if bos is None:
        n = np.maximum(unigrams, 1) if zero_counts == "one" else unigrams
        if not n.any():
            raise ValueError("no token stands after another: there is nothing to back off to")
        return (n / n.sum()).astype(np.float32), None
    discounts = Discounts.estimate(unigrams)
    taken = discounts.of(unigrams)
    p = (unigrams - taken) / unigrams.sum() + taken.sum() / unigrams.sum() / (len(unigrams) - 1)
    p[bos] = 0
    return p.astype(np.float32), discounts


def _level(trie: Trie, adjusted: _Adjusted, bits: int, discounts: Discounts) -> tuple[Level, Floats]:
    """One order more for a trie, and ν of the n-grams that were its longest."""
    n_parents = len(trie.levels[-1].keys) if trie.levels else len(trie.base)
    n = len(adjusted.a)
    keys, values = np.empty(n, np.int64), np.empty(n, np.float32)
    taken, total = np.zeros(n_parents), np.zeros(n_parents)
    pieces = [slice(i, i + PIECE) for i in range(0, n, PIECE)]
    for piece in pieces:
        columns = [column[piece] for column in adjusted.columns]
        *context, word = (symbol - 1 for symbol in unpack(columns, adjusted.order, bits))
        parent = trie.find(context)
        keys[piece] = (parent << trie.bits) | word
        place, a = parent - parent[0], adjusted.a[piece]  # parents ascend: a piece has those of a stretch
        stretch = slice(int(parent[0]), int(parent[-1]) + 1)
        discount = discounts.of(a)
        values[piece] = a - discount
        taken[stretch] += np.bincount(place, weights=discount)
        total[stretch] += np.bincount(place, weights=a)
    share = 1 / np.maximum(total, 1)  # without any count there is nothing to share
    for piece in pieces:
        values[piece] *= share[keys[piece] >> trie.bits]
    missing = np.ones(n_parents, np.float32)
    np.divide(taken, total, out=missing, where=total > 0, casting="same_kind")
    return Level(keys, values), missing
