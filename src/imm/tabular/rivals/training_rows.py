"""Rows as every method gets them."""

from dataclasses import dataclass, field

import numpy as np

from imm.tabular.distinct_rows import Array, distinct
from imm.tabular.fitting import Data
from imm.tabular.old_model import Known


@dataclass(frozen=True)
class OldRows:
    """The rows the old model was fitted on.

    Attributes:
        short: ``[m, short features]``, in the order in which the table has these columns.
        y: ``[m]``, coded as the table's.
    """

    short: Array
    y: Array


@dataclass(frozen=True)
class Table:
    """Rows with all features, and what is known of the old model.

    Attributes:
        x: ``[n, d]``, numbers.
        y: ``[n]``, class numbers, or values for regression.
        old: the old model's word at each row, ``[n, classes]``; ``[n, 1]`` for regression.
        old_rows: what it was fitted on, if that is at hand.
        known: by method, held-out losses at each penalty that others begin with; filled as methods are trained, so
            that none computes them again.
    """

    x: Array
    y: Array
    old: Array
    old_rows: OldRows | None = None
    known: dict[str, dict[float, Array]] = field(default_factory=dict)

    def data(self) -> Data:
        """Equal rows made one, as the estimators do."""
        old = self.old
        same = distinct(self.x, self.y, also=old)
        first = same.first
        weight = same.total(np.ones(len(self.x)))
        return Data(self.x[first], self.y[first], weight, Known(old[first]), np.arange(len(first)))
