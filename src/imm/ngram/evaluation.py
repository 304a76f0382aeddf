"""Perplexity: how well an n-gram model predicts a stream of tokens."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from imm.ngram.counting import Windows, check_tokens
from imm.ngram.keys import PAD
from imm.ngram.model import Ngram


@dataclass(frozen=True)
class Evaluation:
    """What was predicted, and how well.

    Attributes:
        tokens: how many were predicted. In ``sentence``, all words and each ``</s>``; otherwise all but the first of
            the stream, before which nothing stands.
        zeros: how many of them have probability zero.
        log_likelihood: the sum of natural logarithms over the others.
    """

    tokens: int
    zeros: int
    log_likelihood: float

    @property
    def perplexity(self) -> float:
        """``exp(-mean log P)``; infinite if there are zeros."""
        return math.inf if self.zeros else math.exp(-self.log_likelihood / self.tokens)

    @property
    def perplexity_without_zeros(self) -> float:
        """The same over the tokens that have a probability; infinite if none has."""
        seen = self.tokens - self.zeros
        return math.exp(-self.log_likelihood / seen) if seen else math.inf


def evaluate(model: Ngram, pieces: Iterable[Any]) -> Evaluation:
    """How well ``model`` predicts a stream of tokens, given in one or more pieces ``[n]``.

    Each token is predicted from the ``order - 1`` before it, fewer at the beginning of the stream or sentence.
    """
    windows = Windows(model.order, model.about.eos, model.about.bos)
    tokens = zeros = 0
    total = 0.0
    for piece in pieces:
        checked = check_tokens(piece)
        model.check_range(checked)
        symbols = windows.next(checked)
        predicted = symbols[-2] != PAD  # <s> stands before a sentence's first word, nothing before a stream's
        grams = np.stack([symbol[predicted] - 1 for symbol in symbols], 1)
        p = model.trie.score(grams[:, :-1], grams[:, -1])
        tokens += len(p)
        some = p > 0
        zeros += len(p) - int(np.count_nonzero(some))
        total += float(np.log(p[some]).sum())
    if tokens == 0:
        raise ValueError("there is nothing to predict: a stream needs two tokens at least")
    return Evaluation(tokens, zeros, total)
