"""The old model, in every form in which it comes, at the rows of a table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from imm.tabular.columns import table_names, take
from imm.tabular.distinct_rows import Array
from imm.tabular.onnx_model import Onnx
from imm.tabular.tasks import Task

Rows = NDArray[np.intp]
Kind = Literal["estimator", "callable", "onnx", "column", "old data", "same data"]


class Old(Protocol):
    """P̂ at the rows of a table, for any division into rows to learn from and others."""

    def on(self, train: Rows, test: Rows) -> tuple[Array, Array]:
        """P̂ at both, ``[rows, classes]`` each, from nothing but the first (or from data of its own)."""
        ...


@dataclass(frozen=True)
class Known:
    """An old model that was there before: its predictions do not depend on the rows."""

    values: Array

    def on(self, train: Rows, test: Rows) -> tuple[Array, Array]:
        """The rows' values."""
        return self.values[train], self.values[test]


@dataclass(frozen=True)
class Refitted:
    """No old model: one is fitted on the short columns of the rows to learn from, anew for every fold."""

    estimator: Any
    short: Array
    y: Array
    weight: Array
    task: Task

    def fit(self, rows: Rows) -> Any:
        """The restricted model of these rows."""
        labels = self.task.labels(self.y[rows])
        if self.task.n_classes and (labels == labels[0]).all():  # in a fold of very few rows
            return DummyClassifier().fit(self.short[rows], labels)
        return _fit_weighted(clone(self.estimator), self.short[rows], labels, self.weight[rows])

    def on(self, train: Rows, test: Rows) -> tuple[Array, Array]:
        """Fitted on ``train``, asked at both."""
        model = self.fit(train)
        known = self.task.ask(model, self.short[train], partial=True)
        return known, self.task.ask(model, self.short[test], partial=True) if len(test) else known[:0]


def _fit_weighted(model: Any, x: Array, y: Array, weight: Array) -> Any:
    if (weight == weight[0]).all():
        return model.fit(x, y)
    if not has_fit_parameter(model, "sample_weight"):
        raise ValueError(f"restricted_model {type(model).__name__} takes no sample_weight, but rows have weights")
    return model.fit(x, y, sample_weight=weight)


@dataclass(frozen=True)
class Source:
    """Where P̂ comes from.

    Attributes:
        kind: how it was given.
        model: what can be asked; None for a column, and for what is still to be fitted on the same data.
        short: the numbers of the short columns.
        order: their places among these in the model's own order; as they are if None.
    """

    kind: Kind
    model: Any
    short: Rows
    order: Rows | None = None

    def __post_init__(self) -> None:
        if self.kind != "column" and not len(self.short):
            raise ValueError("short_features is empty: the old model must see a column, if its answers are not given")

    def ask(self, X: Any, task: Task) -> Array:
        """P̂ at the rows of a whole table, ``[n, classes]``."""
        if self.kind in ("old data", "same data"):
            short = np.asarray(take(X, self.short), dtype=np.float64)
            return task.ask(self.model, short, partial=self.kind == "same data")
        return task.ask(self.model, self._shown(X))

    def ask_short(self, short: Any, task: Task) -> Array:
        """The same for a table that has the short columns only."""
        return replace(self, short=np.arange(len(self.short))).ask(short, task)

    def _shown(self, X: Any) -> Any:
        """The short columns in the model's order, with names if it knows them or is no estimator."""
        expects = getattr(self.model, "n_features_in_", None)
        if expects is not None and expects != len(self.short):
            raise ValueError(
                f"the restricted model sees {expects} features, but {len(self.short)} columns are short;"
                " say which in short_features, in the model's order"
            )
        shown = take(X, self.short if self.order is None else self.short[self.order])
        nameless = isinstance(self.model, BaseEstimator) and not hasattr(self.model, "feature_names_in_")
        return np.asarray(shown) if nameless else shown


