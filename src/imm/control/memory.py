"""A belief about what is not seen, learned from what was visited."""

from collections.abc import Callable

import torch
from torch import Generator, Tensor

from imm.inducers import Inducer
from imm.validation import check_count


class Visited:
    """The latest visited observations, and an inducer over them: which of them go with a short context.

    So π(extended | short) is that of the policy that was walked by lately, as far as the memory goes back.

    Args:
        inducer: from the short contexts of what is remembered, ``[N, ...]``, an inducer of them:
            :class:`~imm.inducers.Multiset` where they are whole numbers,
            ``functools.partial(Kernel, alpha=...)`` where they are reals.
        n_contexts: k, how many are drawn for each short context at each call; all, with their weights, if None.
        memory: how many observations are kept, the latest.
        generator: makes the draws reproducible.

    Example:
        >>> from imm.inducers import Multiset
        >>> visited = Visited(Multiset)
        >>> places = torch.tensor([[0, 7], [2, 3], [1, 7]])
        >>> visited.see(places, places[:, 1])
        >>> visited(torch.tensor([7]))
        (tensor([[[0, 7],
                 [1, 7]]]), tensor([[0.5000, 0.5000]]))
    """

    def __init__(
        self,
        inducer: Callable[[Tensor], Inducer],
        n_contexts: int | None = None,
        memory: int = 4096,
        generator: Generator | None = None,
    ) -> None:
        self._make = inducer
        self.n_contexts = None if n_contexts is None else check_count(n_contexts, "n_contexts")
        self.memory = check_count(memory, "memory")
        self._generator = generator
        self._kept: tuple[Tensor, Tensor] | None = None
        self._inducer: Inducer | None = None

    def see(self, observations: Tensor, short: Tensor) -> None:
        """Remembers observations ``[n, *shape]`` with their short contexts ``[n, ...]``, and forgets the oldest."""
        if self._kept is not None:
            observations = torch.cat([self._kept[0], observations])
            short = torch.cat([self._kept[1], short])
        self._kept = observations[-self.memory :], short[-self.memory :]
        self._inducer = None

    def __call__(self, short: Tensor) -> tuple[Tensor, Tensor]:
        """For short contexts ``[n, ...]``: observations ``[n, k, *shape]`` and weights ``[n, k]``."""
        if self._kept is None:
            raise ValueError("nothing was visited yet: a learned belief must see observations first")
        if self._inducer is None:  # built when asked, not at each visit: see is called more often
            self._inducer = self._make(self._kept[1])
        if self.n_contexts is None:
            contexts = self._inducer.every(short)
        else:
            contexts = self._inducer.draw(short, self.n_contexts, self._generator)
        return self._kept[0][contexts.index], contexts.weights.to(torch.get_default_dtype())
