"""Soft nearest neighbours, for continuous and mixed short contexts."""

import math
import warnings
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree
from torch import Generator, Tensor, nn

from imm.inducers.base import Contexts, as_tensor, draw_columns
from imm.validation import check_count, check_not_negative, check_weights


class Kernel(nn.Module):
    """Weights every row of the data by how near its short context is   (Eq. induced-Q-logreg).

    ``laplace``:  ``w = exp(-Σ_j α_j d_j)``      ``gaussian``:  ``w = exp(-½ Σ_j (α_j d_j)²)``

    with ``d_j`` the absolute difference of short feature ``j``, or, for a categorical feature, 0 where equal
    and 1 where not. ``1/α_j`` is the bandwidth; ``α_j = inf`` asks for equality.

    Args:
        short: ``[N]`` or ``[N, d]``, the short features of the data; categories as numbers. Integers are compared
            in float64. The contexts are on its device.
        alpha: one number for all short features, or one for each, in the units of the data. With ``"auto"`` each
            feature is divided by its standard deviation, and the width is such that the median context has
            ``N^(4 / (d + 4))`` effective neighbours, which balances a kernel mean's bias and variance.
        kind: ``"laplace"`` (the paper's) or ``"gaussian"``.
        categorical: which of the ``d`` features are categories.
        sample_weight: ``[N]``; a weight of 2 counts as the row twice.
        n_neighbors: if given, only this many nearest rows have weight, found by a k-d tree: memory and time
            are then linear in ``N``. All ``N`` rows if None.
        slack: how much farther than the nearest the rows found may be, as a fraction: with 1, up to twice as far. In
            five dimensions 1 halves the time and loses less than a hundredth of the weight.

    A context with fewer than two effective neighbours has no mean to speak of: matching it is reverse KD. A matching
    warns where that is the median.

    Example:
        >>> kernel = Kernel(torch.tensor([0.0, 1.0, 5.0]), alpha=0.5)
        >>> kernel.every(torch.tensor([0.0])).weights
        tensor([[0.5922, 0.3592, 0.0486]])
    """

    short: Tensor
    alpha: Tensor
    categorical: Tensor
    sample_weight: Tensor | None
    own_short = False

    def __init__(
        self,
        short: Tensor | ArrayLike,
        alpha: float | Sequence[float] | Literal["auto"] = "auto",
        kind: Literal["laplace", "gaussian"] = "laplace",
        categorical: Sequence[int] = (),
        sample_weight: Tensor | ArrayLike | None = None,
        n_neighbors: int | None = None,
        slack: float = 0.0,
    ) -> None:
        super().__init__()
        if kind not in ("laplace", "gaussian"):
            raise ValueError(f"kind must be 'laplace' or 'gaussian', got {kind!r}")
        self.kind = kind
        self.register_buffer("short", _columns(short), persistent=False)
        self.data = as_tensor(short, "short")
        n, d = self.short.shape
        if sample_weight is not None:
            sample_weight = as_tensor(sample_weight, "sample_weight").to(self.short.device)
            check_weights(sample_weight, "sample_weight")
            if sample_weight.shape != (n,):
                raise ValueError(f"sample_weight must be [{n}], got shape {tuple(sample_weight.shape)}")
        self.register_buffer("sample_weight", sample_weight, persistent=False)
        if any(not 0 <= j < d for j in categorical):
            raise ValueError(f"categorical must name short features 0 to {d - 1}, got {list(categorical)}")
        self.register_buffer(
            "categorical", torch.zeros(d, dtype=torch.bool, device=self.short.device), persistent=False
        )
        self.categorical[list(categorical)] = True
        if isinstance(alpha, str):
            if alpha != "auto":
                raise ValueError(f"alpha must be a number, {d} numbers or 'auto', got {alpha!r}")
            rates = self._width()
        else:
            rates = torch.as_tensor(alpha, dtype=self.short.dtype, device=self.short.device)
            if rates.shape not in ((), (1,), (d,)):
                raise ValueError(f"alpha must be one number or {d}, got {alpha}")
            if bool((rates < 0).any()) or bool(rates.isnan().any()):
                raise ValueError(f"alpha must not be negative, got {alpha}")
        self.register_buffer("alpha", rates.expand(d).clone(), persistent=False)
        self.slack = check_not_negative(slack, "slack")
        self._neighbors = None if n_neighbors is None else _Neighbors(self, check_count(n_neighbors, "n_neighbors"))

    def _width(self) -> Tensor:
        """Chooses α: the same for all features once each is divided by its standard deviation."""
        n, d = self.short.shape
        spread = self.short.std(0, correction=0)
        unit = torch.where(self.categorical | (spread == 0), 1.0, 1 / spread)
        data = slice(None, None, -(-n // MOST))  # of part of the rows a context has as large a part of its neighbours
        wanted = float(n) ** (4 / (d + 4)) * len(self.short[data]) / n
        low, high = 1e-3, 1e3
        for _ in range(20):
            middle = math.sqrt(low * high)
            self.register_buffer("alpha", middle * unit, persistent=False)
            low, high = (middle, high) if self._median_neighbors(data) > wanted else (low, middle)
        return high * unit

    def _median_neighbors(self, data: slice) -> float:
        log_w = self._log_kernel(self.short[:: -(-len(self.short) // SOME)][:, None], self.short[data])
        if self.sample_weight is not None:
            log_w = log_w + self.sample_weight[data].to(log_w.dtype).log()
        return (1 / torch.softmax(log_w, -1).square().sum(-1)).median().item()

    @property
    def effective_neighbors(self) -> Tensor:
        """How many rows a context's mean is over, for each row of the data: ``1 / Σ w²``, ``[N]``."""
        found = [1 / self.every(part).weights.square().sum(-1) for part in self.short.split(SOME)]
        return torch.cat(found)

    def warn_of_few(self) -> None:
        """Warns if the median context has fewer than two effective neighbours; matchings call it."""
        found = 1 / self.every(self.short[:: -(-len(self.short) // SOME)]).weights.square().sum(-1)
        if (median := found.median().item()) < 2:
            warnings.warn(
                f"the median context of this kernel has {median:.2g} effective neighbours; with fewer than two,"
                ' matching is reverse KD: take a smaller alpha, or alpha="auto"',
                stacklevel=4,
            )

    def _log_kernel(self, short: Tensor, other: Tensor) -> Tensor:
        """``log w`` between rows of two tensors that broadcast, ``[..., d]`` each.

        One feature at a time: ``[n, N, d]`` would not fit where ``[n, N]`` does.
        """
        total = short.new_zeros(())
        for j, (alpha, categorical) in enumerate(zip(self.alpha, self.categorical, strict=True)):
            a, b = short[..., j], other[..., j]
            distance = (a != b).to(a.dtype) if categorical else (a - b).abs()
            scaled = torch.where(distance == 0, 0.0, alpha * distance)  # inf · 0 = 0: equal is equal
            total = total + (scaled if self.kind == "laplace" else 0.5 * scaled.square())
        return -total

    def every(self, short: Tensor | ArrayLike) -> Contexts:
        """All rows, or the nearest ones, with kernel weights."""
        short = _columns(short).to(self.short)
        if short.shape[1] != self.short.shape[1]:
            raise ValueError(f"short must have {self.short.shape[1]} features, got shape {tuple(short.shape)}")
        if self._neighbors is None:
            index = torch.arange(len(self.short), device=short.device).expand(len(short), -1)
            log_w = self._log_kernel(short[:, None], self.short)
        else:
            index, log_w = self._neighbors.find(short)
        if self.sample_weight is not None:
            log_w = log_w + self.sample_weight.to(log_w.dtype).log()[index]
        far = log_w.amax(-1) == -torch.inf
        if far.any():
            raise ValueError(f"short context {short[far][0].tolist()} has no row of the data within reach")
        # Softmax rather than exp and divide: a far short context would underflow to 0 / 0.
        return Contexts(index, torch.softmax(log_w, -1))

    def draw(self, short: Tensor | ArrayLike, n_contexts: int, generator: Generator | None = None) -> Contexts:
        """``n_contexts`` rows for each short context, drawn with kernel weights."""
        k = check_count(n_contexts, "n_contexts")
        every = self.every(short)
        column = draw_columns(every.weights, k, generator)
        return Contexts(every.index.gather(1, column), every.weights.new_full(column.shape, 1 / k))


SOME, MOST = 512, 4096
"""Contexts and rows that stand for all where a width is chosen."""

FEW = 1000
"""Short contexts up to which neighbours are not looked up in parallel: to start threads would take longer."""


class _Neighbors:
    """The nearest rows, by a k-d tree over a space in which the kernel's distance is the L1 or L2 norm."""

    def __init__(self, kernel: Kernel, n_neighbors: int) -> None:
        self._kernel = kernel
        self._order = 1 if kernel.kind == "laplace" else 2
        short = kernel.short.cpu().numpy()
        if n_neighbors > len(short):
            raise ValueError(f"n_neighbors is {n_neighbors}, but there are only {len(short)} rows")
        self._k = n_neighbors
        self._categories = {j: np.unique(short[:, j]) for j in kernel.categorical.nonzero().ravel().tolist()}
        self._exact = {j: np.unique(short[:, j]) for j in kernel.alpha.isinf().nonzero().ravel().tolist()}
        # An infinite α must beat any sum of the finite ones, yet be finite in the tree.
        finite = [float(a) * float(np.ptp(short[:, j])) + float(a) for j, a in enumerate(kernel.alpha) if a.isfinite()]
        self._far = 1e3 * (1.0 + sum(finite))
        self._tree = cKDTree(self._embed(short))

    def _embed(self, short: NDArray[np.floating]) -> NDArray[np.floating]:
        parts = []
        for j, alpha in enumerate(self._kernel.alpha.tolist()):
            if j in self._exact:
                # Its place among the values that occur: different values, however close, are at least 1 apart.
                place = np.searchsorted(self._exact[j], short[:, j, None])
                parts.append(place * self._far)
            elif j in self._categories:
                # One-hot: two different categories differ in two coordinates.
                scale = alpha / 2 if self._order == 1 else alpha / np.sqrt(2)
                parts.append((short[:, j, None] == self._categories[j]) * scale)
            else:
                parts.append(short[:, j, None] * alpha)
        return np.concatenate(parts, axis=1)

    def find(self, short: Tensor) -> tuple[Tensor, Tensor]:
        """``[n, k]`` row numbers, nearest first, and their ``log w``."""
        workers = -1 if len(short) > FEW else 1
        points = self._embed(short.cpu().numpy())
        away, rows = self._tree.query(points, k=self._k, p=self._order, eps=self._kernel.slack, workers=workers)
        index = torch.from_numpy(rows.astype(np.int64, copy=False).reshape(len(short), self._k)).to(short.device)
        if self._exact:  # in the tree an infinite distance is finite
            return index, self._kernel._log_kernel(short[:, None], self._kernel.short[index])
        distance = torch.from_numpy(away.reshape(index.shape)).to(short)
        return index, -distance if self._order == 1 else -0.5 * distance.square()


def _columns(short: Tensor | ArrayLike) -> Tensor:
    """``[n, d]`` in floating point; refuses what is empty or not finite."""
    short = as_tensor(short, "short")
    if short.ndim not in (1, 2) or short.numel() == 0:
        raise ValueError(f"short must be [n] or [n, d] and not empty, got shape {tuple(short.shape)}")
    values = short if short.is_floating_point() else short.double()  # float32 would merge 2^24 and 2^24 + 1
    if values is not short and bool((values.abs() >= 2**53).any()):
        raise ValueError(f"short must be below 2^53 to be told apart, got {short[values.abs() >= 2**53][0].item()}")
    if not bool(values.isfinite().all()):
        raise ValueError(f"short must be finite, got {values[~values.isfinite()][0].item()}")
    return values.reshape(len(values), -1)
