"""``imm fit``: from files to a model, and to what can be said of it."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from imm.fit.bundle import Saved
from imm.fit.label import Label, find_label
from imm.fit.nested_cv import Case, compare, evaluate
from imm.fit.old_input import OldData, OldOnnx, OldScore, OldSource, check_names, number_task, shared_columns
from imm.fit.overlap import rows_in_both
from imm.fit.request import Request
from imm.fit.table_file import read_table
from imm.fit.verdict import helped, summarise, verdict
from imm.progress import Progress
from imm.tabular.classifier import IMMClassifier
from imm.tabular.column_types import Column, find_kinds
from imm.tabular.encoding import Encoding, typed
from imm.tabular.frame import Frame
from imm.tabular.regressor import IMMRegressor

RIVALS = ("stacking", "interpolation", "offset", "reverse-kd", "label-smoothing")

PERFECT = 0.999
"""Accuracy, or R², that is too good to be true."""

SHOWN = 10
"""Columns that a note names at most."""


@dataclass(frozen=True)
class Outcome:
    """The model, and the record of how it came about."""

    saved: Saved
    record: dict[str, Any]


def fit(request: Request, progress: Progress) -> Outcome:
    """Reads, compares by nested cross-validation, and trains on all new rows."""
    begin = time.perf_counter()
    request.check()
    new = read_table(request.new)
    label = find_label(new, request.label, request.task)
    every = find_kinds(new, [name for name in new.names if name not in (request.label, request.old_score)])
    columns = [column for column in every if column.kind != "left out"]
    if not columns:
        reasons = "; ".join(f"{column.name}: {column.note}" for column in every[:5])
        raise ValueError(f"{new.path} has no column to learn from besides the label ({reasons or 'it has no other'})")
    source, short, seen = _old_source(request, new, label, columns)
    old = source.ask(new, label)
    if request.keep_old:
        with TemporaryDirectory() as trial:
            source.save(Path(trial))  # what cannot be stored is refused before the work
    case = Case(
        columns, typed(new, columns), label.of(new), old, short, number_task(label), request.model, request.seed
    )
    ours = "imm-stacking" if request.keep_old else "imm"
    rivals = [name for name in RIVALS if request.rivals and (label.classes or name != "label-smoothing")]
    scores = evaluate(case, ["full-only", "old-only", *rivals, ours], progress)
    encoding = Encoding.fit(columns, case.values)
    estimator = _train(case, encoding, request.keep_old)
    words = verdict(scores, ours, estimator.lam_, estimator.share_)
    diagnosis = estimator.diagnose()
    record = {
        "format": 1,
        "title": f"Does the old model help to predict {label.name}?",
        "settings": {name: str(value) if isinstance(value, Path) else value for name, value in asdict(request).items()},
        "verdict": words,
        "helped": helped(compare(scores, ours, "full-only")),
        "method": ours,
        "task": "regression" if label.classes is None else "classification",
        "classes": label.classes and list(label.classes),
        "n": len(new),
        "folds": scores.n_folds,
        "repeats": scores.n_repeats,
        "lam": estimator.lam_,
        "l2": estimator.l2_,
        "share": estimator.share_,
        "lams_in_splits": [float(lam) for lam in scores.lams],
        "old": source.words(),
        "short": list(short),
        "distance": {"without": diagnosis.without, "with_imm": diagnosis.with_imm},
        "rows": summarise(scores),
        "splits": {method: {m: list(map(float, v)) for m, v in by.items()} for method, by in scores.by.items()},
        "columns": _columns(every, encoding, short),
        "notes": [*seen, *_notes(every, short, scores.by)],
        "seconds": round(time.perf_counter() - begin, 1),
        "versions": {name: version(name) for name in ("imm", "torch", "numpy", "scikit-learn", "polars")},
    }
    return Outcome(Saved(label, encoding, estimator, source if request.keep_old else None), record)


def _old_source(
    request: Request, new: Frame, label: Label, columns: Sequence[Column]
) -> tuple[OldSource, tuple[str, ...], list[str]]:
    """The old model, which of the new columns it sees, and what a person should know of it."""
    names = [column.name for column in columns]
    if request.old_data is not None:
        old = read_table(request.old_data)
        shared, notes = shared_columns(new, old, columns, label.name)
        source: OldSource = OldData.fit(old, label, shared, request.model, request.seed)
        theirs = [column for column in shared if column.name in names]
        short = tuple(column.name for column in theirs)
        ours = [column for column in columns if column.name in short]
        twins = rows_in_both(new, ours, old, theirs, label)
        seen = (
            f"{twins:,} of the {len(new):,} new rows stand in {old.path.name} too: the old model has seen the labels it"
            f" is judged by, and every comparison is too kind to it. Remove them from {old.path.name}."
        )
        return source, short, [*([seen] if twins else []), *notes]
    check_names(new, request.old_features, "--old-features")
    short = tuple(name for name in request.old_features if name in names)
    if request.old_features and not short:
        raise ValueError(f"of --old-features {', '.join(request.old_features)} none can be used: they do not vary")
    if request.old_model is not None:
        return OldOnnx(request.old_model, request.old_features), short, []
    assert request.old_score is not None
    check_names(new, [request.old_score], "the old score")
    if label.classes is None and request.positive is not None:
        raise ValueError(f"--positive is {request.positive!r}, but a regression has no classes: leave it out")
    positive = 0 if label.classes is None else label.positive(request.positive)
    return OldScore(request.old_score, positive), short, []


def _train(case: Case, encoding: Encoding, keep_old: bool) -> Any:
    """The estimator of all rows."""
    x = encoding(case.values)
    settings: dict[str, Any] = {
        "model": case.model,
        "short_features": np.flatnonzero(encoding.of(case.short)),
        "keep_old": keep_old,
        "random_state": case.seed,
    }
    if case.task.n_classes:
        return IMMClassifier(**settings).fit(x, case.y, restricted_proba=case.old)
    return IMMRegressor(**settings).fit(x, case.y, restricted_pred=case.old[:, 0])


def _columns(every: Sequence[Column], encoding: Encoding, short: Sequence[str]) -> list[dict[str, str]]:
    words = {code.column.name: code.words() for code in encoding.codes}
    return [
        {
            "column": column.name,
            "role": "left out" if column.kind == "left out" else "short" if column.name in short else "new",
            "treatment": words.get(column.name, column.note),
        }
        for column in every
    ]


def _notes(every: Sequence[Column], short: Sequence[str], by: Mapping[str, Mapping[str, Any]]) -> list[str]:
    columns = [column for column in every if column.kind != "left out"]
    notes = [f"{column.name}: {column.note}" for column in columns if column.note]
    left_out = [f"{column.name} ({column.note})" for column in every if column.kind == "left out"]
    if left_out:
        more = f" and {len(left_out) - SHOWN} more" if len(left_out) > SHOWN else ""
        notes.append(f"Left out: {', '.join(left_out[:SHOWN])}{more}.")
    if not short:
        notes.append(
            "Which columns the old model sees was not said (--old-features): rows for which its score is near are"
            " taken to be alike to it."
        )
    elif len(short) == len(columns):
        notes.append("The old model sees every column: nothing is new, and IMM is then reverse distillation.")
    if any(np.nanmean(by["full-only"].get(metric, 0)) > PERFECT for metric in ("accuracy", "R²")):
        notes.append(
            "Hidden rows are predicted almost without error: is the label, or what follows from it, among the columns?"
        )
    if np.nanmean(by["old-only"].get("AUC", 1)) < 0.45:
        notes.append("The old model ranks the rows backwards (AUC below 0.5): is the right class meant?")
    return notes
