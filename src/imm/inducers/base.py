"""What every inducer answers."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Generator, Tensor


@dataclass(frozen=True)
class Contexts:
    """Extended contexts for a batch of ``n`` short contexts, as pointers to the rows they come from.

    Attributes:
        index: ``[n, k]`` int64; which row of the data (or which state of a belief) is the extended context.
        weights: ``[n, k]``, not negative, each row sums to one. Padding has weight zero and index zero.
        padded: whether some rows have padding.
    """

    index: Tensor
    weights: Tensor
    padded: bool = False


def as_tensor(given: Any, name: str) -> Tensor:
    """A tensor as it is; an array, a series or a list of numbers copied into one."""
    if isinstance(given, Tensor):
        return given
    try:
        return torch.as_tensor(np.array(given))
    except (TypeError, ValueError, RuntimeError):
        shown = " ".join(repr(given).split())[:60]
        raise TypeError(f"{name} must be a tensor, an array or a list of numbers, got {shown}") from None


class Inducer(Protocol):
    """π(extended | short): the distribution of extended contexts given a short one.

    What a short context looks like is the inducer's business; a batch of ``n`` has length ``n``.

    Attributes:
        data: the short contexts of the rows that lend extended contexts, ``N`` values; None where these are no rows.
        own_short: whether a short context's extended ones come from rows with that very short context.
    """

    data: Any
    own_short: bool

    def every(self, short: Any) -> Contexts:
        """All extended contexts of each short context, with their probabilities."""
        ...

    def draw(self, short: Any, n_contexts: int, generator: Generator | None = None) -> Contexts:
        """``n_contexts`` independent draws, with replacement, for each short context; equal weights."""
        ...


def draw_columns(weights: Tensor, k: int, generator: Generator | None) -> Tensor:
    """Returns ``k`` column numbers for each row, drawn with probabilities ``weights``, ``[n, m]``: ``[n, k]``.

    Random numbers come from the CPU, so that draws are the same on every device.
    """
    reached = weights.double().cumsum(-1)
    u = torch.rand(len(weights), k, dtype=torch.float64, generator=generator).to(weights.device)
    # A number of exactly 0 would reach a first column of weight zero, and rounding can lead beyond the last.
    column = torch.searchsorted(reached, (u * reached[:, -1:]).clamp(min=torch.finfo(torch.float64).tiny))
    last = (reached < reached[:, -1:]).sum(-1, keepdim=True)
    return column.minimum(last)
