"""A distribution of extended contexts that the user gives."""

import torch
from numpy.typing import ArrayLike
from torch import Generator, Tensor, nn

from imm.inducers.base import Contexts, as_tensor, draw_columns
from imm.validation import check_count, check_probabilities


class Belief(nn.Module):
    """π(extended | short) as a table, such as the belief of an agent about what it does not see.

    Args:
        probabilities: ``[n_short, n_extended]``; row ``s`` is the distribution given short context ``s``.

    Short contexts are integers in ``[0, n_short)``; an extended context is a column number.

    Example:
        >>> uniform = Belief(torch.full((3, 2), 0.5))
        >>> uniform.every(torch.tensor([2])).index
        tensor([[0, 1]])
    """

    probabilities: Tensor
    data = None
    own_short = False

    def __init__(self, probabilities: Tensor | ArrayLike) -> None:
        super().__init__()
        probabilities = as_tensor(probabilities, "probabilities")
        if probabilities.ndim != 2:
            raise ValueError(f"probabilities must be [n_short, n_extended], got shape {tuple(probabilities.shape)}")
        check_probabilities(probabilities, "probabilities")
        self.register_buffer("probabilities", probabilities, persistent=False)

    def _rows(self, short: Tensor | ArrayLike) -> Tensor:
        n_short, short = len(self.probabilities), as_tensor(short, "short")
        if short.numel() == 0:
            raise ValueError("short is an empty batch")
        if short.ndim != 1 or short.dtype == torch.bool or short.is_floating_point():
            raise ValueError(f"short must be integers [n], got {short.dtype} of shape {tuple(short.shape)}")
        short = short.long()  # torch cannot compare uint16
        unseen = (short < 0) | (short >= n_short)
        if unseen.any():
            raise ValueError(f"short context {short[unseen][0].item()} is not in the belief's 0 to {n_short - 1}")
        return self.probabilities[short]

    def every(self, short: Tensor | ArrayLike) -> Contexts:
        """Every extended context, with the belief as weights."""
        weights = self._rows(short)
        index = torch.arange(weights.shape[1], device=weights.device).expand(weights.shape)
        return Contexts(index, weights, padded=True)  # what has no probability need not be asked

    def draw(self, short: Tensor | ArrayLike, n_contexts: int, generator: Generator | None = None) -> Contexts:
        """``n_contexts`` draws from the belief."""
        k = check_count(n_contexts, "n_contexts")
        rows = self._rows(short)
        index = draw_columns(rows, k, generator)
        return Contexts(index, rows.new_full(index.shape, 1 / k))
