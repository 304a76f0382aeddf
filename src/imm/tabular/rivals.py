"""What else can be done with an old model, each method as one function, tuned alike.

A method takes rows and a :class:`Setup` and gives a predictor. The penalty, and whatever strength the method has, are
chosen by the same cross-validation as λ (:func:`imm.tabular.choosing.choose`), so a comparison is one of methods and
not of tuning.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from imm.tabular.choosing import LAMS
from imm.tabular.restricted import Known
from imm.tabular.rows import Array, distinct
from imm.tabular.training import Data, Setup

RATIOS = tuple(i / 20 for i in range(21))
"""Candidates for the old model's share in an interpolation."""


@dataclass(frozen=True)
class Table:
    """Rows as every method gets them.

    Attributes:
        x: ``[n, d]``, numbers.
        y: ``[n]``, class numbers, or values for regression.
        old: the old model's word at each row, ``[n, classes]``; ``[n, 1]`` for regression.
    """

    x: Array
    y: Array
    old: Array

    def data(self, old: Array | None = None) -> Data:
        """Equal rows made one, as the estimators do; with another ``old`` if given."""
        old = self.old if old is None else old
        same = distinct(self.x, self.y, also=old)
        first = same.first
        weight = same.total(np.ones(len(self.x)))
        return Data(self.x[first], self.y[first], weight, Known(old[first]), np.arange(len(first)))


@dataclass(frozen=True)
class Predictor:
    """A trained method.

    Attributes:
        predict: from ``x`` ``[m, d]`` and the old model's word there to ``[m, classes]``, or ``[m, 1]`` values.
        strength: λ, or whatever the method's strength is; None if it has none.
    """

    predict: Callable[[Array, Array], Array]
    strength: float | None = None


Method = Callable[[Table, Setup], Predictor]


def full_only(rows: Table, setup: Setup) -> Predictor:
    """The full model on the new rows alone."""
    return replace(_trained(rows.data(), setup, (0.0,)), strength=None)


def old_only(rows: Table, setup: Setup) -> Predictor:  # noqa: ARG001 - there is nothing to train
    """The old model as it is."""
    return Predictor(lambda x, old: old)  # noqa: ARG005


def imm(rows: Table, setup: Setup) -> Predictor:
    """Induced model matching   (Eq. main-objective), λ as ``lam="auto"`` chooses it."""
    return _trained(rows.data(), setup, LAMS)


def full_only_and_imm(rows: Table, setup: Setup) -> tuple[Predictor, Predictor]:
    """Both at the price of the second: the search for λ tries λ = 0 with every penalty first."""
    data = rows.data()
    lam, choice = setup.choose(data, None)
    full = _with_strengths(data, setup, choice.l2_without, 0.0)
    return Predictor(full), Predictor(_with_strengths(data, setup, choice.l2, lam), lam)


def imm_stacking(rows: Table, setup: Setup) -> Predictor:
    """The same with the old log-odds as one more short feature: ``keep_old=True``."""
    return _trained(rows.data(), replace(setup, keep_old=True), LAMS)


def stacking(rows: Table, setup: Setup) -> Predictor:
    """The old log-odds, or prediction, as one more feature of the full model."""
    return replace(_trained(rows.data(), replace(setup, keep_old=True), (0.0,)), strength=None)


def reverse_kd(rows: Table, setup: Setup) -> Predictor:
    """The full model itself, not its induced one, is pulled to the old model   (Eq. knowledge-distillation)."""
    return _trained(rows.data(), _every_column_short(setup), LAMS)


def label_smoothing(rows: Table, setup: Setup) -> Predictor:
    """The full model is pulled to the uniform distribution, or the mean of a regression."""
    uniform = np.full_like(rows.old, 1 / rows.old.shape[1] if setup.task.n_classes else rows.y.mean())
    return _trained(rows.data(uniform), _every_column_short(setup), LAMS)


def interpolation(rows: Table, setup: Setup) -> Predictor:
    """``(1 - ratio) Q + ratio P̂``, both models mixed when predicting."""
    data = rows.data()
    assert isinstance(data.old, Known)
    _, choice = setup.choose(data, None, (0.0,))
    losses = np.zeros(len(RATIOS))
    for fold in setup.held(data):
        q = setup.task.expected(fold.solve(choice.l2, 0.0, None).scores(fold.x))
        old, weight = data.old.values[fold.test], data.weight[fold.test]
        losses += [weight @ losses_of((1 - ratio) * q + ratio * old, fold.y) for ratio in RATIOS]
    ratio = RATIOS[int(np.argmin(losses))]
    full = _with_strengths(data, setup, choice.l2, 0.0)

    def predict(x: Array, old: Array) -> Array:
        mixed: Array = (1 - ratio) * full(x, old) + ratio * old
        return mixed

    return Predictor(predict, ratio)


METHODS: Mapping[str, Method] = {
    "full-only": full_only,
    "old-only": old_only,
    "interpolation": interpolation,
    "stacking": stacking,
    "reverse-kd": reverse_kd,
    "label-smoothing": label_smoothing,
    "imm": imm,
    "imm-stacking": imm_stacking,
}

NEED_OLD = frozenset({"old-only", "interpolation", "stacking", "imm-stacking"})
"""Methods that ask the old model at every prediction."""


def losses_of(predicted: Array, y: Array) -> Array:
    """The log-loss of each row where ``[n, classes]`` is predicted, half the squared error where ``[n, 1]`` is."""
    if predicted.shape[1] == 1:
        return np.asarray(0.5 * (predicted[:, 0] - y) ** 2)
    tiny = np.finfo(np.float64).tiny
    return np.asarray(-np.log(np.maximum(predicted[np.arange(len(y)), y], tiny)))


def _every_column_short(setup: Setup) -> Setup:
    return replace(setup, short=np.ones_like(setup.short))


def _trained(data: Data, setup: Setup, lams: tuple[float, ...]) -> Predictor:
    """λ of ``lams`` and the penalty chosen, then trained on all rows."""
    lam, choice = setup.choose(data, None, lams)
    return Predictor(_with_strengths(data, setup, choice.l2, lam), lam)


def _with_strengths(data: Data, setup: Setup, l2: float, lam: float) -> Callable[[Array, Array], Array]:
    scaling, fit, _ = setup.train(data, l2, lam)
    return lambda x, old: setup.task.expected(fit.scores(scaling(setup.with_old(x, old))))
