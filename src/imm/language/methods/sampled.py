"""IMM with a second pass over extended contexts: k drawn ones for each short context, or all of them."""

from dataclasses import replace

import torch
from torch import Generator, Tensor

from imm import matching
from imm.inducers import Multiset
from imm.language.methods.base import Loss, Step
from imm.language.methods.contexts import States, log_q_at
from imm.language.methods.soft import ReverseKD, rows
from imm.language.model import LanguageModel
from imm.language.settings import Settings
from imm.language.windows import Batch, Windows
from imm.targets.ngram import Ngram

ROWS_AT_ONCE = 1024


class Sampled(ReverseKD):
    """Cross-entropy + λ · IMM, on every j-th batch with k contexts a short context, on the others with one.

    The one is the batch's own context, which costs no pass: that is reverse KD. On a j-th batch, ``m`` of the batch's
    positions are drawn, so short contexts by their frequency; for each of them k positions of the text with the same
    word; and the model is run on those in evaluation mode. Each is run from the start of its window, from the state
    that the primary pass had there when it last came by.

    Args:
        bigram: the restricted model.
        windows: the training text.
        model: the full model, for the shape of its state.
        settings: ``n_contexts``, ``every``, ``positions``, ``table_mb``.
        generator: of the draws.
    """

    steps: Tensor

    def __init__(
        self, bigram: Ngram, windows: Windows, model: LanguageModel, settings: Settings, generator: Generator
    ) -> None:
        super().__init__(bigram)
        self._windows = windows
        self._inducer = Multiset(windows.short)
        self._generator = generator
        self._n_contexts: int | None = settings.n_contexts
        self._every, self._positions = settings.every, settings.positions
        self.states = States(len(windows), model.initial_state(windows.batch_size), settings.table_mb)
        self.register_buffer("steps", torch.tensor(0))

    def prepare(self, step: Step) -> Batch:
        """Keeps the state for contexts that begin here; there is a second pass on every j-th batch since IMM began."""
        self.states.keep(step.batch.number, step.state)
        self.apart = step.active and int(self.steps) % self._every == 0
        self.steps += step.active
        return step.batch

    def forward(self, log_q: Tensor, step: Step) -> Loss:
        """Plain if there is a second pass, else reverse KD."""
        found = super().forward(log_q, replace(step, active=step.active and not self.apart))
        parts = {"reverse_kd" if name == "matching" else name: part for name, part in found.parts.items()}
        return Loss(found.primary, parts, found.matched)

    def parts(self, batch: Batch) -> list[tuple[Tensor, Tensor]]:
        """The short contexts of this step and their weights, in parts that are matched one after the other."""
        short = batch.short
        if self._positions != 0:
            short = short[torch.randperm(len(short), generator=self._generator)[: self._positions]]
        return [(short, torch.full(short.shape, 1 / len(short)))]

    def backward_apart(self, step: Step, scale: float) -> Tensor:
        """See the base class."""

        def log_q(_: Tensor, positions: Tensor) -> Tensor:
            return log_q_at(step.model, self._windows, self.states, positions)

        total = torch.zeros(())
        for short, weight in self.parts(step.batch):
            chunk = max(1, ROWS_AT_ONCE // len(short))
            sampled = matching.Sampled(self._inducer, self._n_contexts, chunk, self._generator)
            share = float(weight.sum())
            lam = step.lam * scale * share
            total += share * sampled.backward(log_q, short, rows(self.bigram, short), lam, weight)
        return total


class Exact(Sampled):
    """The same on every batch, with every place of the text where a short context stands: for small texts."""

    def __init__(
        self, bigram: Ngram, windows: Windows, model: LanguageModel, settings: Settings, generator: Generator
    ) -> None:
        super().__init__(bigram, windows, model, settings, generator)
        self._n_contexts, self._every = None, 1

    def parts(self, batch: Batch) -> list[tuple[Tensor, Tensor]]:
        """Each of the batch's words once, weighted by how often it stands there.

        Words with about as many contexts are together: they are padded to the longest of a part.
        """
        different, count = torch.unique(batch.short, return_counts=True)
        weight = count / len(batch.short)
        doublings = self._inducer.sizes(different).log2().long()
        return [(different[part], weight[part]) for part in (doublings == each for each in doublings.unique())]
