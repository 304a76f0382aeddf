"""What the matchings share: how they call the full model, and repeated short contexts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from imm.inducers import Contexts

Forward = Callable[[Tensor, Tensor], Tensor]
"""The full model as a matching sees it: ``log_q(rows, index)``, both ``[m]``, gives ``[m, classes]``.

Element ``i`` is ``log Q(· | short, extended)`` with the short context of the batch's row ``rows[i]`` and the
extended context that ``index[i]`` points to. Where the short context is part of what ``index`` points to (a
multiset of token positions), ``rows`` is not needed.
"""


def evaluate(log_q: Forward, rows: Tensor, contexts: Contexts) -> Tensor:
    """Calls the full model once, on the contexts that have weight: ``[n, k, classes]``, -inf for the others."""
    index, real = contexts.index, contexts.weights > 0
    out = log_q(rows[:, None].expand_as(index)[real], index[real])
    if out.ndim != 2 or len(out) != int(real.sum()):
        raise ValueError(f"log_q(rows, index) must be [{int(real.sum())}, classes], got shape {tuple(out.shape)}")
    if bool(real.all()):
        return out.view(*index.shape, -1)
    dense = out.new_full((*index.shape, out.shape[-1]), -torch.inf)
    return dense.index_put((real,), out)


def distinct(short: Any) -> tuple[Any, Tensor, Tensor]:
    """Each different short context once.

    Returns:
        The different short contexts ``[g]``, the batch row where each first stands ``[g]``, and for each of
        the batch's rows which of them it has ``[n]``.
    """
    if len(short) == 0:
        raise ValueError("short is an empty batch")
    if isinstance(short, np.ndarray) and short.dtype.kind in "iuf":
        short = torch.from_numpy(short)
    if isinstance(short, Tensor):
        _, inverse = torch.unique(short, dim=0, return_inverse=True)
        n_groups = int(inverse.max()) + 1
        rows = torch.arange(len(short), device=short.device)
        first = rows.new_full((n_groups,), len(short)).scatter_reduce(0, inverse, rows, "amin")
        return short[first], first, inverse
    seen: dict[Any, int] = {}
    inverse = torch.tensor([seen.setdefault(value, len(seen)) for value in short])
    first = torch.full((len(seen),), len(short)).scatter_reduce(0, inverse, torch.arange(len(short)), "amin")
    return list(seen), first, inverse
