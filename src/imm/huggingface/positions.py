"""Which words of a batch are matched, and their short contexts."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class Rows:
    """Token sequences of different lengths.

    Attributes:
        ids: tokens, ``[rows, length]``.
        real: which of them are no padding, ``[rows, length]``.
        types: token types, ``[rows, length]``, for models that read pairs of sentences; or None.
        positions: how many tokens of its own text stand before each, ``[rows, length]``, where texts are packed into
            one row and the model is told so; or None.
    """

    ids: Tensor
    real: Tensor
    types: Tensor | None = None
    positions: Tensor | None = None

    def to(self, device: torch.device) -> "Rows":
        """The same, elsewhere."""
        types, positions = (None if each is None else each.to(device) for each in (self.types, self.positions))
        return Rows(self.ids.to(device), self.real.to(device), types, positions)


@dataclass(frozen=True)
class Places:
    """Words that are predicted from what stands before them; in reading order.

    Attributes:
        row, place: which word of which row, ``[n]``. The extended context is all of the row before it.
        short: the short context, the ``m`` tokens before it, ``[n, m]``.
        weight: for how many places each stands, ``[n]``.
    """

    row: Tensor
    place: Tensor
    short: Tensor
    weight: Tensor

    def __len__(self) -> int:
        return len(self.row)

    def __getitem__(self, chosen: Tensor | slice) -> "Places":
        return Places(self.row[chosen], self.place[chosen], self.short[chosen], self.weight[chosen])


def find_places(rows: Rows, predicted: Tensor, m: int) -> Places:
    """All places with a whole short context of ``m`` tokens.

    Args:
        rows: the token sequences.
        predicted: which of their words are to be predicted, ``[rows, length]``.
        m: how many tokens a short context has.
    """
    good = predicted & rows.real
    if good.shape[1] > m:
        good[:, m:] &= rows.real.unfold(1, m + 1, 1).all(-1)
    good[:, :m] = False
    if rows.positions is not None:
        good &= rows.positions >= m
    row, place = good.nonzero(as_tuple=True)
    short = rows.ids[row[:, None], place[:, None] + torch.arange(-m, 0, device=place.device)]
    return Places(row, place, short, torch.ones(len(row), device=place.device))


def choose(places: Places, positions: int, u: Tensor) -> Places:
    """At most ``positions`` places of each row, each then standing for as many as there are for one that is chosen.

    Args:
        places: in reading order.
        positions: how many of a row; 0 for all.
        u: a uniform number for each place, ``[n]``: those with the smallest of their row are chosen. So a choice
            does not depend on how rows are batched.
    """
    if positions == 0 or len(places) == 0:
        return places
    order = (places.row.double() + u.to(places.row.device).double()).argsort()
    _, run, size = torch.unique_consecutive(places.row, return_inverse=True, return_counts=True)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order), device=order.device) - (size.cumsum(0) - size)[run]
    share = (size / size.clamp(max=positions))[run]
    return replace(places, weight=share.to(places.weight))[rank < positions]


def as_keys(short: Tensor) -> Tensor:
    """Short contexts ``[n, m]`` as targets and inducers take them: on the CPU, and ``[n]`` where they are one token."""
    tokens = short.cpu()
    return tokens[:, 0] if tokens.shape[1] == 1 else tokens
