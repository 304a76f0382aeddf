"""Does the old model help? Nested cross-validation on the user's own rows.

Every split hides some rows. On the others everything is done anew: columns are encoded, strengths are chosen by an
inner cross-validation, the model is trained. The hidden rows then judge it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from sklearn.metrics import roc_auc_score

from imm.progress import Progress
from imm.tabular.column_types import Column
from imm.tabular.distinct_rows import Array
from imm.tabular.encoding import Encoding
from imm.tabular.engines import engine_for
from imm.tabular.fitting import Setup
from imm.tabular.rivals import METHODS, Table, losses_of
from imm.tabular.selection import folds
from imm.tabular.tasks import Task


@dataclass(frozen=True)
class Case:
    """A table as every split needs it.

    Attributes:
        columns: those to learn from.
        values: them by name, in the type of their kind.
        y: ``[n]``, class numbers or values.
        old: the old model's word at every row, ``[n, classes]`` or ``[n, 1]``.
        short: names of the columns the old model sees; empty if nobody knows.
        task: classification by class numbers, or regression.
        model: the name of the full model.
        seed: of folds and networks.
    """

    columns: Sequence[Column]
    values: Mapping[str, pl.Series]
    y: Array
    old: Array
    short: Sequence[str]
    task: Task
    model: str
    seed: int

    def rows(self, some: Array) -> dict[str, pl.Series]:
        """The columns at some rows."""
        return {name: column[some] for name, column in self.values.items()}

    def setup(self, encoding: Encoding) -> Setup:
        """What the estimators make of their parameters."""
        return Setup(self.task, engine_for(self.model), encoding.of(self.short), False, 32, 1.0, True, self.seed)


@dataclass(frozen=True)
class Scores:
    """What nested cross-validation found.

    Attributes:
        by: method, then metric, to the value at every split, ``[J]``; NaN where it is not defined.
        lams: λ chosen by the last method, ``[J]``.
        n_folds: parts into which rows are dealt.
        n_repeats: how often.
    """

    by: Mapping[str, Mapping[str, Array]]
    lams: Array
    n_folds: int
    n_repeats: int


@dataclass(frozen=True)
class Difference:
    """One method against another by the first metric, positive if the one is better.

    Attributes:
        mean: over splits.
        standard_error: corrected for training rows that splits share (Nadeau and Bengio, 2003).
        better: in how many splits.
        equal: in how many there is none, as where λ = 0 was chosen.
        splits: of how many.
    """

    mean: float
    standard_error: float
    better: int
    equal: int
    splits: int


def how_often(n: int, model: str) -> tuple[int, int]:
    """Folds and repeats: fewer where rows are many, or the model takes long to train."""
    if model != "linear":
        return (5, 1) if n <= 20_000 else (3, 1)
    return 5, 2 if n <= 3000 else 1


def evaluate(case: Case, methods: Sequence[str], progress: Progress) -> Scores:
    """Trains every method on every split; the last one's λ are kept."""
    n_folds, n_repeats = how_often(len(case.y), case.model)
    splits = folds(case.y, n_folds, n_repeats, case.seed)
    found: dict[str, list[dict[str, float]]] = {method: [] for method in methods}
    lams = []
    for number, (train, test) in enumerate(splits):
        learned = case.rows(train)
        encoding = Encoding.fit(case.columns, learned)
        rows = Table(encoding(learned), case.y[train], case.old[train])
        hidden = encoding(case.rows(test))
        for place, method in enumerate(methods):
            fitted = METHODS[method](rows, case.setup(encoding))
            found[method].append(judge(fitted.predict(hidden, case.old[test]), case.y[test]))
            progress(number * len(methods) + place + 1, len(splits) * len(methods))
        lams.append(fitted.strength)
    by = {
        method: {metric: np.array([split[metric] for split in every]) for metric in every[0]}
        for method, every in found.items()
    }
    return Scores(by, np.array(lams), n_folds, n_repeats)


def judge(predicted: Array, y: Array) -> dict[str, float]:
    """The metrics of predictions ``[n, classes]``, or ``[n, 1]``, at hidden rows.

    The first is what models are chosen and compared by; lower is better.
    """
    loss = losses_of(predicted, y)
    if predicted.shape[1] == 1:
        total = float(((y - y.mean()) ** 2).sum())
        return {"RMSE": float(np.sqrt(2 * loss.mean())), "R²": 1 - 2 * float(loss.sum()) / total if total else np.nan}
    found = {"log-loss": float(loss.mean())}
    if predicted.shape[1] == 2:
        found["AUC"] = float(roc_auc_score(y, predicted[:, 1])) if len(np.unique(y)) == 2 else np.nan
    return found | {"accuracy": float((predicted.argmax(1) == y).mean())}


def compare(scores: Scores, method: str, other: str) -> Difference:
    """``mean ± sqrt(s² (1/J + n_test/n_train))`` of the J splits' differences, whose variance is s²."""
    metric = next(iter(scores.by[method]))
    one, two = scores.by[method][metric], scores.by[other][metric]
    gain: Any = np.where(np.isclose(one, two, rtol=1e-9, atol=0), 0.0, two - one)  # the same but for rounding
    splits = len(gain)
    inflated = 1 / splits + 1 / (scores.n_folds - 1)
    error = float(np.sqrt(gain.var(ddof=1) * inflated))
    return Difference(float(gain.mean()), error, int((gain > 0).sum()), int((gain == 0).sum()), splits)
