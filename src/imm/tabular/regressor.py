"""A regressor that an old model with fewer features helps to train."""

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from imm.tabular.distinct_rows import Array
from imm.tabular.estimator import BaseIMM
from imm.tabular.tasks import Regression


class IMMRegressor(RegressorMixin, BaseIMM):  # type: ignore[misc]
    """Learns from few rows with all features, and from an old model that sees only some of them, the *short* ones.

    Minimises ``½ mean (y - f)² + ½ l2 |w|² / n + ½ λ mean (f̂ - old)²``, where ``f̂`` is the new model's mean over
    rows with the same or near short features, and ``old`` the old model's prediction from these. With ``lam=0`` a
    linear one is scikit-learn's ``Ridge(alpha=l2)`` on standardised columns.

    Parameters and attributes are those of :class:`IMMClassifier`, without ``classes_``; a restricted model has
    ``predict``, or is a callable from short features to values; ``coef_`` is ``[features]``, ``intercept_`` a
    number.
    """

    _answers = "restricted_pred"

    def fit(self, X: Any, y: Any, sample_weight: Any = None, restricted_pred: Any = None) -> Self:
        """Trains the full model.

        Args:
            X: ``[n, features]``, numbers; an array, or a pandas or polars table.
            y: ``[n]``, values.
            sample_weight: ``[n]``; equal if None.
            restricted_pred: what the old model said of each row, ``[n]``, instead of the old model itself.
        """
        return self._fit(X, y, sample_weight, restricted_pred)

    def _prepare_labels(self, y: Array) -> tuple[Regression, Array]:
        return Regression(), np.asarray(y, dtype=np.float64)

    def predict(self, X: Any, restricted_pred: Any = None) -> Array:
        """``[n]``."""
        return self._scores(X, restricted_pred)[:, 0]

    def score(self, X: Any, y: Any, sample_weight: Any = None, restricted_pred: Any = None) -> float:
        """R²."""
        return float(r2_score(y, self.predict(X, restricted_pred), sample_weight=sample_weight))

    def induced_predict(self, short: Any, X: Any = None) -> Array:
        """What the new model says on average of rows with these short features, ``[m]``.

        Args:
            short: ``[m, short features]``, in the order of ``short_features_``, or with names.
            X: rows with all columns whose other features are averaged over; the training rows if None.
        """
        return self._induced(short, X)[:, 0]
