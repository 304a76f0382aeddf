"""Figures over Monte-Carlo runs, as every study reports them."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from imm.experiments.study import Row

if TYPE_CHECKING:
    from torch import Tensor


def spread(values: "Tensor | NDArray[Any]") -> Row:
    """Returns the mean over runs, the 10th and 90th percentiles, and how many runs there are."""
    return {"mean": float(values.mean()), **percentiles(values), "runs": len(values)}


def percentiles(values: ArrayLike) -> Row:
    """Returns the 10th and 90th percentiles over runs."""
    p10, p90 = np.percentile(np.asarray(values), [10, 90])
    return {"p10": float(p10), "p90": float(p90)}
