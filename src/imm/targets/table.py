"""A table of probabilities as target."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Self

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

    rows: Tensor

    def __init__(self, rows: Mapping[Any, ArrayLike | Tensor], classes: Sequence[Hashable]) -> None:
        super().__init__(classes)
        self._code: dict[Any, int] | None = {key: code for code, key in enumerate(rows)}
        if not rows:
            raise ValueError("rows is empty: a table needs at least one short context")
        tensors = {key: torch.as_tensor(row, dtype=torch.get_default_dtype()) for key, row in rows.items()}
        for key, row in tensors.items():
            if row.shape != (len(self.classes),):
                raise ValueError(
                    f"row {key!r} must have {len(self.classes)} probabilities, got shape {tuple(row.shape)}"
                )
            check_probabilities(row, f"row {key!r}")
        self.register_buffer("rows", torch.stack(list(tensors.values())), persistent=False)

    @classmethod
    def from_tensor(cls, rows: Tensor, classes: Sequence[Hashable] | None = None) -> Self:
        """Returns the table of short contexts that are codes ``0 … len(rows) - 1``; keeps the tensor's type.

        Args:
            rows: probabilities, ``[n_short, classes]``.
            classes: the labels; their numbers if None.
        """
        if rows.ndim != 2:
            raise ValueError(f"rows must be [n_short, classes], got shape {tuple(rows.shape)}")
        check_probabilities(rows, "rows")
        table = cls.__new__(cls)
        Target.__init__(table, range(rows.shape[1]) if classes is None else classes)
        table._code = None
        table.register_buffer("rows", rows.detach(), persistent=False)
        return table

    @property
    def n_short(self) -> int:
        """How many short contexts there are."""
        return len(self.rows)

    def probabilities(self, short: Any) -> Tensor:
        """The rows of these short contexts."""
        if self._code is None:
            return self.rows.index_select(0, torch.as_tensor(short, device=self.rows.device))
        keys = short.tolist() if hasattr(short, "tolist") else short
        keys = [tuple(key) if isinstance(key, list) else key for key in keys]  # a row of several integers
        try:
            return self.rows[[self._code[key] for key in keys]]
        except KeyError as unseen:
            raise ValueError(f"short context {unseen.args[0]!r} is not in the table") from None
