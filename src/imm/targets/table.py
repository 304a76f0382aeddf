"""A table of probabilities as target."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from imm.targets.base import Target
from imm.validation import check_probabilities


class Table(Target):
    """A row of probabilities for each discrete short context.

    Args:
        rows: short context to its probabilities, in the order of ``classes``.
        classes: the labels.

    Example:
        >>> scorecard = Table({"young": [0.9, 0.1], "old": [0.6, 0.4]}, classes=[0, 1])
        >>> scorecard(["old", "young"])
        tensor([[0.6000, 0.4000],
                [0.9000, 0.1000]])
    """

    def __init__(self, rows: Mapping[Any, ArrayLike | Tensor], classes: Sequence[Hashable]) -> None:
        super().__init__(classes)
        self._code = {key: code for code, key in enumerate(rows)}
        if not rows:
            raise ValueError("rows is empty: a table needs at least one short context")
        tensors = {key: torch.as_tensor(row, dtype=torch.get_default_dtype()) for key, row in rows.items()}
        for key, row in tensors.items():
            if row.shape != (len(self.classes),):
                raise ValueError(
                    f"row {key!r} must have {len(self.classes)} probabilities, got shape {tuple(row.shape)}"
                )
            check_probabilities(row, f"row {key!r}")
        self._p = torch.stack(list(tensors.values()))

    def probabilities(self, short: Any) -> Tensor:
        """The rows of these short contexts."""
        keys = short.tolist() if hasattr(short, "tolist") else short
        keys = [tuple(key) if isinstance(key, list) else key for key in keys]  # a row of several integers
        try:
            return self._p[[self._code[key] for key in keys]]
        except KeyError as unseen:
            raise ValueError(f"short context {unseen.args[0]!r} is not in the table") from None
