"""The bigram that a full model induces: how well it does the restricted task (Appendix lm-motivation)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from imm.language.evaluation import evaluating, perplexity
from imm.language.model import LanguageModel
from imm.language.windows import Windows
from imm.matching.base import distinct, segment_sum


@dataclass(frozen=True)
class InducedBigram:
    """``Q̂(y|short)`` as a table, ``[words, words]``."""

    probabilities: Tensor

    def score(self, short: Tensor, words: Tensor) -> Tensor:
        """Returns ``Q̂(word|short)``, one word each, ``[n]``."""
        return self.probabilities[short, words]

    def perplexity(self, tokens: Tensor) -> float:
        """Returns the perplexity of a text, each word predicted from the one before."""
        return perplexity(self.score(tokens[:-1], tokens[1:]).log())


class PredictionSums:
    """Sums of a model's predictions, by the word that they follow.

    Args:
        n_words: how many words there are; the table takes ``4 · n_words²`` bytes.
    """

    def __init__(self, n_words: int) -> None:
        self._sum, self._count = torch.zeros(n_words, n_words), torch.zeros(n_words)

    def add(self, log_q: Tensor, short: Tensor) -> None:
        """Adds log-probabilities, ``[n, words]``, that follow the words ``short``, ``[n]``."""
        different, of_row = distinct(short)
        one_each = torch.ones(len(short))
        self._sum.index_add_(0, different, segment_sum(log_q.exp(), of_row, len(different), one_each))
        self._count.index_add_(0, short, one_each)

    def bigram(self) -> InducedBigram:
        """Returns the means; that of a word without predictions is the mean over all."""
        mean = self._sum / self._count.clamp(min=1)[:, None]
        mean[self._count == 0] = self._sum.sum(0) / self._count.sum()
        return InducedBigram(mean)


def induced_ngram(
    model: LanguageModel, tokens: Tensor, n_words: int, unroll: int = 35, batch_size: int = 20
) -> InducedBigram:
    """Returns the mean of a full model's predictions over the places of a text where a word stands, for each word.

    The places are those of :class:`~imm.language.windows.Windows`: all but what fills no window. A word that the text
    does not have as a short context is answered by the mean over all places.

    Args:
        model: the full model; it is run in evaluation mode.
        tokens: the text, that of training as a rule.
        n_words: how many words there are; the table takes ``4 · n_words²`` bytes.
        unroll: how many words are read at once.
        batch_size: into how many columns the text is cut.
    """
    windows, sums = Windows(tokens, batch_size, unroll), PredictionSums(n_words)
    state = model.initial_state(windows.batch_size)
    with evaluating(model), torch.no_grad():
        for number in range(len(windows)):
            batch = windows[number]
            log_q, state = model(batch.inputs, state)
            sums.add(log_q, batch.short)
    return sums.bigram()
