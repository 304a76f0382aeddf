"""The bigram that a full model induces: how well it does the restricted task (Appendix lm-motivation)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from imm.language.evaluation import evaluating, perplexity
from imm.language.model import LanguageModel
from imm.language.windows import Windows
from imm.matching import Streaming


@dataclass(frozen=True)
class InducedBigram:
    """``Q̂(y|short)`` as a table, ``[words, words]``."""

    probabilities: Tensor

    def score(self, short: Tensor, words: Tensor) -> Tensor:
        """``Q̂(word|short)``, one word each, ``[n]``."""
        return self.probabilities[short, words]

    def perplexity(self, tokens: Tensor) -> float:
        """Of a text, each word predicted from the one before."""
        return perplexity(self.score(tokens[:-1], tokens[1:]).log())


def induced_ngram(
    model: LanguageModel, tokens: Tensor, n_words: int, unroll: int = 35, batch_size: int = 20
) -> InducedBigram:
    """The mean of a full model's predictions over the places of a text where a word stands, for each word.

    The places are those of :class:`~imm.language.windows.Windows`: all but what fills no window. A word that the text
    does not have as a short context is answered by the mean over all places.

    Args:
        model: the full model; it is run in evaluation mode.
        tokens: the text, that of training as a rule.
        n_words: how many words there are; the table takes ``4 · n_words²`` bytes.
        unroll: how many words are read at once.
        batch_size: into how many columns the text is cut.
    """
    windows = Windows(tokens, batch_size, unroll)
    table = Streaming(n_words, n_words, memory=float("inf"))
    state = model.initial_state(windows.batch_size)
    with evaluating(model), torch.no_grad():
        for number in range(len(windows)):
            batch = windows[number]
            log_q, state = model(batch.inputs, state)
            table.feed(log_q, batch.short)
    anywhere = table.count / table.count.sum() @ table.induced
    table.induced[table.count == 0] = anywhere
    return InducedBigram(table.induced)
