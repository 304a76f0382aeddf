"""The full model on extended contexts that lie anywhere in the training text."""

import torch
from torch import Tensor, nn

from imm.language.model import LanguageModel, State
from imm.language.windows import Windows

BUCKETS = 6


def states_mb(n_windows: int, initial: State) -> float:
    """What the :class:`States` of so many windows take; ``initial`` may be on the meta device."""
    return n_windows * sum(part.numel() * _kept(part).itemsize for part in initial) / 1e6


def _kept(part: Tensor) -> torch.dtype:
    return torch.float16 if part.is_floating_point() else torch.int32


class States(nn.Module):
    """For each window of the text, the model's state when the primary pass last came to it; half precision.

    Args:
        n_windows: how many there are.
        initial: a model's initial state, which every window has at first.
        most_mb: the most that they may take.
    """

    def __init__(self, n_windows: int, initial: State, most_mb: int) -> None:
        super().__init__()
        size = states_mb(n_windows, initial)
        if size > most_mb:
            raise ValueError(
                f"the states of {n_windows:,} windows take {size:,.1f} MB, more than table_mb {most_mb:,}: raise it"
            )
        self._dtypes = [part.dtype for part in initial]
        for i, part in enumerate(initial):
            self.register_buffer(f"part{i}", part.to(_kept(part)).expand(n_windows, *part.shape).clone())

    def keep(self, window: int, state: State) -> None:
        """The state before a window."""
        for i, part in enumerate(state):
            self.get_buffer(f"part{i}")[window] = part

    def gather(self, windows: Tensor, columns: Tensor) -> State:
        """The states before these windows of these columns, as one batch."""
        parts = (self.get_buffer(f"part{i}")[windows, :, columns] for i in range(len(self._dtypes)))
        return tuple(part.transpose(0, 1).to(dtype) for part, dtype in zip(parts, self._dtypes, strict=True))


def log_q_at(model: LanguageModel, windows: Windows, states: States, positions: Tensor) -> Tensor:
    """``log Q(· | all words up to a position)`` for positions of the text, ``[m, words]``.

    A window is run once, from its beginning to the last position that is asked for, however many are. Windows are run
    together with others of about the same length.
    """
    column, window, place = windows.locate(positions)
    key, run = torch.unique(window * windows.batch_size + column, return_inverse=True)
    last = torch.zeros_like(key).scatter_reduce_(0, run, place, "amax")
    hidden: Tensor | None = None
    for runs in last.argsort().chunk(BUCKETS):
        length = int(last[runs].max()) + 1
        begin = key[runs] // windows.batch_size
        columns = key[runs] % windows.batch_size
        inputs = windows.inputs[begin * windows.unroll + torch.arange(length)[:, None], columns]
        read, _ = model.hidden(inputs, states.gather(begin, columns))
        if hidden is None:
            hidden = read.new_zeros(len(positions), read.shape[-1])
        mine = torch.zeros_like(key).index_put_((runs,), torch.arange(1, len(runs) + 1))[run]
        asked = mine.nonzero()[:, 0]
        hidden = hidden.index_put((asked,), read[place[asked], mine[asked] - 1])
    assert hidden is not None
    return model.log_q(hidden)
