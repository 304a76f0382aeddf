"""How large a running table of induced models may be."""

import torch

COARSE_SPAN = 100.0
"""Means over up to as many batches may be bfloat16, which has 8 bits: in a longer one a batch's share is lost."""


def table_size(n_words: int, table_mb: int, span: float = 0.0, n_short: int | None = None) -> tuple[int, torch.dtype]:
    """How many of the most frequent short contexts have a row of ``n_words`` numbers, and of what type.

    There are ``n_short`` of them, one for each word if None.

    Single precision if all fit into ``table_mb`` million bytes, or if the mean is over a longer span of batches; else
    bfloat16. As many as fit.

    >>> table_size(10_000, 1024)
    (10000, torch.float32)
    >>> table_size(50_000, 1024)
    (10240, torch.bfloat16)
    >>> table_size(50_000, 1024, span=float("inf"))
    (5120, torch.float32)
    """
    n_short = n_words if n_short is None else n_short
    most = table_mb * 1_000_000
    coarse = 4 * n_short * n_words > most and span <= COARSE_SPAN
    dtype = torch.bfloat16 if coarse else torch.float32
    return max(1, min(n_short, most // (dtype.itemsize * n_words))), dtype


def describe_table(n_words: int, table_mb: int, span: float = 0.0) -> str:
    """What a running table would take, for a person to read before it does."""
    n_held, dtype = table_size(n_words, table_mb, span)
    size = n_held * n_words * dtype.itemsize / 1e6
    kind = str(dtype).removeprefix("torch.")
    return f"table of induced bigrams: {n_held:,} of {n_words:,} short contexts, {kind}, {size:,.0f} MB"
