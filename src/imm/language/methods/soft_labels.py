"""Methods that soften the labels or pull each prediction to the bigram: reverse KD, soft noising, label smoothing."""

import torch
from torch import Tensor

from imm.baselines import label_smoothing, soft_noising
from imm.functional import cross_entropy_by_row, with_direction
from imm.language.methods.base import Loss, Matched, Method, Step
from imm.ngram import Ngram


class ReverseKD(Matched):
    """Cross-entropy + λ · reverse KD towards the bigram."""

    def match(self, log_q: Tensor, step: Step) -> Tensor:
        """See the base class."""
        target = rows(self.bigram, step.batch.short)
        return with_direction(cross_entropy_by_row(log_q.detach(), target).mean(), log_q, target)


class Softened(Method):
    """Cross-entropy with soft labels: a share γ of the bigram's (soft noising), or of every word alike."""

    def __init__(self, bigram: Ngram | None, gamma: float) -> None:
        super().__init__()
        self.bigram, self.gamma = bigram, gamma

    def forward(self, log_q: Tensor, step: Step) -> Loss:
        """See the base class."""
        plain = super().forward(log_q, step)
        gamma = step.left * self.gamma
        if self.bigram is None:
            total = label_smoothing(log_q, step.batch.labels, gamma)
        else:
            total = soft_noising(log_q, step.batch.labels, rows(self.bigram, step.batch.short), gamma)
        return Loss(total, plain.parts | {"softened": total.detach()})


def rows(bigram: Ngram, short: Tensor) -> Tensor:
    """``P̂(·|short)``, ``[n, words]``; a word that the batch repeats is looked up once."""
    different, inverse = torch.unique(short, return_inverse=True)
    return bigram.probabilities(different)[inverse]
