"""A classifier that an old model with fewer features helps to train."""

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets

from imm.tabular.distinct_rows import Array
from imm.tabular.estimator import BaseIMM
from imm.tabular.tasks import Classification


class IMMClassifier(ClassifierMixin, BaseIMM):  # type: ignore[misc]
    """Learns from few rows with all features, and from an old model that sees only some of them, the *short* ones.

    Minimises ``mean cross-entropy + ½ l2 |w|² / n + λ · IMM``   (Eq. main-objective). The IMM risk is the
    cross-entropy between what the old model says of a row's short features and what the new model says on average
    over rows with the same or near short features. Where the average agrees with the old model it leaves the new
    model free to use the other features.

    Args:
        model: the full model: ``"linear"`` (:class:`Linear`), ``"mlp"`` (:class:`Network`), ``"lightgbm"`` or
            ``"xgboost"`` (they need ``imm[lightgbm]``, ``imm[xgboost]``), one of these with settings of its own, or a
            factory ``f(n_features, n_classes) -> torch.nn.Module``.
        short_features: the columns the old model sees, in its order: names, numbers, a mask, or a callable that is
            given ``X`` and answers one of these. If None: the columns the old model names in ``feature_names_in_``;
            those that old data has in common with ``X``; else all columns. If all columns are short, an average
            over rows with the same ones is the new model itself, and IMM is reverse knowledge distillation. Empty,
            with old answers given to :meth:`fit`: nobody knows which columns the old model saw; the average is then
            over rows for which it gave near answers.
        restricted_model: the old model: a fitted classifier; a callable, short features to probabilities; the path
            of an ONNX file (needs ``imm[onnx]``); old data ``(X_old, y_old)``, from which a linear one is fitted;
            an estimator that is not fitted, or None for a linear one: it is then fitted on the short columns of the
            same rows. A fitted one stays so when this estimator is cloned.
        lam: λ: a number; a schedule in the number of rows (:class:`imm.strength.Linear`, or a callable
            ``n -> λ``); or ``"auto"``, chosen together with ``l2`` by repeated stratified cross-validation, see
            :func:`imm.tabular.selection.choose`. It is 0 for an old model that misleads (``choice_.misleading``):
            already the first bit of it makes a model without features predict held-out rows worse.
        l2: the full model's own penalty, scikit-learn's ``1/C``. ``"auto"``: chosen together with λ; 1 where λ is
            given.
        keep_old: the old model's log-odds become one more short feature (IMM together with stacking), trees begin
            from what is linear in them, and with ``lam="auto"`` its prediction is mixed in with a share that the same
            cross-validation decides. Predictions then ask the old model each time; otherwise it is not needed any more.
        n_neighbors: how many rows a short context is averaged over, if not that many have it in common. None: all
            rows, and the cost is quadratic.
        alpha: one over the bandwidth of the Laplace kernel by which near rows are weighted, in standard deviations.
        standardize: the full model sees columns with mean 0 and deviation 1, so that the penalty treats all alike.
        random_state: seeds folds and networks.

    Attributes:
        classes_: the labels, sorted.
        lam_: λ as used.
        l2_: the penalty as used.
        choice_: what cross-validation found (:class:`Choice`); None if λ was given.
        share_: the old model's share in predictions; 0 without ``keep_old``, or if λ was given.
        short_features_: numbers of the short columns, in the old model's order.
        restricted_: how the old model came: ``"estimator"``, ``"callable"``, ``"onnx"``, ``"column"``,
            ``"old data"``, ``"same data"``; None if none was needed.
        restricted_model_: the old model that was asked; None for a column.
        uses_old_model_: whether predictions ask it.
        coef_: of a linear model, ``[1 or classes, features]``, in the units of the columns.
        intercept_: the same, ``[1 or classes]``.
        old_coef_: with ``keep_old``, of the old log-odds. All three are of the new model, before the old is mixed in.
        n_features_in_: the number of columns.
        feature_names_in_: their names, if they have any.

    Where old answers were given to :meth:`fit` and ``keep_old`` is set, methods that predict and :meth:`score` need the
    old answers at their rows too, as ``restricted_proba``.

    Equal rows are made one and weights added up, so a weight of 2 is the row twice everywhere: in the loss, among
    extended contexts and in cross-validation. So it is not only their ratios that count: weights that add up to 1 are
    those of a single row.

    Example:
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> old = LogisticRegression(max_iter=1000).fit(X[100:, :2], y[100:])  # many rows, two features
        >>> new = IMMClassifier(short_features=[0, 1], restricted_model=old, lam=1.0).fit(X[:50], y[:50])
        >>> new.predict(X[50:53])
        array([1, 1, 1])
    """

    _answers = "restricted_proba"

    def fit(self, X: Any, y: Any, sample_weight: Any = None, restricted_proba: Any = None) -> Self:
        """Trains the full model.

        Args:
            X: ``[n, features]``, numbers; an array, or a pandas or polars table.
            y: ``[n]``, labels.
            sample_weight: ``[n]``; equal if None.
            restricted_proba: what the old model said of each row, instead of the old model itself: ``[n]``,
                probabilities of the second of two classes in sorted order, or ``[n, classes]``.
        """
        return self._fit(X, y, sample_weight, restricted_proba)

    def _prepare_labels(self, y: Array) -> tuple[Classification, Array]:
        check_classification_targets(y)
        self.classes_, y = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y must have at least two classes, got one class: {self.classes_[0]!r}")
        return Classification(self.classes_), y

    def decision_function(self, X: Any, restricted_proba: Any = None) -> Array:
        """Log-odds of the second of two classes, ``[n]``; logits of more, ``[n, classes]``."""
        scores = self._scores(X, restricted_proba)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any, restricted_proba: Any = None) -> Array:
        """``[n, classes]``."""
        scores = self._scores(X, restricted_proba)
        return Classification(self.classes_).proba(scores)

    def predict_log_proba(self, X: Any, restricted_proba: Any = None) -> Array:
        """``[n, classes]``."""
        scores = self._scores(X, restricted_proba)
        return Classification(self.classes_).log_proba(scores)

    def predict(self, X: Any, restricted_proba: Any = None) -> Array:
        """The most probable label, ``[n]``."""
        scores = self._scores(X, restricted_proba)
        numbers = scores.argmax(1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(np.intp)
        labels: Array = self.classes_[numbers]
        return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None, restricted_proba: Any = None) -> float:
        """The accuracy."""
        return float(accuracy_score(y, self.predict(X, restricted_proba), sample_weight=sample_weight))

    def induced_predict_proba(self, short: Any, X: Any = None) -> Array:
        """What the new model says on average of rows with these short features   (Eq. induced-Q-logreg).

        Args:
            short: ``[m, short features]``, in the order of ``short_features_``, or with names.
            X: rows with all columns whose other features are averaged over; the training rows if None.

        Returns:
            ``[m, classes]``, to be compared with the old model's ``predict_proba``.
        """
        return self._induced(short, X)