def find_source(given: Any, has_column: bool, X: Any, short: Rows, default: Any) -> Source:
    """What the user gave as old model.

    Args:
        given: the parameter ``restricted_model``.
        has_column: whether old answers at the training rows were given instead.
        X: the new table.
        short: its short columns.
        default: the estimator that is fitted where old data is given.
    """
    if has_column:
        return Source("column", None, short)
    if isinstance(given, tuple):
        if len(given) != 2:
            raise ValueError(f"old data must be (X_old, y_old), got a tuple of {len(given)}")
        return Source("old data", default.fit(_old_columns(given[0], X, short), np.asarray(given[1])), short)
    if given is None or (hasattr(given, "fit") and not is_fitted(given)):
        return Source("same data", None, short)
    return fitted_source(given, short, table_names(X), ", (X_old, y_old) or None")


def fitted_source(given: Any, short: Rows, names: Sequence[str] | None, also: str = "") -> Source:
    """An old model that can be asked as it is.

    Args:
        given: the parameter ``restricted_model``.
        short: the short columns.
        names: of all columns, if they have names.
        also: what else the parameter might have been, for the message.
    """
    if isinstance(given, str | Path):
        return Source("onnx", Onnx(given), short)
    if isinstance(given, type):
        got = f"the class {given.__name__}"
    elif hasattr(given, "predict") and is_fitted(given):
        return Source("estimator", given, short, _own_order(given, short, names))
    elif callable(given):
        return Source("callable", given, short)
    else:
        got = type(given).__name__ + (", which is not fitted" if hasattr(given, "predict") else "")
    raise TypeError(
        f"restricted_model must be a fitted estimator, a callable, the path of an ONNX file{also}, got {got}"
    )


def _own_order(model: Any, short: Rows, names: Sequence[str] | None) -> Rows | None:
    """The places of the model's columns among the short ones, where both have names; these must be the same."""
    own = getattr(model, "feature_names_in_", None)
    if own is None or names is None:
        return None
    shown = [names[i] for i in short]
    if set(own) != set(shown):
        raise ValueError(f"the restricted model sees {list(own)[:30]}, but the short columns are {shown[:30]}")
    return np.array([shown.index(name) for name in own], dtype=np.intp)


def is_fitted(model: Any) -> bool:
    """Whether a model can predict already; one that is not scikit-learn's is taken to."""
    if not isinstance(model, BaseEstimator):
        return True
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def own_columns(given: Any, names: Sequence[str] | None) -> list[str] | None:
    """The short columns as the old model itself names them: a model's features, or what old data has in common."""
    if names is None:
        return None
    if isinstance(given, tuple):
        old = table_names(given[0])
        shared = None if old is None else [name for name in names if name in old]
        if shared == []:
            raise ValueError(f"the old data has none of the columns {list(names)[:30]}")
        return shared
    own = getattr(given, "feature_names_in_", None)
    missing = [] if own is None else [name for name in own if name not in names]
    if missing:
        raise ValueError(f"the restricted model sees {missing[:30]}, which the table has not")
    return None if own is None else [str(name) for name in own]


def _old_columns(x_old: Any, X: Any, short: Rows) -> Array:
    """The short columns of old data, which has them only, or has all columns."""
    old, new = table_names(x_old), table_names(X)
    if old is not None and new is not None:
        wanted = [new[i] for i in short]
        missing = [name for name in wanted if name not in old]
        if missing:
            raise ValueError(f"the old data lacks the short columns {missing[:30]}; it has {old[:30]}")
        return np.asarray(x_old[wanted], dtype=np.float64)
    values = np.asarray(x_old, dtype=np.float64)
    n_features = np.shape(X)[1]
    if values.ndim != 2 or values.shape[1] not in (len(short), n_features):
        raise ValueError(f"the old data must have the {len(short)} short columns, got shape {values.shape}")
    return values if values.shape[1] == len(short) else values[:, short]
