"""A stream of tokens as parallel columns, read window by window."""

import math
from dataclasses import dataclass

from torch import Tensor

ENOUGH = 0.95
"""The share of a text that is to be read."""


@dataclass(frozen=True)
class Batch:
    """One window of all columns.

    Attributes:
        number: which window.
        inputs: ``[L, batch]``, what is read.
        labels: ``[L · batch]``, the word after each.
        short: ``[L · batch]``, the short context of each position: the word read there, before any noise.
    """

    number: int
    inputs: Tensor
    labels: Tensor
    short: Tensor


class Windows:
    """The text cut into ``batch_size`` columns, and these into windows of ``unroll`` words.

    What does not fill a window is left out. Where that would be more than a twentieth, as it can be in a short text,
    windows are shorter, or columns fewer; of a text of few windows more may still be left out.

    Args:
        tokens: ``[n]``.
        batch_size: how many columns.
        unroll: L.

    Attributes:
        inputs: ``[windows · L, batch]``: each column is a part of the text. Its transpose, flattened, is what
            positions count.
        labels: the same, one word later.
    """

    def __init__(self, tokens: Tensor, batch_size: int, unroll: int) -> None:
        n = len(tokens) - 1
        if n < 1:
            raise ValueError(f"a text needs two words to learn from, got {len(tokens)}, line ends included")
        self.batch_size, self.unroll = _shape(n, batch_size, unroll)
        length = n // self.batch_size
        read = length // self.unroll * self.unroll
        columns = (tokens[first:][: self.batch_size * length].view(self.batch_size, length) for first in (0, 1))
        self.inputs, self.labels = (each[:, :read].T for each in columns)  # views: the text is held once

    def __len__(self) -> int:
        return len(self.inputs) // self.unroll

    def __getitem__(self, number: int) -> Batch:
        if not 0 <= number < len(self):
            raise IndexError(f"window {number} of {len(self)}")
        part = slice(number * self.unroll, (number + 1) * self.unroll)
        inputs = self.inputs[part]
        return Batch(number, inputs, self.labels[part].flatten(), inputs.flatten())

    @property
    def short(self) -> Tensor:
        """The short context of each position, column after column: ``[batch · windows · L]``."""
        return self.inputs.T.flatten()

    def locate(self, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The column, the window and the place in it of each of these positions, ``[m]`` each."""
        column, place = positions // len(self.inputs), positions % len(self.inputs)
        return column, place // self.unroll, place % self.unroll


def _shape(n: int, batch_size: int, unroll: int) -> tuple[int, int]:
    """How many columns, and how many words a window has: the largest shape that reads enough, or that reads most."""
    shapes = []
    for columns in range(max(1, min(batch_size, n // unroll)), 0, -1):
        length = n // columns
        shapes += [(columns, min(unroll, length)), (columns, length // math.ceil(length / unroll))]

    def read(shape: tuple[int, int]) -> int:
        columns, window = shape
        return n // columns // window * window * columns

    return next((shape for shape in shapes if read(shape) >= ENOUGH * n), max(shapes, key=read))
