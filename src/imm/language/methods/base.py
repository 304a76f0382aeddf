"""What every training method answers."""

from dataclasses import dataclass, field

from torch import Tensor, nn
from torch.nn.functional import nll_loss

from imm.language.model import LanguageModel, State
from imm.language.windows import Batch
from imm.ngram import Ngram


@dataclass(frozen=True)
class Step:
    """One step of training, before the model has read its batch.

    Attributes:
        model: the full model.
        batch: what it reads.
        state: its state before.
        lam: λ at this step.
        left: which share of λ and γ is left at this step; ``lam`` is that of λ.
    """

    model: LanguageModel
    batch: Batch
    state: State
    lam: float
    left: float


@dataclass(frozen=True)
class Loss:
    """What is differentiated with the primary pass, and its parts for the log.

    Attributes:
        primary: what the labels ask for, a mean over positions.
        parts: each loss term without its factor, as it is called in the log.
        matched: λ times what the restricted model asks for, a mean too; None if it asks nothing here.
    """

    primary: Tensor
    parts: dict[str, Tensor] = field(default_factory=dict)
    matched: Tensor | None = None

    @property
    def total(self) -> Tensor:
        """Both together."""
        return self.primary if self.matched is None else self.primary + self.matched


class Method(nn.Module):
    """A way to train; this one is plain cross-entropy. What it remembers is its ``state_dict``.

    A step calls :meth:`prepare`, :meth:`read` on what that gave, :meth:`forward` on the log-probabilities, and, once
    the loss was differentiated, :meth:`backward_apart` if ``apart`` says so.

    Attributes:
        apart: whether the prepared step has a second pass, with a gradient of its own.
    """

    apart: bool = False

    def prepare(self, step: Step) -> Batch:
        """What the model reads instead of the batch, and learns to predict."""
        return step.batch

    def read(self, step: Step) -> tuple[Tensor, State]:
        """Runs the model on the prepared batch; returns ``[n, words]`` log-probabilities, and the state after it."""
        return step.model(step.batch.inputs, step.state)  # type: ignore[no-any-return]

    def forward(self, log_q: Tensor, step: Step) -> Loss:
        """The loss that is differentiated with the primary pass.

        Args:
            log_q: ``[n, words]``, what the model gave for the prepared batch.
            step: the step, with the prepared batch.
        """
        cross_entropy = nll_loss(log_q, step.batch.labels)
        return Loss(cross_entropy, {"cross_entropy": cross_entropy.detach()})

    def backward_apart(self, step: Step, scale: float) -> Tensor:
        """Adds the gradient of ``scale`` times the matching loss to the ``.grad``, and returns that loss for the log.

        The model is in evaluation mode. λ is not a part of it: the gradient is clipped before it is multiplied by λ.
        """
        raise NotImplementedError


class Matched(Method):
    """Cross-entropy + λ · the loss of :meth:`match`.

    Args:
        bigram: the restricted model.
    """

    def __init__(self, bigram: Ngram) -> None:
        super().__init__()
        self.bigram = bigram

    def match(self, log_q: Tensor, step: Step) -> Tensor:
        """How far the model, ``[n, words]``, is from the bigram: a mean over positions."""
        raise NotImplementedError

    def forward(self, log_q: Tensor, step: Step) -> Loss:
        """See the base class."""
        plain = super().forward(log_q, step)
        matching = self.match(log_q, step)
        return Loss(plain.primary, plain.parts | {"matching": matching.detach()}, step.lam * matching)
