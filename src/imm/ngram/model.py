"""An n-gram model as target."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from imm.ngram.counting import Counter, Counts, check_tokens
from imm.ngram.discounts import Discounts
from imm.ngram.keys import Ints
from imm.ngram.smoothing import smooth
from imm.ngram.trie import Trie
from imm.targets.base import Target

CONVENTIONS = ("stream", "sentence")


class Parts(NamedTuple):
    """``P̂(y|short) = discounted + missing · backoff``: ``Σ`` of few entries a row, and one row shared by all.

    Attributes:
        discounted: sparse ``[n, classes]``; entries of the same place add up (there are several from order 3 on).
        missing: ν(short), the missing mass, ``[n]``.
        backoff: b(y), ``[classes]``.
    """

    discounted: Tensor
    missing: Tensor
    backoff: Tensor

    def dense(self) -> Tensor:
        """The rows, ``[n, classes]``."""
        return self.discounted.to_dense() + self.missing[:, None] * self.backoff


@dataclass(frozen=True)
class About:
    """How a model came to be, and which tokens have a meaning.

    Attributes:
        convention: ``stream``, ``sentence``, or ``arpa`` for one read from an ARPA file.
        eos, bos, unk: the tokens for the end of a line or sentence, the start of a sentence, unknown words.
        zero_counts: what was done with words without continuation count (``stream`` only).
        discounts: of orders 1, 2, ...; None where nothing was discounted, or where it is not known.
    """

    convention: str
    eos: int | None = None
    bos: int | None = None
    unk: int | None = None
    zero_counts: str | None = None
    discounts: tuple[Discounts | None, ...] = ()

    @property
    def fallback_orders(self) -> tuple[int, ...]:
        """The orders whose discounts are 0.5, 1, 1.5 because counts of counts were missing."""
        return tuple(n for n, d in enumerate(self.discounts, 1) if d is not None and not d.estimated)


class Ngram(Target):
    """The next word's distribution given the last words: modified Kneser-Ney, or whatever an ARPA file holds.

    Short contexts are integers ``[n, m]``, the last ``m`` tokens, oldest first, ``m`` at most ``order - 1``; ``[n]``
    is one token each. A context that was never seen is answered by its last ``m - 1`` tokens.

    Args:
        trie: the n-grams.
        classes: the words, in the order of their numbers.
        about: how the model came to be.

    Example:
        >>> bigram = Ngram.fit([0, 1, 0, 2, 0, 1, 0], classes=["the", "cat", "mat"], order=2)
        >>> bigram(torch.tensor([0, 2]))
        tensor([[0.2500, 0.4583, 0.2917],
                [0.7500, 0.1250, 0.1250]])
    """

    def __init__(self, trie: Trie, classes: Sequence[Hashable], about: About) -> None:
        super().__init__(classes)
        if len(self.classes) != len(trie.base):
            raise ValueError(f"the n-grams are over {len(trie.base)} words, got {len(self.classes)} classes")
        self.trie = trie
        self.about = about

    @classmethod
    def fit(
        cls,
        tokens: Any,
        classes: Sequence[Hashable] | int,
        order: int,
        convention: str = "stream",
        *,
        eos: int | None = None,
        bos: int | None = None,
        unk: int | None = None,
        zero_counts: str = "one",
    ) -> "Ngram":
        """Counts and smooths; see :mod:`imm.ngram.smoothing` for the two conventions.

        Args:
            tokens: integers ``[n]`` below the number of classes. In ``sentence``, each sentence ends with ``eos``,
                and ``bos`` does not occur: it is put before each sentence.
            classes: the words, or how many there are.
            order: of the n-grams, at least 2.
            convention: ``stream`` or ``sentence``.
            eos: the token for the end of a line.
            bos: the token for the start of a sentence; ``sentence`` only.
            unk: the token for unknown words; remembered, nothing more.
            zero_counts: ``one`` or ``keep``; see :func:`imm.ngram.smoothing.smooth`.
        """
        check_convention(convention, bos)
        counter = Counter(order, eos, bos)
        counter.add(tokens)
        return cls.from_counts(counter.counts(), classes, unk=unk, zero_counts=zero_counts)

    @classmethod
    def from_counts(
        cls,
        counts: Counts,
        classes: Sequence[Hashable] | int,
        *,
        unk: int | None = None,
        zero_counts: str = "one",
    ) -> "Ngram":
        """Smooths what a :class:`Counter` counted."""
        names = range(classes) if isinstance(classes, int) else classes
        trie, discounts = smooth(counts, len(names), zero_counts)
        stream = counts.bos is None
        about = About(
            "stream" if stream else "sentence",
            counts.eos,
            counts.bos,
            unk,
            zero_counts if stream else None,
            discounts,
        )
        return cls(trie, names, about)

    def renamed(self, names: Sequence[int], classes: Sequence[Hashable]) -> "Ngram":
        """The same over other classes: word ``i`` is the ``names[i]``-th of them, or left out where that is -1.

        See :meth:`imm.ngram.trie.Trie.renamed`.
        """
        eos, bos, unk = (
            None if token is None or names[token] < 0 else int(names[token])
            for token in (self.about.eos, self.about.bos, self.about.unk)
        )
        about = replace(self.about, eos=eos, bos=bos, unk=unk)
        return Ngram(self.trie.renamed(np.asarray(names, np.int64), len(classes)), classes, about)

    @property
    def n_short(self) -> int | None:
        """How many short contexts there are, if they are one word each; else None."""
        return len(self.classes) if self.order == 2 else None

    @property
    def order(self) -> int:
        """Of the longest n-grams."""
        return self.trie.order

    def probabilities(self, short: Any) -> Tensor:
        """P̂(· | short), ``[n, classes]``, float32."""
        return torch.from_numpy(self.trie.dense(self._contexts(short)).astype(np.float32, copy=False))

    def log_probabilities(self, short: Any) -> Tensor:
        """Log P̂(· | short), ``[n, classes]``; -inf where the probability is zero."""
        given: Tensor = self(short)
        return given.log_()

    def parts(self, short: Any) -> Parts:
        """The rows as a sparse discounted part, and the missing mass times the back-off."""
        contexts = self._contexts(short)
        index, value, nu = self.trie.sparse(contexts)
        discounted = torch.sparse_coo_tensor(
            torch.from_numpy(index),
            torch.from_numpy(value.astype(np.float32, copy=False)),
            (len(contexts), len(self.classes)),
            check_invariants=False,
        )
        backoff = torch.from_numpy(self.trie.base.astype(np.float32))
        return Parts(discounted, torch.from_numpy(nu.astype(np.float32, copy=False)), backoff)

    def score(self, short: Any, words: Any) -> Tensor:
        """``P̂(word|short)``, one word each, ``[n]``, float64."""
        contexts, words = self._contexts(short), check_tokens(words)
        self.check_range(words)
        if len(words) != len(contexts):
            raise ValueError(f"short and words must be equally many, got {len(contexts)} and {len(words)}")
        return torch.from_numpy(self.trie.score(contexts, words))

    def _contexts(self, short: Any) -> Ints:
        array = short.cpu().numpy() if isinstance(short, Tensor) else np.asarray(short)
        if array.ndim == 1:
            array = array[:, None]
        if array.ndim != 2 or array.dtype.kind not in "iu" or array.shape[1] >= self.order:
            raise ValueError(
                f"short must be integers [n] or [n, m] with m at most {self.order - 1},"
                f" got {array.dtype} of shape {array.shape}"
            )
        self.check_range(array)
        return array.astype(np.int64, copy=False)

    def check_range(self, tokens: Any) -> None:
        """Refuses tokens that are no classes."""
        if tokens.size and (int(tokens.min()) < 0 or int(tokens.max()) >= len(self.classes)):
            bad = tokens[(tokens < 0) | (tokens >= len(self.classes))][0]
            raise ValueError(f"token {bad} is not one of the {len(self.classes)} classes")


def check_convention(convention: str, bos: int | None) -> None:
    """Refuses a convention that is not one, or without the token it needs."""
    if convention not in CONVENTIONS:
        raise ValueError(f"convention must be one of {', '.join(CONVENTIONS)}, got {convention!r}")
    if (convention == "sentence") != (bos is not None):
        raise ValueError(f"the sentence convention needs bos, and stream has none; got {convention} and bos {bos}")
