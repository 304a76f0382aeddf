"""The bigram that a full model induces: how well it does the restricted task (Appendix lm-motivation)."""

from torch import Tensor

from imm.language.evaluation import evaluating, perplexity
from imm.language.model import LanguageModel
from imm.language.windows import Windows
from imm.matching import Streaming


class InducedBigram:
    """``Q̂(y|short)``, the mean of a full model's predictions over all places of a text where ``short`` stands.

    A word that the text does not have as a short context is answered by the mean over all places.

    Args:
        model: the full model; it is run in evaluation mode.
        tokens: the text, that of training as a rule.
        n_words: how many words there are; the table takes ``4 · n_words²`` bytes.
        unroll: how many words are read at once.
        batch_size: into how many columns the text is cut.
    """

    def __init__(self, model: LanguageModel, tokens: Tensor, n_words: int, unroll: int, batch_size: int) -> None:
        windows = Windows(tokens, batch_size, unroll)
        self._table = Streaming(n_words, n_words, memory=float("inf"))
        state = model.initial_state(windows.batch_size)
        with evaluating(model):
            for batch in (windows[i] for i in range(len(windows))):
                log_q, state = model(batch.inputs, state)
                self._table.feed(log_q, batch.short)
        count, induced = self._table.count, self._table.induced
        self._anywhere = count / count.sum() @ induced
        induced[count == 0] = self._anywhere

    def score(self, short: Tensor, words: Tensor) -> Tensor:
        """``Q̂(word|short)``, one word each, ``[n]``."""
        return self._table.induced[short, words]

    def perplexity(self, tokens: Tensor) -> float:
        """Of a text, each word predicted from the one before."""
        return perplexity(self.score(tokens[:-1], tokens[1:]).log())


def induced_ngram(
    model: LanguageModel, tokens: Tensor, n_words: int, unroll: int = 35, batch: int = 20
) -> InducedBigram:
    """The bigram that ``model`` induces over the places of a text."""
    return InducedBigram(model, tokens, n_words, unroll, batch)
