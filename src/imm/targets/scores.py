"""Old probabilities, one for each row of the data, as target."""

from collections.abc import Hashable, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from imm.targets.base import Target, align
from imm.validation import check_probabilities


class Scores(Target):
    """What an old model once said of each row of the data. The old model itself is not needed.

    Args:
        scores: ``[N]``, probabilities of the second of two classes; or ``[N, classes]``.
        classes: the full model's labels in its order.
        scores_classes: the labels in the order of ``scores``' columns; that of ``classes`` if None.

    A short context is a row number: IMM asks for P̂ at the training rows only.

    Example:
        >>> Scores([0.25, 0.5], classes=["good", "bad"])(torch.tensor([0]))
        tensor([[0.7500, 0.2500]])
    """

    _p: Tensor

    def __init__(
        self,
        scores: ArrayLike | Tensor,
        classes: Sequence[Hashable],
        scores_classes: Sequence[Hashable] | None = None,
    ) -> None:
        super().__init__(classes)
        order = align(self.classes, self.classes if scores_classes is None else scores_classes)
        p = torch.as_tensor(np.array(scores), dtype=torch.get_default_dtype())  # a copy: a series may be read-only
        if p.ndim == 1:
            outside = (p < 0) | (p > 1)
            if outside.any():
                row = int(outside.nonzero()[0])
                raise ValueError(f"scores must be between 0 and 1, got {p[row].item():.6g} in row {row}")
            p = torch.stack([1 - p, p], 1)
        if p.ndim != 2 or p.shape[1] != len(self.classes):
            raise ValueError(
                f"scores must be [N] for two classes or [N, {len(self.classes)}] for {list(self.classes)},"
                f" got shape {tuple(np.shape(scores))}"
            )
        check_probabilities(p, "scores")
        self.register_buffer("_p", p[:, order], persistent=False)

    def __len__(self) -> int:
        """How many rows have a score."""
        return len(self._p)

    def probabilities(self, short: Tensor | Sequence[int]) -> Tensor:
        """The scores of these rows."""
        short = torch.as_tensor(short, device=self._p.device)
        outside = (short < 0) | (short >= len(self))
        if outside.any():
            raise ValueError(f"row {short[outside][0].item()} has no score: there are {len(self)}")
        return self._p[short]
