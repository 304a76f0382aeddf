"""Noise on what is read and on what is to be predicted (Xie's data noising)."""

from dataclasses import replace

import torch
from torch import Generator, Tensor

from imm import baselines
from imm.baselines.noising import Where
from imm.language.methods.base import Method, Step
from imm.language.windows import Batch
from imm.ngram import Ngram


class Noising(Method):
    """Plain cross-entropy on a noised text.

    Args:
        by: how often and by what.
        where: what is replaced.
        generator: of the noise.
    """

    def __init__(self, by: baselines.Noise, where: Where, generator: Generator) -> None:
        super().__init__()
        self.by, self.where, self.generator = by, where, generator

    def prepare(self, step: Step) -> Batch:
        """See the base class."""
        batch, by = step.batch, replace(self.by, gamma=step.left * self.by.gamma)
        inputs, labels = baselines.noise(batch.inputs.flatten(), batch.labels, by, self.where, self.generator)
        return Batch(batch.number, inputs.view_as(batch.inputs), labels, batch.short)


def kneser_ney_noise(bigram: Ngram, counts: Tensor, gamma0: float) -> baselines.Noise:
    """``γ(x) = γ0 N1+(x, ·) / c(x)`` and ``q(y) ∝ N1+(·, y)``, from the bigram and its text's word counts ``c``."""
    first, second = torch.from_numpy(bigram.trie.words(2)).T
    after, before = (torch.bincount(words, minlength=len(counts)) for words in (first, second))
    return baselines.Noise.of_kinds(after, before, counts, gamma0)


def unigram_noise(counts: Tensor, gamma: float) -> baselines.Noise:
    """Words by their frequency, everywhere as often."""
    return baselines.Noise(torch.full((len(counts),), gamma), counts / counts.sum())
