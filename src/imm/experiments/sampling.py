"""Random numbers of the studies: a stream of its own for each study and cell."""

import zlib
from typing import TYPE_CHECKING

import numpy as np

from imm.experiments.study import Settings

if TYPE_CHECKING:
    import torch


def generator(settings: Settings, *key: int | str) -> "torch.Generator":
    """Returns a stream of random numbers for a key: studies share no data, methods of a cell do."""
    import torch

    words = [zlib.crc32(part.encode()) if isinstance(part, str) else part for part in key]
    state = np.random.SeedSequence([settings["seed"], *words]).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0]) >> 1)
