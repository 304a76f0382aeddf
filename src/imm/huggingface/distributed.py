"""Several processes as one: what each has is known to all, in the order of the whole batch."""

from typing import Any

import torch
from torch import Tensor


class Together:
    """The processes of a run.

    Args:
        accelerator: theirs; None for one process.
    """

    def __init__(self, accelerator: Any = None) -> None:
        self._accelerator = accelerator
        self.size: int = 1 if accelerator is None else accelerator.num_processes
        self.rank: int = 0 if accelerator is None else accelerator.process_index

    def sum(self, value: float) -> float:
        """Of each process's number."""
        if self.size == 1:
            return value
        return float(self.total(torch.tensor(value, dtype=torch.float64, device=self._accelerator.device)))

    def total(self, mine: Tensor) -> Tensor:
        """The sum of each process's tensor of this shape."""
        return mine if self.size == 1 else self._accelerator.reduce(mine, "sum")

    def gather(self, mine: Tensor) -> list[Tensor]:
        """Each process's rows, ``[its n, ...]``, by rank; one's own are the tensor that was given, with its graph."""
        if self.size == 1:
            return [mine]
        sizes = self._accelerator.gather(torch.tensor([len(mine)], device=mine.device)).tolist()
        padded = mine.detach().new_zeros(max(sizes), *mine.shape[1:])
        padded[: len(mine)] = mine.detach()
        every = self._accelerator.gather(padded).view(self.size, max(sizes), *mine.shape[1:])
        return [mine if rank == self.rank else every[rank, :n] for rank, n in enumerate(sizes)]

    def whole(self, mine: Tensor) -> Tensor:
        """The rows of all processes, by rank."""
        return mine if self.size == 1 else torch.cat(self.gather(mine))

    def add_up(self, gradients: list[Tensor]) -> None:
        """Replaces each by the sum over processes."""
        if self.size > 1:
            for gradient in gradients:
                gradient.copy_(self.total(gradient))
