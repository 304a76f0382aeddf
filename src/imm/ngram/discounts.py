"""The discounts of modified Kneser-Ney smoothing, from counts of counts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FALLBACK = (0.5, 1.0, 1.5)
"""Where counts of counts are missing; the same as KenLM's."""


@dataclass(frozen=True)
class Discounts:
    """What is taken from counts of one, of two, and of three or more.

    Attributes:
        amounts: D1, D2, D3+.
        estimated: False where counts of counts were missing and :data:`FALLBACK` stands in.
    """

    amounts: tuple[float, float, float]
    estimated: bool = True

    @classmethod
    def estimate(cls, counts: NDArray[np.integer]) -> "Discounts":
        """``Y = n1 / (n1 + 2 n2)``, ``Dj = j - (j+1) Y n(j+1) / nj``, with ``nj`` n-grams of count ``j``.

        Zero counts are left out. Where one of n1, n2, n3 is zero, or a Dj is not between 0 and j, the counts are too
        few to estimate from.
        """
        n = np.bincount(np.minimum(counts, 5), minlength=6).tolist()
        if not all(n[1:4]):
            return cls(FALLBACK, estimated=False)
        y = n[1] / (n[1] + 2 * n[2])
        one, two, three = (j - (j + 1) * y * n[j + 1] / n[j] for j in (1, 2, 3))
        if min(one, two, three) < 0:
            return cls(FALLBACK, estimated=False)
        return cls((one, two, three))

    def of(self, counts: NDArray[np.integer]) -> NDArray[np.float64]:
        """What is taken from each of these counts; nothing from a count of zero."""
        return np.array([0.0, *self.amounts]).take(counts, mode="clip")
