"""The full model on extended contexts that lie anywhere in the training text."""

import torch
from torch import Tensor, nn

from imm.language.evaluation import evaluating
from imm.language.model import LanguageModel, State
from imm.language.windows import Windows

SEGMENT = 5
"""Words from one kept state to the next: a context is run over at most as many."""


def states_mb(windows: Windows, initial: State) -> float:
    """Returns the MB that :class:`KeptStates` of a text take; ``initial`` may be on the meta device."""
    return len(windows) * _per_window(windows) * sum(part.numel() for part in initial) * torch.half.itemsize / 1e6


def _per_window(windows: Windows) -> int:
    return -(-windows.unroll // SEGMENT)


class KeptStates(nn.Module):
    """The model's state before every fifth word of the text, as the primary pass last left it; half precision.

    "The IMM branch never changes the state and uses the state set by the primary branch when traversing the dataset"
    (Section experiments): a context anywhere in the text is then a few words to run, and not all of its history.

    Args:
        windows: the training text.
        initial: a model's initial state, which is everywhere at first.
        most_mb: the most that they may take.
    """

    def __init__(self, windows: Windows, initial: State, most_mb: int) -> None:
        super().__init__()
        size = states_mb(windows, initial)
        if size > most_mb:
            raise ValueError(
                f"the states of {windows.inputs.numel():,} words take {size:,.1f} MB, more than table_mb {most_mb:,}:"
                " raise it"
            )
        self._windows, self._per_window = windows, _per_window(windows)
        for name, part in zip(("h", "c"), initial, strict=True):
            self.register_buffer(name, part.half().repeat(len(windows) * self._per_window, 1, 1, 1))

    @torch.no_grad()
    def fill(self, model: LanguageModel) -> None:
        """Reads the whole text in evaluation mode: contexts have their history before training has come by there."""
        state = model.initial_state(self._windows.batch_size)
        with evaluating(model):
            for number in range(len(self._windows)):
                _, state = self._hidden(model, number, self._windows[number].inputs, state)

    def read(self, model: LanguageModel, number: int, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        """Runs the model on a window and keeps its states; returns what ``model(inputs, state)`` returns."""
        hidden, state = self._hidden(model, number, inputs, state)
        return model.log_q(hidden.flatten(0, 1)), state

    def _hidden(self, model: LanguageModel, number: int, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        hidden = []
        for i, part in enumerate(inputs.split(SEGMENT)):
            segment = number * self._per_window + i
            self.get_buffer("h")[segment], self.get_buffer("c")[segment] = state
            read, state = model.hidden(part, state)
            hidden.append(read)
        return torch.cat(hidden), state

    def log_q_at(self, model: LanguageModel, positions: Tensor) -> Tensor:
        """Returns ``log Q(· | all words up to a position)`` for positions of the text, ``[m, words]``.

        The gradient reaches back to the kept state, that is over at most five words.
        """
        column, window, place = self._windows.locate(positions)
        segment, last = window * self._per_window + place // SEGMENT, place % SEGMENT
        first = window * self._windows.unroll + place - last
        hidden: Tensor | None = None
        for n in range(SEGMENT):
            mine = (last == n).nonzero()[:, 0]
            if len(mine):
                columns = column[mine]
                inputs = self._windows.inputs[first[mine] + torch.arange(n + 1)[:, None], columns]
                h, c = (self.get_buffer(name)[segment[mine], :, columns] for name in ("h", "c"))
                state = h.transpose(0, 1).to(model.output.weight), c.transpose(0, 1).to(model.output.weight)
                read, _ = model.hidden(inputs, state)
                if hidden is None:
                    hidden = read.new_zeros(len(positions), read.shape[-1])
                hidden = hidden.index_put((mine,), read[-1])
        assert hidden is not None
        return model.log_q(hidden)
