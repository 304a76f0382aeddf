"""The tables of ``tabular-rivals``: what is predicted, what the old model sees, which rows are for what."""

import csv
import gzip
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imm.experiments.data import data_file
from imm.experiments.study import Settings

Array = NDArray[Any]


@dataclass(frozen=True)
class Whole:
    """A data set: features ``[n, d]``, labels 0 and 1 ``[n]``, names of the features ``[d]``."""

    x: Array
    y: Array
    names: Sequence[str]


@dataclass(frozen=True)
class Draw:
    """One division of a data set, the same for every method and every old model.

    Attributes:
        x: features of all rows.
        y: labels of all rows.
        short: ``[d]``, which features the old model sees.
        shift: the number of the extended feature by which a shifted old model's rows are selected.
        test: rows to judge on.
        pool: rows for the old model, of which the new one never sees extended features.
        few: rows with all features, to train on.
    """

    x: Array
    y: Array
    short: NDArray[np.bool_]
    shift: int
    test: Array
    pool: Array
    few: Array


def draw(settings: Settings, name: str, n: int, number: int) -> Draw:
    """Rows by a permutation that the seed, the data set and the draw decide; fewer rows are the first of more."""
    about = settings["sets"][name]
    whole = load(name)
    rng = np.random.default_rng([settings["seed"], zlib.crc32(name.encode()), number])
    order = rng.permutation(len(whole.y))
    test, pool = about["test"], about["test"] + about["pool"]
    names = list(whole.names)
    short = np.isin(names, about["short"])
    if short.sum() != len(about["short"]) or pool + n > len(order):
        raise ValueError(f"{name} has no such features or too few rows: {about}")
    shift = names.index(about["shift"])
    return Draw(whole.x, whole.y, short, shift, order[:test], order[test:pool], order[pool : pool + n])


@cache
def load(name: str) -> Whole:
    """By name."""
    return _LOADERS[name]()


def _adult() -> Whole:
    """Census income above 50,000; one-hot already."""
    with gzip.open(data_file("tabular/adult.csv.gz"), "rt") as file:
        names = file.readline().strip().split(",")
        table = np.loadtxt(file, delimiter=",")
    label = names.index("salary_>50K")
    kept = [i for i, name in enumerate(names) if not name.startswith("salary_")]
    return Whole(table[:, kept], table[:, label].astype(np.intp), [names[i] for i in kept])


def _fair() -> Whole:
    """Any affair."""
    with data_file("tabular/fair.csv").open() as file:
        names = file.readline().strip().split(",")
        table = np.loadtxt(file, delimiter=",")
    kept = [i for i, name in enumerate(names) if name not in ("affairs", "had_affair")]
    y = (table[:, names.index("affairs")] > 0).astype(np.intp)
    return Whole(table[:, kept], y, [names[i] for i in kept])


def _credit() -> Whole:
    """A bad credit. Each word becomes a column (of two, the second); a missing number, the median and a mark."""
    with data_file("tabular/credit_data.csv").open(newline="") as file:
        records = list(csv.DictReader(file))
    columns: dict[str, Array] = {}
    for name in records[0]:
        if name in ("rownames", "Status"):
            continue
        values = [record[name] for record in records]
        missing = np.array([value in ("", "NA") for value in values])
        try:
            numbers = np.array([np.nan if gap else float(value) for value, gap in zip(values, missing, strict=True)])
        except ValueError:
            words = sorted(set(values))
            columns |= {
                f"{name}={word}": np.array(values) == word for word in (words[1:] if len(words) == 2 else words)
            }
            continue
        columns[name] = np.where(missing, np.nanmedian(numbers), numbers)
        if missing.any():
            columns[f"{name} missing"] = missing
    y = np.array([record["Status"] == "bad" for record in records]).astype(np.intp)
    return Whole(np.column_stack(list(columns.values())).astype(np.float64), y, list(columns))


def _breast_cancer() -> Whole:
    """A benign tumour."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    return Whole(data.data, data.target.astype(np.intp), list(data.feature_names))


def _diabetes() -> Whole:
    """More progression than the median."""
    from sklearn.datasets import load_diabetes

    data = load_diabetes()
    return Whole(data.data, (data.target > np.median(data.target)).astype(np.intp), list(data.feature_names))


def _digits_odd() -> Whole:
    """An odd digit."""
    from sklearn.datasets import load_digits

    data = load_digits()
    return Whole(data.data, (data.target % 2).astype(np.intp), list(data.feature_names))


_LOADERS: dict[str, Callable[[], Whole]] = {
    "adult": _adult,
    "credit": _credit,
    "fair": _fair,
    "breast-cancer": _breast_cancer,
    "diabetes": _diabetes,
    "digits-odd": _digits_odd,
}
