"""What differs between classification and regression."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator, is_classifier

from imm.tabular.distinct_rows import Array
from imm.tabular.onnx_model import Onnx
from imm.validation import check_probabilities

SURE = 1e-6
"""Old probabilities are kept this far from 0 and 1 where their log-odds are a feature."""


def is_named(label: Any, name: Any) -> bool:
    """Whether a column of this name is about this class: by itself, in words, or as ``imm predict`` names it."""
    words = str(name).removeprefix("probability of ")
    if words == str(label):
        return True
    try:
        return float(words) == float(label)
    except (TypeError, ValueError):
        return False


def mix(new: Array, old: Array, share: float) -> Array:
    """What is expected where the old model's word is mixed in."""
    return (1 - share) * new + share * old


@dataclass(frozen=True)
class Classification:
    """Labels in the order of ``classes``; scores are log-odds of the second of two, or logits."""

    classes: Array

    @property
    def n_classes(self) -> int:
        """At least two."""
        return len(self.classes)

    def labels(self, y: Array) -> Array:
        """Class numbers as labels."""
        return self.classes[y]

    def proba(self, scores: Array) -> Array:
        """``[n, classes]``."""
        if scores.shape[1] > 1:
            found: Array = softmax(scores, axis=1)
            return found
        return np.hstack([expit(-scores), expit(scores)])

    def log_proba(self, scores: Array) -> Array:
        """``[n, classes]``."""
        if scores.shape[1] > 1:
            found: Array = log_softmax(scores, axis=1)
            return found
        return np.hstack([log_expit(-scores), log_expit(scores)])

    expected = proba
    """What is averaged over extended contexts."""

    def losses(self, scores: Array, y: Array) -> Array:
        """The log-loss of each row."""
        losses: Array = -self.log_proba(scores)[np.arange(len(y)), y]
        return losses

    def mixed(self, scores: Array, old: Array, share: float) -> Array:
        """The scores of ``(1 - share) Q + share P̂``."""
        p = np.maximum(mix(self.proba(scores), old, share), np.finfo(np.float64).tiny)
        log_p: Array = np.log(p)
        return log_p[:, 1:] - log_p[:, :1] if scores.shape[1] == 1 else log_p

    def slopes(self, scores: Array, old: Array, y: Array) -> Array:
        """How each row's loss changes as the old model begins to be mixed in: that of :meth:`mixed`, d/dshare at 0."""
        rows = np.arange(len(y))
        slopes: Array = 1 - old[rows, y] / self.proba(scores)[rows, y]
        return slopes

    def log_likelihood(self, losses: Array, n: float) -> Array:  # noqa: ARG002
        """Of ``n`` labels whose losses add up to these."""
        return -losses

    def distance(self, target: Array, induced: Array) -> Array:
        """``KL(P̂ || Q̂)`` by row   (Eq. KL-induced)."""
        tiny = np.finfo(np.float64).tiny
        ratio = np.maximum(target, tiny) / np.maximum(induced, tiny)
        divergence: Array = (target * np.log(ratio)).sum(1)
        return divergence

    def ask(self, model: Any, short: Any, partial: bool = False) -> Array:
        """What a restricted model says, ``[n, classes]``; with ``partial`` it need not know all classes."""
        n = len(short)
        if isinstance(model, Onnx):
            answer, own = model(short)
            return probabilities(answer, n, own, self.classes)
        if hasattr(model, "predict_proba"):
            own = getattr(model, "classes_", None)
            return probabilities(model.predict_proba(short), n, own, self.classes, partial)
        if hasattr(model, "predict"):
            raise TypeError(f"the restricted model must have predict_proba; {type(model).__name__} has not")
        return probabilities(model(short), n, None, self.classes)

    def given(self, answers: Any, n: int) -> Array:
        """Old probabilities, ``[n, classes]``: a column, or a table whose columns have the names of the classes."""
        names = list(getattr(answers, "columns", ()))
        own = None
        if len(names) > 1 and names != list(range(len(names))):  # numbered columns have no names
            own = [next((label for label in self.classes if is_named(label, name)), None) for name in names]
            if None in own or len(set(own)) < len(own):
                raise ValueError(
                    f"old probabilities are in columns named {names}, and the classes are {self.classes.tolist()}: name"
                    " the columns as the classes, or give an array in the order of the classes"
                )
        return probabilities(answers, n, own, self.classes)

    def old_features(self, old: Array) -> Array:
        """The old log-odds: one feature for two classes, else one for each."""
        log_p = np.log(np.clip(old, SURE, 1 - SURE))
        odds: Array = log_p - (log_p[:, :1] if self.n_classes == 2 else log_p.mean(1, keepdims=True))
        return odds[:, 1:] if self.n_classes == 2 else odds


