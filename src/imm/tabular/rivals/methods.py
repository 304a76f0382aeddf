"""Methods that need the old model only.

A method takes rows and a :class:`Setup` and gives a predictor. The penalty, and whatever strength the method has, are
chosen by the same cross-validation as λ (:func:`imm.tabular.selection.choose`), so a comparison is one of methods and
not of tuning.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from imm.tabular.distinct_rows import Array
from imm.tabular.fitting import Setup
from imm.tabular.old_model import Known
from imm.tabular.rivals.training_rows import Table
from imm.tabular.rivals.wrapped_engines import Added, AsFeature, Noised
from imm.tabular.selection import LAMS
from imm.tabular.tasks import mix

PULLS = (1.0, 10.0, 100.0, 1000.0)
"""How many times harder than other weights to 0, a linear model's short weights are pulled to the old model's."""


@dataclass(frozen=True)
class Predictor:
    """A trained method.

    Attributes:
        predict: from ``x`` ``[m, d]`` and the old model's word there to ``[m, classes]``, or ``[m, 1]`` values.
        strength: λ, or whatever the method's strength is; None if it has none.
        share: the old model's, where its prediction is mixed in.
    """

    predict: Callable[[Array, Array], Array]
    strength: float | None = None
    share: float = 0.0


Method = Callable[[Table, Setup], Predictor]


def full_only(rows: Table, setup: Setup) -> Predictor:
    """The full model on the new rows alone."""
    return replace(trained(rows, "full-only", setup, (0.0,), matching=False), strength=None)


def old_only(rows: Table, setup: Setup) -> Predictor:  # noqa: ARG001 - there is nothing to train
    """The old model as it is."""
    return Predictor(lambda x, old: old)  # noqa: ARG005


def imm(rows: Table, setup: Setup) -> Predictor:
    """Induced model matching   (Eq. main-objective), λ as ``lam="auto"`` chooses it."""
    return trained(rows, "full-only", setup, LAMS)


def imm_stacking(rows: Table, setup: Setup) -> Predictor:
    """The same with the old log-odds as one more short feature, and the old prediction mixed in: ``keep_old=True``."""
    return trained(rows, "imm-stacking", replace(setup, keep_old=True), LAMS, mixed=True)


def stacking(rows: Table, setup: Setup) -> Predictor:
    """The old log-odds, or prediction, as one more feature of the full model."""
    setup = replace(setup, engine=AsFeature(setup.engine), keep_old=True)
    found = trained(rows, "stacking", setup, (0.0,), matching=False)
    return replace(found, strength=None)


def reverse_kd(rows: Table, setup: Setup) -> Predictor:
    """The full model itself, not its induced one, is pulled to the old model   (Eq. knowledge-distillation)."""
    return trained(rows, "full-only", _every_column_short(setup), LAMS)


def noising(rows: Table, setup: Setup) -> Predictor:
    """A label is, with probability ``λ/(1+λ)``, one that the old model draws; in expectation   (Eq. noising)."""
    return trained(rows, "full-only", _noised(setup), LAMS)


def label_smoothing(rows: Table, setup: Setup) -> Predictor:
    """A label is, with probability ``λ/(1+λ)``, any class alike, or the mean of a regression; in expectation."""
    uniform = np.full(rows.old.shape[1], 1 / rows.old.shape[1] if setup.task.n_classes else rows.y.mean())
    return trained(rows, "full-only", _noised(setup), LAMS, instead=uniform)


def offset(rows: Table, setup: Setup) -> Predictor:
    """The full model learns what to add to the old log-odds, or prediction: ``base_margin``, ``init_score``."""
    return replace(_added(rows, setup, PULLS[:1]), strength=None)


def shrinking(rows: Table, setup: Setup) -> Predictor:
    """A linear model whose short weights are pulled to the old model's, harder than the others to 0.

    ``½ l2 (|w_extended|² + pull · |w_short - w_old|²)``; with ``pull = 1`` it is :func:`offset`. The old model need
    not be linear: weights on top of its word are pulled to 0, which is the same if it is.
    """
    return _added(rows, setup, PULLS)


def interpolation(rows: Table, setup: Setup) -> Predictor:
    """``(1 - share) Q + share P̂``, both models mixed when predicting."""
    found = trained(rows, "full-only", setup, (0.0,), matching=False, mixed=True)
    return replace(found, strength=found.share)


METHODS: Mapping[str, Method] = {
    "full-only": full_only,
    "old-only": old_only,
    "interpolation": interpolation,
    "stacking": stacking,
    "offset": offset,
    "shrinking": shrinking,
    "reverse-kd": reverse_kd,
    "noising": noising,
    "label-smoothing": label_smoothing,
    "imm": imm,
    "imm-stacking": imm_stacking,
}
"""By name; ``shrinking`` is for linear models only."""

BEGINS = {
    **dict.fromkeys(
        ("interpolation", "reverse-kd", "noising", "label-smoothing", "imm", "pooled", "imputed"), "full-only"
    ),
    "shrinking": "offset",
}
"""The method that each is with its first strength: what is computed for it is shared (:attr:`Table.known`)."""

NEED_OLD = frozenset({"old-only", "interpolation", "stacking", "offset", "shrinking", "imm-stacking"})
"""Methods that ask the old model at every prediction."""


def losses_of(predicted: Array, y: Array) -> Array:
    """The log-loss of each row where ``[n, classes]`` is predicted, half the squared error where ``[n, 1]`` is."""
    if predicted.shape[1] == 1:
        return np.asarray(0.5 * (predicted[:, 0] - y) ** 2)
    tiny = np.finfo(np.float64).tiny
    return np.asarray(-np.log(np.maximum(predicted[np.arange(len(y)), y], tiny)))


def _every_column_short(setup: Setup) -> Setup:
    return replace(setup, short=np.ones_like(setup.short))


def _noised(setup: Setup) -> Setup:
    return replace(_every_column_short(setup), engine=Noised(setup.engine))


def _added(rows: Table, setup: Setup, pulls: tuple[float, ...]) -> Predictor:
    engine = Added(setup.engine, setup.task.old_features(rows.old[:1]).shape[1], setup.standardize)
    setup = replace(setup, engine=engine, keep_old=True, standardize=False)
    return trained(rows, "offset", setup, pulls, matching=False)


def trained(
    rows: Table,
    begins: str,
    setup: Setup,
    strengths: tuple[float, ...],
    matching: bool = True,
    mixed: bool = False,
    instead: Array | None = None,
) -> Predictor:
    """A strength and the penalty chosen, then trained on all rows.

    Args:
        rows: to train on.
        begins: the method that this one is with the first strength.
        setup: how the full model is trained.
        strengths: candidates.
        matching: whether contexts must be looked up.
        mixed: whether the old model's prediction is mixed in.
        instead: what is matched at every row instead of the old model's word, ``[classes]``.
    """
    data = rows.data()
    if instead is not None:
        data = replace(data, old=Known(np.tile(instead, (len(data.x), 1))))
    strength, choice = setup.choose(data, None, strengths, matching, rows.known.setdefault(begins, {}))
    share = setup.choose_share(data, choice.l2, choice.lam) if mixed else 0.0
    scaling, fit, _ = setup.train(data, choice.l2, strength, matching)

    def predict(x: Array, old: Array) -> Array:
        full = setup.task.expected(fit.scores(scaling(setup.with_old(x, old))))
        return mix(full, old, share) if share else full

    return Predictor(predict, strength, share)
