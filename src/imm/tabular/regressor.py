"""A regressor that an old model with fewer features helps to train."""

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from imm.tabular.estimator import BaseIMM
from imm.tabular.rows import Array
from imm.tabular.tasks import Regression


class IMMRegressor(RegressorMixin, BaseIMM):  # type: ignore[misc]
    """Stub."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, restricted_pred: Any = None) -> Self:
        """Stub."""
        return self._fit(X, y, sample_weight, restricted_pred)

    def _prepare_labels(self, y: Array) -> tuple[Regression, Array]:
        return Regression(), np.asarray(y, dtype=np.float64)

    def predict(self, X: Any) -> Array:
        """Stub."""
        return self._scores(X)[:, 0]

    def induced_predict(self, short: Any, X: Any = None) -> Array:
        """Stub."""
        return self._induced(short, X)[:, 0]
