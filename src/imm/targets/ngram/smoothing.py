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

import numpy as np

from imm.targets.ngram.counting import Counts
from imm.targets.ngram.discounts import Discounts
from imm.targets.ngram.keys import PAD, Columns, Ints, add_up, pack, unpack
from imm.targets.ngram.trie import Floats, Level, Trie, word_bits

ZERO_COUNTS = ("one", "keep")


def smooth(counts: Counts, n_words: int, zero_counts: str) -> tuple[Trie, tuple[Discounts | None, ...]]:
    """The smoothed n-grams of ``counts`` over ``n_words`` words, and the discounts of orders 1, 2, ...

    Args:
        counts: of the highest order.
        n_words: words are ``0 .. n_words - 1``.
        zero_counts: in the ``stream`` convention, what to do with a word that never stands after another, so that
            ``N1+(· y) = 0``: ``one`` takes it as one, ``keep`` leaves its probability zero.
    """
    if zero_counts not in ZERO_COUNTS:
        raise ValueError(f"zero_counts must be one of {', '.join(ZERO_COUNTS)}, got {zero_counts!r}")
    largest = max(counts.largest, counts.bos or 0, counts.eos or 0)
    if largest >= n_words:
        raise ValueError(f"token {largest} is not below the number of classes, {n_words}")
    adjusted = _adjust(counts)
    unigrams = np.bincount(adjusted[0][0][-1], minlength=n_words)
    base, base_discounts = _base(unigrams, counts.bos, zero_counts)
    discounts: list[Discounts | None] = [base_discounts]
    levels: list[Level] = []
    missing: list[Floats] = []
    trie = Trie(base, (), ())
    for grams, a in adjusted:
        parent = trie.find(np.stack(grams[:-1], 1))
        taken = Discounts.estimate(a)
        levels_size = len(levels[-1].keys) if levels else n_words
        level, nu = _level(parent, grams[-1], a, taken, levels_size, word_bits(n_words))
        levels.append(level)
        missing.append(nu)
        discounts.append(taken)
        trie = Trie(base, tuple(levels), tuple(missing))
    return trie, tuple(discounts)


def _adjust(counts: Counts) -> list[tuple[list[Ints], Ints]]:
    """For orders 2, 3, ... the n-grams, word by word and ascending, and their ``a``."""
    bos = None if counts.bos is None else counts.bos + 1
    columns, a = counts.columns, counts.counts
    out = []
    for order in range(counts.order, 1, -1):
        symbols = unpack(columns, order, counts.bits)
        real = symbols[0] != PAD
        out.append(([symbol[real] - 1 for symbol in symbols], a[real]))
        if order > 2:
            columns, a = _shorten(symbols, a, bos, counts.bits)
    return out[::-1]


def _shorten(symbols: list[Ints], a: Ints, bos: int | None, bits: int) -> tuple[Columns, Ints]:
    """The n-grams without their first symbol, and how many different words stood before each.

    After the pad an n-gram keeps its own count, so that it arrives where it begins with ``<s>``; without ``<s>`` it
    is the beginning of the stream, before which nothing stood: it is listed, with nothing added.
    """
    after_pad = symbols[0] == PAD
    keeps = symbols[1] == PAD
    if bos is not None:
        keeps = keeps | (symbols[1] == bos)
    weight = np.where(after_pad, np.where(keeps, a, 0), 1)
    return add_up(pack(symbols[1:], bits), weight)


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


def _level(parent: Ints, word: Ints, a: Ints, discounts: Discounts, n_parents: int, bits: int) -> tuple[Level, Floats]:
    taken = discounts.of(a)
    total = np.bincount(parent, weights=a, minlength=n_parents)
    nu = np.ones(n_parents)
    np.divide(np.bincount(parent, weights=taken, minlength=n_parents), total, out=nu, where=total > 0)
    values = np.zeros(len(a))
    np.divide(a - taken, total[parent], out=values, where=a > 0)
    return Level((parent << bits) | word, values.astype(np.float32)), nu.astype(np.float32)
