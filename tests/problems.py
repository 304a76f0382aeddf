"""A model and data small enough to differentiate the definition of the risk by plain autograd."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from imm.inducers import Contexts


def random_probabilities(*shape: int, generator: torch.Generator, dtype: torch.dtype = torch.float64) -> Tensor:
    """Rows of probabilities, none of them zero."""
    return torch.softmax(torch.randn(*shape, generator=generator, dtype=dtype), -1)


class Problem:
    """A linear softmax model on rows with a discrete short context and three continuous extended features."""

    def __init__(self, seed: int = 0, dtype: torch.dtype = torch.float64, n: int = 9, classes: int = 4) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.n_short = 3
        # The first rows have every short context at least once, and the groups differ in size.
        self.short = torch.cat([torch.arange(3), torch.randint(3, (n - 3,), generator=generator)])
        self.extended = torch.randn(n, 3, generator=generator, dtype=dtype)
        self.table = random_probabilities(3, classes, generator=generator, dtype=dtype)
        self.target = self.table[self.short]
        self.labels = torch.randint(classes, (n,), generator=generator)
        self.model = nn.Linear(6, classes, dtype=dtype)
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=dtype))

    def predict(self, short: Tensor, index: Tensor) -> Tensor:
        """The full model with these short contexts and the extended contexts of ``index``: logits."""
        one_hot = nn.functional.one_hot(short, 3).to(self.extended.dtype)
        out: Tensor = self.model(torch.cat([one_hot, self.extended[index]], 1))
        return out

    def logits(self, rows: Tensor) -> Tensor:
        """The full model at some rows."""
        return self.predict(self.short[rows], rows)

    def log_q(self, rows: Tensor, index: Tensor) -> Tensor:
        """The full model with the short context of ``rows`` and the extended context of ``index``."""
        return torch.log_softmax(self.predict(self.short[rows], index), -1)

    def all(self) -> Tensor:
        """The full model at each row, ``[n, classes]``."""
        rows = torch.arange(len(self.short))
        return self.log_q(rows, rows)

    def risk(self, contexts: Contexts) -> Tensor:
        """The definition of the risk, context by context and class by class, differentiable."""
        total = torch.zeros((), dtype=self.extended.dtype)
        for t in range(len(self.short)):
            induced = torch.zeros(self.target.shape[1], dtype=self.extended.dtype)
            for index, weight in zip(contexts.index[t], contexts.weights[t].double(), strict=True):
                induced = induced + weight * self.log_q(torch.tensor([t]), index[None])[0].exp()
            for y, p in enumerate(self.target[t]):
                total = total - p * induced[y].log()
        return total / len(self.short)

    def gradient(self, loss: Callable[[], Tensor | None]) -> Tensor:
        """What ``loss`` (called, and differentiated if it gives something to differentiate) leaves in ``.grad``."""
        self.model.zero_grad()
        value = loss()
        if value is not None and value.requires_grad:
            value.backward()
        flat = torch.cat([parameter.grad.flatten() for parameter in self.model.parameters()])
        self.model.zero_grad()
        return flat
