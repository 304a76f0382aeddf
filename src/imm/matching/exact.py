"""Every extended context, by plain differentiation."""

from torch import Tensor

from imm.inducers import Inducer
from imm.matching.base import (
    Batch,
    GivenTarget,
    Groups,
    Matching,
    Predict,
    matching_risk,
    pairs_of,
    predicted,
    with_neighbors,
)


class Exact(Matching):
    """The empirical IMM risk with all extended contexts of the inducer   (Eqs. IMM-exact, IMM-exact-logreg).

    The full model is called once, on all pairs of a short and an extended context; a short context that the batch
    repeats is induced once. Memory grows with the number of pairs: :class:`~imm.matching.Sampled` with
    ``n_contexts=None`` has the same value and gradient in memory that does not.

    Args:
        target: the restricted model P̂.
        inducer: what gives the extended contexts.
        predict: the full model, see :data:`~imm.matching.Predict`. The batch's ``logits`` are not used.
        check: whether values are checked at each call, and not at the first only.

    Example:
        >>> import torch
        >>> from imm.inducers import Multiset
        >>> short = torch.tensor([0, 0, 1])
        >>> logits = torch.tensor([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]]).log()
        >>> matching = Exact(torch.full((3, 2), 0.5), Multiset(short), lambda short, index: logits[index])
        >>> matching(logits, short, torch.arange(3))  # the induced model is (1/2, 1/2) everywhere: log 2 is left
        tensor(0.6931)
    """

    predict: Predict

    def __init__(self, target: GivenTarget, inducer: Inducer, predict: Predict, check: bool = False) -> None:
        super().__init__(target, check)
        self.inducer = with_neighbors(inducer)
        object.__setattr__(self, "predict", predict)  # or a model's parameters would become the matching's too

    def risk(self, batch: Batch) -> Tensor:
        """See :class:`Matching`."""
        groups = Groups.of(batch)
        pairs = pairs_of(self.inducer.every(groups.short))
        log_q = predicted(self.predict, groups.short, pairs)
        log_induced = pairs.log_sum(log_q, len(groups.weight))
        return matching_risk(log_induced, self.targets(batch, groups, log_induced), groups.weight)
