"""IMM with a second pass over extended contexts: k drawn ones for each word of the batch, or all of them."""

import torch
from torch import Generator, Tensor

from imm import matching
from imm.baselines import Noise
from imm.inducers import Multiset
from imm.language.methods.base import Loss, Method, Step
from imm.language.methods.kept_states import KeptStates
from imm.language.model import LanguageModel, State
from imm.language.settings import Settings
from imm.language.windows import Batch, Windows
from imm.ngram import Ngram

ROWS_AT_ONCE = 1024


class Sampled(Method):
    """Cross-entropy + λ · IMM on every j-th batch, and noised labels on the others.

    On a j-th batch each different word has k drawn contexts, which all positions with this word share: a word that
    stands there once would have too few if each position drew its own, and IMM with one draw is reverse KD
    (Eq. jensen). The model is run in evaluation mode.

    On the others the restricted model enters as in the published program, at no cost: a position's label is mixed with
    the continuation probability, at the rate of Kneser-Ney noising.

    Args:
        bigram: the restricted model.
        noise: the rate of that mixture for each word, and the continuation probability.
        windows: the training text.
        model: the full model, for the shape of its state.
        settings: ``n_contexts``, ``every``, ``table_mb``.
        generator: of the draws.
    """

    steps: Tensor
    _model: LanguageModel

    def __init__(
        self,
        bigram: Ngram,
        noise: Noise | None,
        windows: Windows,
        model: LanguageModel,
        settings: Settings,
        generator: Generator,
    ) -> None:
        super().__init__()
        self.bigram, self._noise = bigram, noise
        self._every = settings.every
        self.matching = matching.Sampled(
            bigram, Multiset(windows.short), self._predict, settings.n_contexts, generator=generator
        )
        object.__setattr__(self, "_model", model)  # its parameters are no part of this method's state
        self.states = KeptStates(windows, model.initial_state(windows.batch_size), settings.table_mb)
        self.register_buffer("steps", torch.tensor(0))

    def prepare(self, step: Step) -> Batch:
        """Keeps the states of the whole text before the first step."""
        if int(self.steps) == 0:
            self.states.fill(step.model)
        self.apart = int(self.steps) % self._every == 0
        self.steps += 1
        return step.batch

    def read(self, step: Step) -> tuple[Tensor, State]:
        """Keeps the states for contexts that lie in this batch."""
        return self.states.read(step.model, step.batch.number, step.batch.inputs, step.state)

    def forward(self, log_q: Tensor, step: Step) -> Loss:
        """See the base class."""
        plain = super().forward(log_q, step)
        if self.apart or self._noise is None:
            return plain
        gamma = step.left * self._noise.gamma[step.batch.short]
        label = log_q.gather(1, step.batch.labels[:, None])[:, 0]
        mixed = -((1 - gamma) * label + gamma * (log_q @ self._noise.q)).mean()
        return Loss(mixed, plain.parts | {"mixed": mixed.detach()})

    def backward_apart(self, step: Step, scale: float) -> Tensor:
        """See the base class."""
        short = step.batch.short
        self.matching.contexts_at_once = max(1, ROWS_AT_ONCE // len(short.unique()))
        loss: Tensor = self.matching(None, short)
        (scale * loss).backward()
        return loss.detach()

    def _predict(self, _: Tensor, positions: Tensor) -> Tensor:
        return self.states.log_q_at(self._model, positions)


class Exact(Sampled):
    """The same on every batch, with every place of the text where a word stands: for small texts."""

    def __init__(
        self, bigram: Ngram, windows: Windows, model: LanguageModel, settings: Settings, generator: Generator
    ) -> None:
        super().__init__(bigram, None, windows, model, settings, generator)
        self.matching.n_contexts, self._every = None, 1
