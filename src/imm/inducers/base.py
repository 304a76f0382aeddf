"""What every inducer answers."""

from dataclasses import dataclass
from typing import Any, Protocol

from torch import Generator, Tensor


@dataclass(frozen=True)
class Contexts:
    """Extended contexts for a batch of ``n`` short contexts, as pointers to the rows they come from.

    Attributes:
        index: ``[n, k]`` int64; which row of the data (or which state of a belief) is the extended context.
        weights: ``[n, k]``, not negative, each row sums to one. Padding has weight zero and index zero.
    """

    index: Tensor
    weights: Tensor


class Inducer(Protocol):
    """π(extended | short): the distribution of extended contexts given a short one.

    What a short context looks like is the inducer's business; a batch of ``n`` has length ``n``.
    """

    def every(self, short: Any) -> Contexts:
        """All extended contexts of each short context, with their probabilities."""
        ...

    def draw(self, short: Any, n_contexts: int, generator: Generator | None = None) -> Contexts:
        """``n_contexts`` independent draws, with replacement, for each short context; equal weights."""
        ...
