"""A fitted classifier as target."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from imm.targets.base import Target, align


class Classifier(Target):
    """Any fitted classifier with ``predict_proba`` and ``classes_``, on chosen columns of the rows it is given.

    It need not be scikit-learn's.

    Args:
        model: the fitted restricted model.
        columns: its features among the columns of what the target is called with: names for a data frame,
            numbers for an array. All columns if None.
        classes: the full model's labels in its order; the restricted model's columns are put in that order.
            The model's own if None.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> old = LogisticRegression().fit([[0.0], [1.0]], ["bad", "good"])
        >>> target = Classifier(old, columns=[2], classes=["good", "bad"])
        >>> target(np.array([[5.0, 3.0, 0.5]]))
        tensor([[0.5000, 0.5000]])
    """

    def __init__(
        self,
        model: Any,
        columns: Sequence[str] | Sequence[int] | None = None,
        classes: Sequence[Hashable] | None = None,
    ) -> None:
        if not hasattr(model, "predict_proba"):
            raise TypeError(f"the restricted model must have predict_proba; {type(model).__name__} has not")
        if hasattr(model, "__sklearn_tags__"):  # so is scikit-learn there, and takes a while to import
            from sklearn.utils.validation import check_is_fitted

            check_is_fitted(model)
        if getattr(model, "classes_", None) is None:
            raise TypeError(f"the restricted model must be fitted and have classes_; {type(model).__name__} has not")
        own = [label.item() if isinstance(label, np.generic) else label for label in model.classes_]
        super().__init__(own if classes is None else classes)
        self._order = align(self.classes, own)
        self.model = model
        self.columns: list[Any] | None = None if columns is None else list(columns)

    def probabilities(self, short: Any) -> Tensor:
        """``predict_proba`` on the model's columns, in the order of ``classes``."""
        proba = np.asarray(self.model.predict_proba(self._select(short)))
        return torch.from_numpy(proba[:, self._order].astype(np.float32))

    def _select(self, rows: Any) -> Any:
        if self.columns is None:
            return rows
        if not hasattr(rows, "columns"):
            array = np.asarray(rows)
            try:
                return array[:, self.columns]
            except IndexError:
                raise ValueError(
                    f"columns must be column numbers of an array of shape {array.shape} (names are for a data frame),"
                    f" got {self.columns}"
                ) from None
        missing = [name for name in self.columns if name not in rows.columns]
        if missing:
            raise ValueError(f"the rows lack the restricted model's columns {missing}; they have {list(rows.columns)}")
        return rows[self.columns]
