"""Fitted estimators on disk: JSON and safetensors, nothing that is run when it is read."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

import imm
from imm.files import whole_folder
from imm.tabular.engines import engine_for
from imm.tabular.fitting import Scaling, Setup
from imm.tabular.old_model import fitted_source
from imm.tabular.selection import Choice
from imm.tabular.tasks import Classification, Regression

RECORD, ARRAYS = "model.json", "model.safetensors"
FORMAT = 5
"""Of what is written; another one is refused."""

SETTINGS = ("lam", "l2", "n_neighbors", "alpha", "standardize", "keep_old", "random_state")


def save(estimator: Any, path: str | Path) -> None:
    """Writes a fitted estimator to a folder. The old model is not in it."""
    setup = estimator._setup
    task = setup.task
    names = getattr(estimator, "feature_names_in_", None)
    choice = estimator.choice_
    record = {
        "format": FORMAT,
        "imm": imm.__version__,
        "estimator": type(estimator).__name__,
        "model": estimator.model if isinstance(estimator.model, str) else None,
        "engine": type(setup.engine).__name__,
        # as they were when it was fitted, as far as it asks them later
        "settings": {name: _plain(getattr(setup, name, getattr(estimator, name))) for name in SETTINGS},
        "classes": _labels(task.classes) if isinstance(task, Classification) else None,
        "n_features": estimator.n_features_in_,
        "features": None if names is None else [str(name) for name in names],
        "short_features": [int(i) for i in estimator.short_features_],
        "restricted": estimator.restricted_,
        "lam": estimator.lam_,
        "l2": estimator.l2_,
        "share": estimator.share_,
        "seed": setup.seed,
        "choice": None if choice is None else {name: _plain(value) for name, value in asdict(choice).items()},
    }
    arrays = {f"fit.{name}": value for name, value in estimator._trained.arrays().items()}
    arrays |= {"scaling.mean": estimator._scaling.mean, "scaling.scale": estimator._scaling.scale}
    with whole_folder(Path(path), replaces=RECORD) as folder:
        (folder / RECORD).write_text(json.dumps(record, indent=1, ensure_ascii=False), encoding="utf-8")
        save_file({name: np.ascontiguousarray(value) for name, value in arrays.items()}, folder / ARRAYS)


def load(path: str | Path, model: Any = None, restricted_model: Any = None) -> Any:
    """A saved estimator, ready to predict.

    It has no training rows: ``induced_predict_proba`` needs rows to average over, and ``diagnose`` cannot be had.

    Args:
        path: the folder.
        model: the engine or factory of modules the model was trained with, if it was not one of the names.
        restricted_model: for a model with ``keep_old=True`` the old model, which is not in the folder: a fitted
            estimator, a callable or the path of an ONNX file. Without it predictions need its answers, as
            ``restricted_proba=`` or ``restricted_pred=``.
    """
    record, arrays = _read(Path(path))
    if model is not None:
        engine_for(model)  # what it cannot be is refused as such, and not as a damaged folder
    with whole(Path(path)):
        estimator = _restore(path, record, arrays, model)
        keep_old = estimator._setup.keep_old
    if keep_old:
        estimator.restricted_ = "column"
    if restricted_model is not None:
        if not keep_old:
            raise ValueError(f"{path} was fitted without keep_old=True: it does not ask the old model, so give none")
        names = getattr(estimator, "feature_names_in_", None)
        names = None if names is None else list(names)
        estimator._source = fitted_source(restricted_model, estimator.short_features_, names)
        estimator.restricted_ = estimator._source.kind
        estimator.restricted_model, estimator.restricted_model_ = restricted_model, estimator._source.model
    return estimator


@contextmanager
def whole(path: Path) -> Iterator[None]:
    """What is missing from a record, or of another kind, says that the folder is damaged."""
    try:
        yield
    except (OSError, ValueError, ImportError):
        raise  # these say themselves what is wrong
    except Exception as error:  # boosting libraries have kinds of their own
        reason = f"{type(error).__name__} {error}".partition("\n")[0]
        raise ValueError(f"{path} is damaged ({reason}): fit the model again") from None


def _restore(path: str | Path, record: dict[str, Any], arrays: dict[str, Any], model: Any) -> Any:
    from imm.tabular import IMMClassifier, IMMRegressor

    kind = {"IMMClassifier": IMMClassifier, "IMMRegressor": IMMRegressor}[record["estimator"]]
    given = model is not None
    model = model if given else record["model"]
    if model is None:
        raise ValueError(f"{path} was trained with a model of your own ({record['engine']}): give it as model=")
    settings = {name: value for name, value in record["settings"].items() if value != UNKNOWN}
    settings.setdefault("lam", record["lam"])  # what a schedule gave
    estimator = kind(model=model, short_features=record["short_features"], **settings)
    task: Classification | Regression = Regression()
    if record["classes"] is not None:
        task = Classification(np.array(record["classes"]["labels"], dtype=record["classes"]["dtype"]))
        estimator.classes_ = task.classes
    estimator.n_features_in_ = record["n_features"]
    if record["features"] is not None:
        estimator.feature_names_in_ = np.array(record["features"], dtype=object)
    estimator.short_features_ = np.array(record["short_features"], dtype=np.intp)
    short = np.zeros(record["n_features"], dtype=bool)
    short[estimator.short_features_] = True
    engine = engine_for(model)
    if type(engine).__name__ != record["engine"]:
        raise ValueError(f"{path} was trained with {record['engine']}, but model= is {type(engine).__name__}")
    estimator._setup = Setup(
        task,
        engine,
        short,
        estimator.keep_old,
        estimator.n_neighbors,
        estimator.alpha,
        estimator.standardize,
        record["seed"],
    )
    estimator.lam_, estimator.l2_, estimator.share_ = (_number(record[name]) for name in ("lam", "l2", "share"))
    estimator.restricted_ = record["restricted"]
    estimator.restricted_model_ = estimator._source = estimator._data = None
    choice = record["choice"]
    if choice is not None:
        tuples = {name: tuple(choice[name]) for name in ("lams", "l2s")}
        choice = Choice(**{name: _array(value) for name, value in (choice | tuples).items()})
    estimator.choice_ = choice
    estimator._scaling = Scaling(arrays["scaling.mean"], arrays["scaling.scale"])
    fit = {name.removeprefix("fit."): value for name, value in arrays.items() if name.startswith("fit.")}
    try:
        estimator._trained = engine.restore(fit, len(estimator._scaling.mean), task.n_classes)
    except Exception as error:
        if not given:
            raise
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} was trained with another model than model= gives: {reason}") from None
    estimator._publish_coefficients()
    return estimator


UNKNOWN = "?"
"""Stands for a setting that is not a plain value: a schedule, a callable."""


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, tuple):
        return list(value)
    return value if value is None or isinstance(value, bool | int | float | str) else UNKNOWN


def _number(value: Any) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return value


def _array(value: Any) -> Any:
    return np.array(value) if isinstance(value, list) else value


def _labels(classes: Any) -> dict[str, Any]:
    if classes.dtype.kind in "OmMc" and not all(isinstance(label, str) for label in classes):
        raise ValueError(f"only labels that are numbers or strings can be saved, got {classes[0]!r}")
    return {"labels": classes.tolist(), "dtype": classes.dtype.str if classes.dtype.kind != "O" else "object"}


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    if not (path / RECORD).exists():
        raise FileNotFoundError(f"{path} is not a saved model: it has no {RECORD}")
    try:
        record = json.loads((path / RECORD).read_text(encoding="utf-8"))
        arrays = load_file(path / ARRAYS)
    except (OSError, ValueError, SafetensorError) as error:
        raise ValueError(f"{path} is damaged ({error}): fit the model again") from None
    with whole(path):
        check_format(path, record)
    return record, arrays


def check_format(path: Path, record: dict[str, Any]) -> None:
    """Refuses what another version wrote."""
    if record.get("format") != FORMAT:
        raise ValueError(f"{path} has format {record.get('format')!r}; this version of imm reads format {FORMAT}")
