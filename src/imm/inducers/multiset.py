"""The empirical multiset of extended contexts, for discrete short contexts."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Generator, Tensor, nn

from imm.inducers.base import Contexts
from imm.validation import check_count

Short = Tensor | NDArray[Any] | Sequence[Hashable]


class Multiset(nn.Module):
    """For each short context, the rows of the data in which it occurs   (Eq. imm-from-dictionary).

    Args:
        short: the short context of each of ``N`` data rows: integers ``[N]``, integers ``[N, m]`` (the last
            ``m`` tokens, say), or a sequence of ``N`` hashable things.

    The index is two integer arrays (CSR): ``rows``, the ``N`` row numbers sorted by short context, and
    ``offsets``, where each short context's rows begin. Building it takes one counting sort, linear in ``N``
    where short contexts are integers below ``4 N``.

    Example:
        >>> multiset = Multiset(torch.tensor([7, 3, 7, 7]))
        >>> multiset.every(torch.tensor([7])).index
        tensor([[0, 2, 3]])
        >>> Multiset(["the", "a", "the"]).every(["the"]).index
        tensor([[0, 2]])
    """

    rows: Tensor
    offsets: Tensor
    own_short = True

    def __init__(self, short: Short) -> None:
        super().__init__()
        _refuse_frame(short)
        if len(short) == 0:
            raise ValueError("short is empty: a multiset needs at least one row")
        self._vocabulary = _vocabulary(short)
        codes = self._vocabulary.encode(short)
        n = len(codes)
        small = np.int32 if n < np.iinfo(np.int32).max else np.int64
        # Row t of this matrix has its one entry in column code_t: its transpose lists the rows of each code.
        one_each = np.ones(n, dtype=np.bool_), codes.astype(small, copy=False), np.arange(n + 1, dtype=small)
        by_code = sparse.csr_array(one_each, shape=(n, len(self._vocabulary))).tocsc()
        self.data = short
        self.register_buffer("rows", torch.from_numpy(by_code.indices), persistent=False)
        self.register_buffer("offsets", torch.from_numpy(by_code.indptr), persistent=False)
        if isinstance(short, Tensor):
            self.to(short.device)

    def __len__(self) -> int:
        """How many codes there are; see :meth:`encode`."""
        return len(self._vocabulary)

    def encode(self, short: Short) -> Tensor:
        """The code in ``[0, len(self))`` of each short context, ``[n]`` int64: one number a group."""
        _refuse_frame(short)
        if len(short) == 0:
            raise ValueError("short is an empty batch")
        codes = torch.from_numpy(self._vocabulary.encode(short).astype(np.int64, copy=False))
        return codes.to(self.offsets.device)

    def _groups(self, short: Short) -> tuple[Tensor, Tensor]:
        """Where each short context's rows begin, and how many they are, ``[n]`` each."""
        codes = self.encode(short)
        begin = self.offsets[codes].long()
        size = self.offsets[codes + 1].long() - begin
        if not bool(size.all()):
            unseen = int((size == 0).nonzero()[0])
            raise ValueError(f"short context {_show(short[unseen])} does not occur in the data")
        return begin, size

    def sizes(self, short: Short) -> Tensor:
        """How many rows each short context has, ``[n]``."""
        return self._groups(short)[1]

    def every(self, short: Short) -> Contexts:
        """All rows of each short context, equally weighted, padded to the longest of the batch."""
        begin, size = self._groups(short)
        column = torch.arange(int(size.max()), device=size.device)
        real = column < size[:, None]
        index = self.rows[(begin[:, None] + column).where(real, 0)].long().where(real, 0)
        return Contexts(index, real / size[:, None], padded=True)

    def draw(self, short: Short, n_contexts: int, generator: Generator | None = None) -> Contexts:
        """``n_contexts`` rows of each short context, uniform from its multiset   (Eq. k-approx-induced-q)."""
        k = check_count(n_contexts, "n_contexts")
        begin, size = self._groups(short)
        # float64: float32 could not reach every row of a group with more than 2^24.
        u = torch.rand(len(size), k, dtype=torch.float64, generator=generator).to(size.device)
        offset = (u * size[:, None]).long().minimum(size[:, None] - 1)
        index = self.rows[begin[:, None] + offset].long()
        return Contexts(index, torch.full(index.shape, 1 / k, device=index.device))


