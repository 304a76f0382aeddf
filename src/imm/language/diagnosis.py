"""What a bigram knows that a model does not: measured before the model is trained to match it."""

import math
from dataclasses import dataclass

from torch import Tensor

from imm.language.evaluation import interpolated, log_likelihoods, perplexity
from imm.language.induced import InducedBigram, induced_ngram
from imm.language.model import LanguageModel
from imm.ngram import Ngram


@dataclass(frozen=True)
class BigramDiagnosis:
    """The perplexities of a text that say what an old model can still teach.

    Attributes:
        model: of the full model.
        old: of the old model, a bigram.
        induced: of the bigram that the full model induces (Appendix lm-motivation).
        mixed: of the induced and the old bigram, mixed in the best proportion.
        ratio: that proportion, the share of the old one.
    """

    model: float
    old: float
    induced: float
    mixed: float
    ratio: float

    @property
    def before(self) -> float:
        """How much better the old model does the restricted task, in nats a word: ``log(induced / old)``."""
        return math.log(self.induced / self.old)

    @property
    def room(self) -> float:
        """What the old model can take off the induced one, in nats a word: ``log(induced / mixed)``."""
        return math.log(self.induced / self.mixed)


def diagnose(
    model: LanguageModel, train: Tensor, text: Tensor, bigram: Ngram, unroll: int = 35, batch_size: int = 20
) -> BigramDiagnosis:
    """Compares the bigram that a trained model induces with an old one, on the restricted task.

    Args:
        model: the full model; it is run in evaluation mode.
        train: what it was trained on, whose places the induced bigram is averaged over.
        text: what both are judged on: held-out text, as the old model knows its own.
        bigram: the old model.
        unroll: how many words are read at once.
        batch_size: into how many columns the texts are cut.
    """
    induced = induced_ngram(model, train, len(bigram.classes), unroll, batch_size)
    ratio, mixed = mixed_with(induced, bigram, text)
    return BigramDiagnosis(
        model=perplexity(log_likelihoods(model, text, unroll, batch_size)),
        old=perplexity(bigram.score(text[:-1], text[1:]).double().log()),
        induced=induced.perplexity(text),
        mixed=mixed,
        ratio=ratio,
    )


def mixed_with(induced: InducedBigram, bigram: Ngram, text: Tensor, ratio: float | None = None) -> tuple[float, float]:
    """Returns the old bigram's share in the mixture of both, the best in steps of 0.05 if None, and its perplexity."""
    likelihood = induced.score(text[:-1], text[1:]).log()
    ratios = [step / 20 for step in range(21)] if ratio is None else [ratio]
    return min(
        ((each, perplexity(interpolated(likelihood, text, bigram, each))) for each in ratios), key=lambda x: x[1]
    )
