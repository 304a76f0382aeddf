"""A language-model problem of the size of the paper's: what the benchmarks run on. Random, but shaped like text."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

WIDTH, CLASSES, LENGTH = 256, 10_000, 35


class Lstm(nn.Module):
    """Embedding, two LSTM layers, output layer: tokens ``[length, n]`` to log-probabilities."""

    def __init__(self, width: int = WIDTH, classes: int = CLASSES) -> None:
        super().__init__()
        self.embedding = nn.Embedding(classes, width)
        self.lstm = nn.LSTM(width, width, num_layers=2)
        self.output = nn.Linear(width, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """At every position, ``[length * n, classes]``."""
        hidden, _ = self.lstm(self.embedding(tokens))
        return torch.log_softmax(self.output(hidden.flatten(0, 1)), -1)

    def last(self, tokens: Tensor) -> Tensor:
        """At the last position only, ``[n, classes]``."""
        hidden, _ = self.lstm(self.embedding(tokens))
        return torch.log_softmax(self.output(hidden[-1]), -1)


def tokens(n: int, classes: int = CLASSES, seed: int = 0) -> Tensor:
    """``n`` tokens whose frequencies fall as one over their rank (Zipf), as words' do: many repeat in a batch."""
    frequency = 1 / torch.arange(1, classes + 1, dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    edges = frequency.cumsum(0) / frequency.sum()
    drawn = torch.searchsorted(edges, torch.rand(n, dtype=torch.float64, generator=generator))
    return drawn.clamp(max=classes - 1)


def short_contexts(stream: Tensor, length: int = LENGTH) -> Tensor:
    """The previous token of each of the stream's rows; row i's history is the ``length`` tokens from i on."""
    return stream[length - 1 :]


def model_on_histories(model: Lstm, stream: Tensor, length: int = LENGTH) -> Callable[[Tensor, Tensor], Tensor]:
    """The model as a matching calls it: the extended context ``index`` is the history of that row."""

    def log_q(_short: Tensor, index: Tensor) -> Tensor:
        return model.last(stream[index + torch.arange(length)[:, None]])

    return log_q


def random_target(n_rows: int, classes: int = CLASSES, seed: int = 0) -> Tensor:
    """Rows of probabilities, ``[n_rows, classes]``, all different and none zero."""
    table = torch.rand(n_rows, classes, generator=torch.Generator().manual_seed(seed)).add_(1e-3)
    return table.div_(table.sum(-1, keepdim=True))
