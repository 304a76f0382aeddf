"""IMM with the correction of a stale copy of the model."""

import copy

import torch
from torch import Tensor

from imm import functional
from imm.language.induced import PredictionSums
from imm.language.methods.base import Matched, Step
from imm.language.methods.soft_labels import rows
from imm.language.model import LanguageModel, State
from imm.language.settings import Settings
from imm.language.windows import Batch, Windows
from imm.ngram import Ngram


class Serialized(Matched):
    """Cross-entropy + λ · IMM with the factor ``Q†/Q̂†``   (Eq. serialized-IMM-gradient, Alg. serialized-imm).

    Every r steps the model is copied, and one pass of the copy over the text gives ``Q̂†`` for all short contexts.
    ``Q†(·|x_t)`` of all positions would be a number for each position and word: the copy is run beside the model
    instead.

    Args:
        bigram: the restricted model.
        windows: the training text.
        model: the full model, to be copied.
        settings: ``refresh_every``, ``table_mb``.
    """

    steps: Tensor
    induced: Tensor

    def __init__(self, bigram: Ngram, windows: Windows, model: LanguageModel, settings: Settings) -> None:
        super().__init__(bigram)
        self._windows = windows
        self._refresh_every = settings.refresh_every or len(windows)
        self.stale = copy.deepcopy(model).requires_grad_(False).eval()
        n_words = len(bigram.classes)
        if (mb := 4 * n_words**2 / 1e6) > settings.table_mb:
            raise ValueError(
                f"serialized IMM needs the induced bigrams of all {n_words:,} words, {mb:,.0f} MB, more than table_mb"
                f" {settings.table_mb:,}: raise it"
            )
        self.register_buffer("induced", torch.zeros(n_words, n_words))
        self.register_buffer("steps", torch.tensor(0))
        for i, part in enumerate(model.initial_state(windows.batch_size)):
            self.register_buffer(f"state{i}", part)
        self._log_stale: Tensor | None = None

    def prepare(self, step: Step) -> Batch:
        """Refreshes if it is time, and runs the copy on the batch."""
        batch = step.batch
        if int(self.steps) % self._refresh_every == 0:
            self.refresh(step.model, batch.number)
        self.steps += 1
        if batch.number == 0:
            self._set_state(self.stale.initial_state(self._windows.batch_size))
        with torch.no_grad():
            self._log_stale, after = self.stale(batch.inputs, self._state())
        self._set_state(after)
        return batch

    @torch.no_grad()
    def refresh(self, model: LanguageModel, number: int) -> None:
        """Copies the model and takes its induced bigram; the copy's state is then that before window ``number``."""
        self.stale.load_state_dict(model.state_dict())
        sums = PredictionSums(len(self.induced))
        state = self.stale.initial_state(self._windows.batch_size)
        for window in range(len(self._windows)):
            if window == number:
                self._set_state(state)
            batch = self._windows[window]
            log_q, state = self.stale(batch.inputs, state)
            sums.add(log_q, batch.short)
        self.induced.copy_(sums.bigram().probabilities)

    def match(self, log_q: Tensor, step: Step) -> Tensor:
        """See the base class."""
        assert self._log_stale is not None
        short = step.batch.short
        log_induced = self.induced[short].clamp_(min=torch.finfo(self.induced.dtype).tiny).log_()
        factor = functional.correction(self._log_stale, log_induced)
        return functional.corrected_loss(log_q, log_induced, rows(self.bigram, short), factor)

    def _state(self) -> State:
        return self.get_buffer("state0"), self.get_buffer("state1")

    def _set_state(self, state: State) -> None:
        for i, part in enumerate(state):
            self.get_buffer(f"state{i}").copy_(part)