class _Dense:
    """Integers from 0 up: their own codes."""

    def __init__(self, largest: int) -> None:
        self._size = largest + 1

    def __len__(self) -> int:
        return self._size

    def encode(self, short: Short) -> NDArray[Any]:
        codes = _integers(short)
        if codes.ndim != 1:
            raise ValueError(f"short must be [n], got shape {codes.shape}")
        outside = (codes < 0) | (codes >= self._size)
        if outside.any():
            raise ValueError(f"short context {_show(codes[outside.argmax()])} does not occur in the data")
        return codes


class _Sorted:
    """Any integers, or rows of integers: coded by their place in the sorted list of those that occur."""

    def __init__(self, short: NDArray[Any]) -> None:
        self._keys = np.unique(_as_keys(short))
        self._width = short.shape[1:]

    def __len__(self) -> int:
        return len(self._keys)

    def encode(self, short: Short) -> NDArray[Any]:
        given = _integers(short)
        if given.shape[1:] != self._width:
            raise ValueError(f"short must be [{', '.join(map(str, ('n', *self._width)))}], got shape {given.shape}")
        keys = _as_keys(given)
        codes = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        unseen = self._keys[codes] != keys
        if unseen.any():
            raise ValueError(f"short context {_show(given[unseen.argmax()])} does not occur in the data")
        return codes


class _Hashed:
    """Anything hashable: coded in order of first occurrence."""

    def __init__(self, short: Sequence[Hashable]) -> None:
        self._codes: dict[Hashable, int] = {}
        for value in short:
            self._codes.setdefault(value, len(self._codes))

    def __len__(self) -> int:
        return len(self._codes)

    def encode(self, short: Any) -> NDArray[Any]:
        if isinstance(short, Tensor | np.ndarray):  # whose elements hash by identity, or not at all
            short = [tuple(value) if isinstance(value, list) else value for value in short.tolist()]
        try:
            return np.fromiter((self._codes[value] for value in short), np.int64, len(short))
        except KeyError as unseen:
            raise ValueError(f"short context {unseen.args[0]!r} does not occur in the data") from None


def _vocabulary(short: Short) -> _Dense | _Sorted | _Hashed:
    if isinstance(short, np.ndarray) and short.dtype.kind in "OUS":
        short = short.tolist()
    if not isinstance(short, Tensor | np.ndarray):
        return _Hashed(short)
    values = _integers(short)
    if values.ndim == 1 and values.min() >= 0 and values.max() < max(4 * len(values), 1024):
        return _Dense(int(values.max()))
    return _Sorted(values)


def _refuse_frame(short: Any) -> None:
    """A data frame is a sequence of its columns' names, not of its rows."""
    if hasattr(short, "columns"):
        raise TypeError(f"short must not be a {type(short).__name__}: pass its .to_numpy()")


def _integers(short: Any) -> NDArray[Any]:
    values = short.cpu().numpy() if isinstance(short, Tensor) else np.asarray(short)
    if values.dtype.kind not in "iu":
        raise ValueError(
            f"short must be integers (or a list of hashable things), got {values.dtype}; see Kernel for reals"
        )
    if values.ndim not in (1, 2):
        raise ValueError(f"short must be [n] or [n, m], got shape {values.shape}")
    return values


def _as_keys(values: NDArray[Any]) -> NDArray[Any]:
    """One sortable key a row: the integer itself, or a row's bytes."""
    if values.ndim == 1:
        return values
    rows = np.ascontiguousarray(values, dtype=np.int64)
    return rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()


def _show(value: Any) -> str:
    return repr(value.tolist() if isinstance(value, Tensor | np.ndarray | np.generic) else value)
