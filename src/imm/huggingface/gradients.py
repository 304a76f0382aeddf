"""A second set of gradients, for a loss that is clipped apart."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from imm.huggingface.distributed import Together
from imm.matching import clipped_apart


class Apart:
    """Gathers gradients beside those of the primary loss, over accumulation steps, until the optimizer's step.

    The paper (Clipping): "gradients should be clipped separately for the primary objective and the IMM objective (i.e.
    they should be clipped before they are added together)".

    Args:
        parameters: of the model.
        together: the processes.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], together: Together) -> None:
        self._parameters = list(parameters)  # frozen ones too: a callback may thaw them
        self._together = together
        self._held: list[Tensor | None] = [None] * len(self._parameters)

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """What is back-propagated inside is held here; the ``.grad`` are as before afterwards."""
        primary = [p.grad for p in self._parameters]
        self._put(self._held)
        try:
            yield
            self._held = [p.grad for p in self._parameters]
        finally:
            self._put(primary)

    def add(self, max_norm: float, lam: float) -> None:
        """Adds ``lam`` times what is held, clipped to ``max_norm``, to the ``.grad``, and holds nothing then.

        With a norm of 0 nothing is clipped. λ comes after clipping, or it would have no effect once the clip binds.

        Called when the gradients of the primary loss are complete, clipped and averaged over processes.
        """
        if self._together.sum(float(any(gradient is not None for gradient in self._held))):
            if self._together.size > 1:  # where a process had nothing to match, it takes part all the same
                pairs = zip(self._held, self._parameters, strict=True)
                self._held = [torch.zeros_like(p) if g is None and p.requires_grad else g for g, p in pairs]
            self._together.add_up([gradient for gradient in self._held if gradient is not None])
            with clipped_apart(self._parameters, max_norm or math.inf, lam):
                self._put(self._held)
        self._held = [None] * len(self._parameters)

    def _put(self, gradients: Iterable[Tensor | None]) -> None:
        for p, gradient in zip(self._parameters, gradients, strict=True):
            p.grad = gradient
