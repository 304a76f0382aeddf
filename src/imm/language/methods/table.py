"""How large a running table of induced models may be."""

import torch

from imm.matching import Streaming


def table_size(n_words: int, table_mb: int) -> tuple[int, torch.dtype]:
    """How many of the most frequent short contexts have a row of ``n_words`` numbers, and of what type.

    Single precision if all fit into ``table_mb`` million bytes; else bfloat16, and as many as fit.

    >>> table_size(10_000, 1024)
    (10000, torch.float32)
    >>> table_size(50_000, 1024)
    (10240, torch.bfloat16)
    """
    most = table_mb * 1_000_000
    if 4 * n_words * n_words <= most:
        return n_words, torch.float32
    return max(1, min(n_words, most // (2 * n_words))), torch.bfloat16


def describe_table(n_words: int, table_mb: int) -> str:
    """What :func:`table` would take, for a person to read before it does."""
    n_held, dtype = table_size(n_words, table_mb)
    size = n_held * n_words * dtype.itemsize / 1e6
    kind = str(dtype).removeprefix("torch.")
    return f"table of induced bigrams: {n_held:,} of {n_words:,} short contexts, {kind}, {size:,.0f} MB"


def table(n_words: int, table_mb: int, memory: float, lifetime: float) -> Streaming:
    """A running induced model for each short context, within the limit; the vocabulary is sorted by frequency."""
    n_held, dtype = table_size(n_words, table_mb)
    return Streaming(n_words, n_words, memory, lifetime, n_held, dtype)
