"""What every target answers, and the checks that all of them share."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from torch import Tensor, nn

from imm.validation import check_fraction, check_probabilities


class Target(nn.Module, ABC):
    """The restricted model P̂: a short context in, probabilities out.

    A new kind of target writes :meth:`probabilities`; the checks are here.

    Attributes:
        classes: the labels, in the order of the columns.
    """

    def __init__(self, classes: Sequence[Hashable]) -> None:
        super().__init__()
        self.classes = tuple(classes)
        if len(self.classes) < 2:
            raise ValueError(f"classes must be at least two different labels, got {list(self.classes)}")
        if len(set(self.classes)) < len(self.classes):
            label, times = Counter(self.classes).most_common(1)[0]
            raise ValueError(f"classes must be different labels, got {label!r} {times} times")

    @abstractmethod
    def probabilities(self, short: Any) -> Tensor:
        """P̂(· | short) for a batch of short contexts, ``[n, classes]``."""

    def forward(self, short: Any) -> Tensor:
        """Returns P̂(· | short), ``[n, classes]``, checked to be probabilities."""
        if len(short) == 0:
            raise ValueError("short is an empty batch")
        p = self.probabilities(short)
        if p.shape != (len(short), len(self.classes)):
            raise ValueError(f"target must be [{len(short)}, {len(self.classes)}], got shape {tuple(p.shape)}")
        check_probabilities(p, "target")
        return p

    def weakened(self, p: float) -> "Weakened":
        """The same, mixed with a fair coin (Appendix quality: 0.2 is medium quality, 0.5 low)."""
        return Weakened(self, p)


class Weakened(Target):
    """``(1 - p) P̂(y|short) + p / classes``: with probability ``p`` the label is a fair coin's."""

    def __init__(self, target: Target, p: float) -> None:
        super().__init__(target.classes)
        self.target = target
        self.p = check_fraction(p, "p")

    def probabilities(self, short: Any) -> Tensor:
        """The mixture."""
        given: Tensor = self.target(short)
        return (1 - self.p) * given + self.p / len(self.classes)


def align(classes: Sequence[Hashable], own: Sequence[Hashable]) -> list[int]:
    """For each of ``classes`` its place among a restricted model's ``own``; both must have the same labels.

    Example:
        >>> align(["bad", "good"], own=["good", "bad"])
        [1, 0]
    """
    own = list(own)
    missing = [label for label in classes if label not in own]
    extra = [label for label in own if label not in classes]
    if missing or extra:
        raise ValueError(
            f"the restricted model's classes {own} are not the full model's {list(classes)}"
            f" (it lacks {missing}, and has {extra} besides)"
        )
    return [own.index(label) for label in classes]
