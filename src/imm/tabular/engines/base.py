"""What a full model is trained on, and what it must answer."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from imm.tabular.contexts import Pairs

Array = NDArray[Any]


@dataclass(frozen=True)
class Problem:
    """Few rows with all features, and the old model's word at their short contexts.

    Attributes:
        x: ``[n, d]``, features; standardised if the estimator does so.
        y: ``[n]``, class numbers, or values for regression.
        weight: ``[n]``, positive.
        n_classes: 0 for regression.
        short: ``[d]``, which columns the old model sees.
        pairs: the extended contexts of each short one; None where there is no old model to match.
        target: P̂ at each short context of ``pairs``, ``[T, n_classes]``; ``[T, 1]`` for regression.
        offset: ``[n, n_outputs]``, scores that the model's are added to in the loss of the rows; 0 if None.
        n_old: how many of the last columns are the old model's word, where it is kept.
    """

    x: Array
    y: Array
    weight: Array
    n_classes: int
    short: NDArray[np.bool_]
    pairs: Pairs | None = None
    target: Array | None = None
    offset: Array | None = None
    n_old: int = 0

    @property
    def n_outputs(self) -> int:
        """How many scores the full model gives a row: one for two classes and for regression."""
        return self.n_classes if self.n_classes > 2 else 1

    def constant(self) -> Array:
        """The scores of a model without features, ``[n_outputs]``: the classes' frequencies, or the mean."""
        share = self.weight / self.weight.sum()
        if not self.n_classes:
            return np.array([share @ self.y])
        frequency = np.bincount(self.y, weights=share, minlength=self.n_classes)
        log_p: Array = np.log(np.clip(frequency, 1e-3, 1))
        return log_p[1:] - log_p[:1] if self.n_outputs == 1 else log_p - log_p.mean()


class Fitted(Protocol):
    """A trained full model."""

    def scores(self, x: Array) -> Array:
        """``[n, n_outputs]``: the log-odds of the second of two classes, logits, or the predicted value."""
        ...

    def arrays(self) -> dict[str, Array]:
        """All that must be stored."""
        ...


class Solver(Protocol):
    """A full model's training on one problem."""

    def solve(self, l2: float, lam: float, start: Any = None, precise: bool = True) -> Any:
        """Trains with these strengths.

        Args:
            l2: of the full model's own penalty, ``½ l2 |w|² / Σ weight``.
            lam: λ.
            start: what :meth:`solve` gave for near strengths, to begin from.
            precise: False while strengths are compared: the end is then reached less exactly.
        """
        ...


class Trainer(Protocol):
    """What trains a full model."""

    @property
    def l2s(self) -> tuple[float, ...]:
        """Candidates for its penalty; one if it has none."""
        ...

    def folds(self, n: int) -> tuple[int, int]:
        """Into how many folds ``n`` rows are dealt to choose strengths, and how often."""
        ...

    def prepare(self, problem: Problem, seed: int) -> Solver:
        """All that is computed once for every strength."""
        ...


class Engine(Trainer, Protocol):
    """A kind of full model, which can be stored."""

    def restore(self, arrays: dict[str, Array], n_features: int, n_classes: int) -> Fitted:
        """The reverse of :meth:`Fitted.arrays`."""
        ...
