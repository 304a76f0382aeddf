"""The label column: classes or values, and whether enough rows have them."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from imm.tabular.column_types import as_numbers, as_text
from imm.tabular.distinct_rows import Array
from imm.tabular.frame import Frame

LEAST = 20
"""Rows that are needed to learn from and to judge by."""

FEW = 10
"""Whole numbers up to this many different ones are classes."""

POSITIVE = ("1", "true", "yes", "y", "t", "positive", "pos")
NEGATIVE = ("0", "-1", "false", "no", "n", "f", "negative", "neg")
"""Two classes of which one is plainly the positive one."""


@dataclass(frozen=True)
class Label:
    """What is predicted.

    Attributes:
        name: of the column.
        classes: as they are written in the file, numbers in their order, else by alphabet; None for regression.
    """

    name: str
    classes: tuple[str, ...] | None

    def of(self, frame: Frame) -> Array:
        """Class numbers or values of a table's rows, ``[n]``; classes that are not known are -1."""
        if self.classes is None:
            return as_numbers(frame, self.name).to_numpy().astype(np.float64)
        number = {label: i for i, label in enumerate(self.classes)}
        return np.array([number.get(label, -1) for label in written(frame, self.name)], dtype=np.intp)

    def positive(self, given: str | None) -> int:
        """The number of the class whose probability an old score is."""
        classes = self.classes
        assert classes is not None
        if len(classes) != 2:
            raise ValueError(f"--old-score needs a label with two classes, but {self.name!r} has {len(classes)}")
        if given is not None:
            if given not in classes:
                raise ValueError(f"--positive is {given!r}, but the classes are {classes[0]!r} and {classes[1]!r}")
            return classes.index(given)
        plain = [label.lower() for label in classes]
        for i in (0, 1):
            if plain[i] in POSITIVE and plain[1 - i] in NEGATIVE:
                return i
        raise ValueError(
            f"of which class is the old score the probability? Give --positive {classes[1]} or --positive {classes[0]}"
        )


def find_label(frame: Frame, name: str, task: str | None) -> Label:
    """What the label is; whatever cannot be learned from is refused in one line.

    Args:
        frame: the new rows.
        name: of the label's column.
        task: ``classification`` or ``regression``, if the user says which.
    """
    check_label(frame, name)
    values = written(frame, name)
    different = values.n_unique()
    if len(frame) < LEAST:
        raise ValueError(
            f"{frame.path} has {len(frame)} rows; at least {LEAST} are needed to learn from and to judge by"
        )
    if different == 1:
        raise ValueError(f"label {name!r} is {values[0]!r} in every row of {frame.path}: there is nothing to learn")
    if task == "regression":
        as_numbers(frame, name)
        return Label(name, None)
    numbers = values.cast(pl.Float64, strict=False)
    if numbers.null_count():
        classes = sorted(values.unique())
    else:
        whole = bool((numbers == numbers.floor()).all())
        if task is None and different > 2 and (different > FEW or not whole):
            raise ValueError(
                f"label {name!r} looks continuous ({different} different numbers): give --task regression, or"
                " --task classification if they are classes"
            )
        classes = sorted(values.unique(), key=float)
    if different > len(frame) // 2:
        raise ValueError(f"label {name!r} has {different} different values in {len(frame)} rows: these are no classes")
    counts = dict(values.value_counts().iter_rows())
    rare = min(classes, key=lambda label: counts[label])
    if counts[rare] < 2:
        raise ValueError(
            f"label {name!r} is {rare!r} in one row only; two are needed to learn and to judge: remove or rename it"
        )
    return Label(name, tuple(classes))


def check_label(frame: Frame, name: str) -> None:
    """Refuses a table without the label, or with rows that lack it."""
    if name not in frame.names:
        raise ValueError(f"{frame.path} has no column {name!r} (--label); it has {', '.join(frame.names[:30])}")
    gone = frame.columns[name].is_null()
    if gone.any():
        first = frame.place(int(gone.arg_true()[0]))
        raise ValueError(f"label {name!r} is missing in {gone.sum()} rows, first in {first}: fill it in or remove them")


def written(frame: Frame, name: str) -> pl.Series:
    """Labels as text; numbers all in one way, so that 1 and 1.0 are the same."""
    values = frame.columns[name]
    if values.dtype == pl.String:
        numbers = values.cast(pl.Float64, strict=False).fill_nan(None)
        if not numbers.null_count():
            values = numbers
    return as_text(values)
