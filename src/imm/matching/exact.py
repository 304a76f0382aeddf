"""Every extended context, by plain differentiation."""

from typing import Any

from torch import Tensor

from imm import functional
from imm.inducers import Inducer
from imm.matching.base import Forward, distinct, evaluate


class Exact:
    """The empirical IMM risk with all extended contexts of the inducer   (Eqs. IMM-exact, IMM-exact-logreg).

    One call of the full model on all pairs of short and extended contexts; a short context that the batch
    repeats is induced once. Memory grows with the number of pairs: see :class:`~imm.matching.Sampled`
    with ``n_contexts=None`` for the same gradient in pieces.

    Args:
        inducer: what gives the extended contexts.

    Example:
        >>> import torch
        >>> from imm.inducers import Multiset
        >>> short, target = torch.tensor([0, 0, 1]), torch.full((3, 2), 0.5)
        >>> log_q = torch.tensor([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]]).log()
        >>> loss = Exact(Multiset(short))(lambda rows, index: log_q[index], short, target)
        >>> round(loss.item(), 4)  # the induced model is (1/2, 1/2) everywhere: what is left is log 2
        0.6931
    """

    def __init__(self, inducer: Inducer) -> None:
        self.inducer = inducer

    def log_induced(self, log_q: Forward, short: Any) -> Tensor:
        """``log Q̂(· | short)`` for each row, ``[n, classes]``, differentiable."""
        different, first, inverse = distinct(short)
        contexts = self.inducer.every(different)
        return functional.induce(evaluate(log_q, first, contexts), contexts.weights)[inverse]

    def __call__(self, log_q: Forward, short: Any, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """The risk, to be added to another loss and differentiated with it.

        Args:
            log_q: the full model, see :data:`~imm.matching.Forward`.
            short: ``n`` short contexts.
            target: the restricted model there, ``[n, classes]``.
            sample_weight: ``[n]``; equal if None.
        """
        return functional.matching_loss(self.log_induced(log_q, short), target, sample_weight)