@dataclass(frozen=True)
class Regression:
    """Values; the induced mean is matched."""

    n_classes = 0

    def labels(self, y: Array) -> Array:
        """The values themselves."""
        return y

    def expected(self, scores: Array) -> Array:
        """The predicted values, ``[n, 1]``."""
        return scores

    def losses(self, scores: Array, y: Array) -> Array:
        """Half the squared error of each row."""
        return 0.5 * (scores[:, 0] - y) ** 2

    def mixed(self, scores: Array, old: Array, share: float) -> Array:
        """``(1 - share) f + share old``."""
        return mix(scores, old, share)

    def slopes(self, scores: Array, old: Array, y: Array) -> Array:
        """How each row's loss changes as the old model begins to be mixed in: that of :meth:`mixed`, d/dshare at 0."""
        slopes: Array = (scores[:, 0] - y) * (old - scores)[:, 0]
        return slopes

    def log_likelihood(self, losses: Array, n: float) -> Array:
        """Of ``n`` values whose losses add up to these, the errors normal with the variance that is seen."""
        return -0.5 * n * np.log(np.maximum(losses, np.finfo(np.float64).tiny))

    def distance(self, target: Array, induced: Array) -> Array:
        """The squared difference by row."""
        squared: Array = (target - induced) ** 2
        return squared[:, 0]

    def ask(self, model: Any, short: Any, partial: bool = False) -> Array:  # noqa: ARG002
        """What a restricted model says, ``[n, 1]``."""
        if isinstance(model, Onnx):
            return values(model(short)[0], len(short))
        if isinstance(model, BaseEstimator) and is_classifier(model):
            raise TypeError(f"the restricted model must predict values; {type(model).__name__} predicts classes")
        return values(model.predict(short) if hasattr(model, "predict") else model(short), len(short))

    def given(self, answers: Any, n: int) -> Array:
        """A column of old predictions."""
        return values(answers, n)

    def old_features(self, old: Array) -> Array:
        """The old prediction."""
        return old


Task = Classification | Regression


def probabilities(answer: Any, n: int, own: Sequence[Any] | None, classes: Array, partial: bool = False) -> Array:
    """P̂ as ``[n, classes]`` in the order of ``classes``.

    Classes that only the old model has are left out, and the rest is scaled to one.

    Args:
        answer: ``[n]`` or ``[n, 1]``, probabilities of the second of two classes; or one column for each class.
        n: how many rows there must be.
        own: the labels in the order of the columns; None if it is that of ``classes``.
        classes: the full model's labels.
        partial: a class that the old model does not know has probability 0, rather than to be refused.
    """
    p = np.array(answer, dtype=np.float64)  # a copy: what pandas gives may be read only, of which torch warns
    own = list(classes) if own is None else [label.item() if isinstance(label, np.generic) else label for label in own]
    if p.shape in ((n,), (n, 1)) and len(own) == 2:
        p = p.reshape(n)
        outside = ~((p >= 0) & (p <= 1))
        if outside.any():
            raise ValueError(f"old probabilities must be between 0 and 1, got {p[outside][0]:.6g}")
        p = np.stack([1 - p, p], axis=1)
    if p.shape != (n, len(own)):
        raise ValueError(
            f"old probabilities must be [{n}] for two classes or [{n}, {len(own)}], got shape {np.shape(answer)}"
        )
    check_probabilities(torch.from_numpy(p), "the old model's answer")
    labels = [label.item() if isinstance(label, np.generic) else label for label in classes]
    missing = [label for label in labels if label not in own]
    if missing and partial:
        p, own = np.hstack([p, np.zeros((n, len(missing)))]), own + missing
    elif missing:
        raise ValueError(f"the restricted model knows the classes {own}, but y has {missing} too: name them alike")
    p = p[:, [own.index(label) for label in labels]]
    total = p.sum(1, keepdims=True)
    if not (total > 0).all():
        raise ValueError(f"the restricted model gives no probability to any of y's classes {labels} in some row")
    scaled: Array = p / total
    return scaled


def values(answer: Any, n: int) -> Array:
    """The old model's predicted values as ``[n, 1]``."""
    found = np.asarray(answer, dtype=np.float64)
    if found.shape not in ((n,), (n, 1)):
        raise ValueError(f"the old model's predictions must be [{n}], got shape {found.shape}")
    if not np.isfinite(found).all():
        raise ValueError(f"the old model's predictions must be finite, got {found[~np.isfinite(found)][0]}")
    return found.reshape(n, 1)
