"""A trained language model, ready to be asked."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from imm.language.evaluation import log_likelihoods, perplexity
from imm.language.model import LanguageModel, load_model
from imm.language.settings import Settings
from imm.language.vocabulary import Vocabulary


@dataclass(frozen=True)
class TrainedModel:
    """What ``imm lm train`` wrote.

    Attributes:
        model: the full model, in evaluation mode.
        vocabulary: its words.
        settings: those of the run.
    """

    model: LanguageModel
    vocabulary: Vocabulary
    settings: Settings

    @torch.no_grad()
    def next_word(self, text: str, top_k: int = 5) -> list[tuple[str, float]]:
        """Returns the likeliest next words after a text, with their probabilities.

        Args:
            text: the words before; the end of a line counts as one. Unknown words are ``<unk>``.
            top_k: how many words.
        """
        log_q, _ = self.model(torch.from_numpy(self._tokens(text)).long()[:, None])
        best = log_q[-1].exp().topk(min(top_k, len(self.vocabulary)))
        return [(self.vocabulary.words[word], p) for p, word in zip(best.values.tolist(), best.indices, strict=True)]

    def perplexity(self, text: str) -> float:
        """Returns the perplexity of a text, each word but the first predicted from all before."""
        tokens = torch.from_numpy(self._tokens(text)).long()
        return perplexity(log_likelihoods(self.model, tokens, self.settings.unroll))

    def _tokens(self, text: str) -> NDArray[np.int32]:
        eos = self.vocabulary.words[self.vocabulary.eos]
        lines = [list(line) if self.vocabulary.level == "char" else line.split() for line in text.split("\n")]
        words = [word for i, line in enumerate(lines) for word in ([eos] if i else []) + line]
        if not words:
            raise ValueError("there is nothing to predict from: the text has no words")
        return self.vocabulary.encode(words)


def load(folder: Path | str) -> TrainedModel:
    """Returns the model of a run of ``imm lm train``; ``folder`` is the run's, or that of its model."""
    folder = Path(folder)
    inner = folder / "model"
    return TrainedModel(*load_model(inner if (inner / "model.json").exists() else folder))
