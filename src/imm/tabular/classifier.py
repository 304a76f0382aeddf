"""A classifier that an old model with fewer features helps to train."""

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from imm.tabular.estimator import BaseIMM
from imm.tabular.rows import Array
from imm.tabular.tasks import Classification


class IMMClassifier(ClassifierMixin, BaseIMM):  # type: ignore[misc]
    """Stub."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, restricted_proba: Any = None) -> Self:
        """Stub."""
        return self._fit(X, y, sample_weight, restricted_proba)

    def _prepare_labels(self, y: Array) -> tuple[Classification, Array]:
        check_classification_targets(y)
        self.classes_, y = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y must have at least two classes, got one class: {self.classes_[0]!r}")
        return Classification(self.classes_), y

    def decision_function(self, X: Any) -> Array:
        """Stub."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> Array:
        """Stub."""
        scores = self._scores(X)
        return self._setup.task.proba(scores)

    def predict_log_proba(self, X: Any) -> Array:
        """Stub."""
        scores = self._scores(X)
        return self._setup.task.log_proba(scores)

    def predict(self, X: Any) -> Array:
        """Stub."""
        scores = self._scores(X)
        numbers = scores.argmax(1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(np.intp)
        return self.classes_[numbers]

    def induced_predict_proba(self, short: Any, X: Any = None) -> Array:
        """Stub."""
        return self._induced(short, X)
