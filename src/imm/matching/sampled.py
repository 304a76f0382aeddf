"""k drawn extended contexts, in memory that does not grow with k."""

from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import Generator, Tensor
from torch.utils.checkpoint import checkpoint

from imm import functional
from imm.inducers import Contexts, Inducer
from imm.matching.base import (
    Batch,
    GivenTarget,
    Groups,
    Matching,
    Pairs,
    Predict,
    matching_risk,
    pairs_of,
    predicted,
    with_neighbors,
)
from imm.validation import check_count


class Sampled(Matching):
    """The IMM risk with k draws for each different short context of the batch   (Eq. IMM-component).

    ``IMM_t ≈ -Σ_y P̂(y|short_t) log (1/k) Σ_i Q(y|short_t, extended_i)``

    The log of a sum does not split into k losses, but its gradient does: that of one context is its own, weighted by
    target times crosstalk (Eq. sequentializing-derivation), and what crosstalk needs of the others is the finished sum.
    So on the way forward each context is run, added to the sum and forgotten; on the way back, when the sum is
    complete, it is run again. Memory does not grow with k, and the price is a second forward pass. Both passes draw the
    same dropout masks.

    Args:
        target: the restricted model P̂.
        inducer: what gives the extended contexts.
        predict: the full model, see :data:`~imm.matching.Predict`. The paper runs it in evaluation mode. Under
            DistributedDataParallel let it call the bare module. The batch's ``logits`` are not used.
        n_contexts: k, the draws for each different short context; with None every extended context is used, which has
            the value and the gradient of :class:`~imm.matching.Exact`.
        contexts_at_once: how many contexts are run at once; where that is all of them, they are run only once.
        generator: makes the draws reproducible.
        check: whether values are checked at each call, and not at the first only.

    Example:
        >>> from imm.inducers import Multiset
        >>> short = torch.tensor([0, 0, 1])
        >>> logits = torch.zeros(3, 2, requires_grad=True)
        >>> target = torch.tensor([[0.5, 0.5], [0.5, 0.5], [0.9, 0.1]])
        >>> matching = Sampled(target, Multiset(short), lambda short, index: logits[index], n_contexts=4)
        >>> matching(logits, short, torch.arange(3)).backward()
        >>> logits.grad[2]  # (q - p) / 3
        tensor([-0.1333,  0.1333])
    """

    predict: Predict

    def __init__(
        self,
        target: GivenTarget,
        inducer: Inducer,
        predict: Predict,
        n_contexts: int | None = 10,
        contexts_at_once: int = 1,
        generator: Generator | None = None,
        check: bool = False,
    ) -> None:
        super().__init__(target, check)
        self.inducer = with_neighbors(inducer)
        object.__setattr__(self, "predict", predict)  # or a model's parameters would become the matching's too
        self.n_contexts = None if n_contexts is None else check_count(n_contexts, "n_contexts")
        self.contexts_at_once = check_count(contexts_at_once, "contexts_at_once")
        self.generator = generator

    def contexts(self, short: Any) -> Contexts:
        """Returns the contexts of one call: k draws, in evaluation mode the same ones each time; or all."""
        if self.n_contexts is None:
            return self.inducer.every(short)
        generator = self.generator if self.training else Generator().manual_seed(0)
        return self.inducer.draw(short, self.n_contexts, generator)

    def risk(self, batch: Batch) -> Tensor:
        """See :class:`Matching`."""
        groups = Groups.of(batch)
        pieces = list(self._pieces(self.contexts(groups.short)))
        n_groups = len(groups.weight)
        if len(pieces) == 1:  # nothing to take apart: one differentiable pass is cheaper
            (pairs,) = pieces
            log_q = predicted(self.predict, groups.short, pairs)
            log_induced = pairs.log_sum(log_q, n_groups)
            return matching_risk(log_induced, self.targets(batch, groups, log_induced), groups.weight)
        log_sum = _LogSum(n_groups)
        token = groups.weight.new_zeros((), requires_grad=torch.is_grad_enabled())

        def add(pairs: Pairs) -> Tensor:
            log_q = predicted(self.predict, groups.short, pairs)
            return cast(Tensor, _Add.apply(log_q, token, pairs, log_sum))  # type: ignore[no-untyped-call]

        tokens = [checkpoint(add, pairs, use_reentrant=False) for pairs in pieces]
        log_sum.target = self.targets(batch, groups, log_sum.total)
        log_sum.weight = groups.weight
        return cast(Tensor, _Close.apply(log_sum, *tokens))  # type: ignore[no-untyped-call]

    def _pieces(self, contexts: Contexts) -> Iterator[Pairs]:
        width = contexts.index.shape[1]
        for begin in range(0, width, self.contexts_at_once):
            yield pairs_of(contexts, slice(begin, min(begin + self.contexts_at_once, width)))


class _LogSum:
    """The induced model while contexts are added to it; later what the way back needs of it.

    Attributes:
        total: ``log Q̂``, ``[groups, classes]``, once all contexts were added.
        complete: whether they were.
        target: ``[groups, classes]``.
        weight: ``[groups]``.
    """

    total: Tensor
    target: Tensor
    weight: Tensor

    def __init__(self, n_groups: int) -> None:
        self._n_groups = n_groups
        self._begun = self.complete = False

    def add(self, log_q: Tensor, pairs: Pairs) -> None:
        if self.complete:  # this is the way back
            return
        part = pairs.log_sum(log_q.detach(), self._n_groups)
        self.total = torch.logaddexp(self.total, part) if self._begun else part
        self._begun = True


class _Add(torch.autograd.Function):
    """Adds contexts to the sum. Their gradient is that of the finished sum: target times crosstalk.

    What is returned is a zero that stands for the contribution. ``token`` gives a checkpoint something to
    differentiate, whatever the model does.
    """

    @staticmethod
    def forward(ctx: Any, log_q: Tensor, token: Tensor, pairs: Pairs, log_sum: _LogSum) -> Tensor:
        log_sum.add(log_q, pairs)
        ctx.save_for_backward(log_q)
        ctx.pairs, ctx.log_sum = pairs, log_sum
        return token.new_zeros(())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        (log_q,) = ctx.saved_tensors
        group, weight = ctx.pairs.group, ctx.pairs.weight
        total, target, share = (
            each.index_select(0, group) for each in (ctx.log_sum.total, ctx.log_sum.target, ctx.log_sum.weight)
        )
        crosstalk = functional.correction(log_q, total).mul_(weight.to(log_q.dtype)[:, None])
        return crosstalk.mul_(target).mul_((-grad * share)[:, None].to(log_q.dtype)), None, None, None


class _Close(torch.autograd.Function):
    """The risk of the finished sum; its gradient goes to each contribution."""

    @staticmethod
    def forward(ctx: Any, log_sum: _LogSum, *tokens: Tensor) -> Tensor:
        log_sum.complete, ctx.n = True, len(tokens)
        return matching_risk(log_sum.total, log_sum.target, log_sum.weight)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return None, *(grad,) * ctx.n
