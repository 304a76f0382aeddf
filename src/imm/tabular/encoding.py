"""Columns of any kind as numbers: fitted on some rows, then the same for all others."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, Self

import numpy as np
import polars as pl

from imm.tabular.kinds import RARE, Column, as_numbers, as_text, as_times
from imm.tabular.reading import Frame
from imm.tabular.rows import Array

MOST = 30
"""Categories of a column that have a feature of their own, at most: the most frequent ones."""

CYCLES = {"year": 365.2425, "week": 7.0, "day": 1.0}
"""In days."""


class Code(Protocol):
    """How one column becomes features."""

    column: Column

    def features(self) -> list[str]:
        """Their names."""
        ...

    def encode(self, values: pl.Series) -> Array:
        """``[n, features]``, from what :func:`typed` gives."""
        ...

    def words(self) -> str:
        """What is done, for a person."""
        ...


@dataclass(frozen=True)
class Number:
    """The number; a missing one is the training rows' median, and a second feature says that it was missing."""

    column: Column
    median: float
    missing: int

    @classmethod
    def fit(cls, column: Column, values: pl.Series) -> Self:
        """From training rows."""
        return cls(column, _median(values), values.null_count())

    def features(self) -> list[str]:
        """One, or two if training rows lack it."""
        return [self.column.name, *([f"{self.column.name} missing"] if self.missing else [])]

    def encode(self, values: pl.Series) -> Array:
        """``[n, 1 or 2]``."""
        found = [values.fill_null(self.median), *([values.is_null()] if self.missing else [])]
        return np.column_stack([part.to_numpy().astype(np.float64) for part in found])

    def words(self) -> str:
        """With the count of missing values."""
        return (
            f"number; {self.missing} missing, set to the median {self.median:.4g} and marked"
            if self.missing
            else "number"
        )


@dataclass(frozen=True)
class Date:
    """Days since 1970, and where in the year, the week and the day it is, as sine and cosine."""

    column: Column
    median: float
    missing: int

    @classmethod
    def fit(cls, column: Column, values: pl.Series) -> Self:
        """From training rows."""
        return cls(column, _median(_days(values)), values.null_count())

    def features(self) -> list[str]:
        """Days; two for each rhythm; and whether it is missing."""
        name = self.column.name
        rounds = [f"{name} {part} of {cycle}" for cycle in self.column.cycles for part in ("sine", "cosine")]
        return [f"{name} days", *rounds, *([f"{name} missing"] if self.missing else [])]

    def encode(self, values: pl.Series) -> Array:
        """``[n, features]``; a missing date is the median day and has no place in any rhythm."""
        days = _days(values).to_numpy().astype(np.float64)
        gone = np.isnan(days)
        parts = [np.where(gone, self.median, days)]
        for cycle in self.column.cycles:
            angle = 2 * np.pi * days / CYCLES[cycle]
            parts += [np.where(gone, 0, np.sin(angle)), np.where(gone, 0, np.cos(angle))]
        if self.missing:
            parts.append(gone.astype(np.float64))
        return np.column_stack(parts)

    def words(self) -> str:
        """With the rhythms."""
        rounds = f", and its place in the {' and the '.join(self.column.cycles)}" if self.column.cycles else ""
        gone = f"; {self.missing} missing, set to the median day and marked" if self.missing else ""
        note = f" ({self.column.note})" if self.column.note else ""
        return f"date: days since 1970{rounds}{gone}{note}"


@dataclass(frozen=True)
class Category:
    """One feature for each category, 0 or 1; missing is a category of its own, and rare ones are one together.

    A category that no training row had counts as a rare one. Where there were no rare ones, its features are the
    training rows' means, so that it speaks for nothing. Two categories need one feature, that of the second.

    Attributes:
        levels: categories with a feature of their own, the most frequent first.
        rare: how many training rows have another.
        missing: how many training rows have none.
        means: of the features, ``levels``, then rare and missing if there are any.
    """

    column: Column
    levels: tuple[str, ...]
    rare: int
    missing: int
    means: tuple[float, ...]

    @classmethod
    def fit(cls, column: Column, values: pl.Series) -> Self:
        """From training rows."""
        counts = Counter(values.drop_nulls().to_list())
        ordered = sorted(counts, key=lambda level: (-counts[level], level))
        levels = tuple(level for level in ordered if counts[level] >= RARE)[:MOST]
        rare = sum(counts.values()) - sum(counts[level] for level in levels)
        missing = values.null_count()
        sizes = [*(counts[level] for level in levels), *([rare] if rare else []), *([missing] if missing else [])]
        return cls(column, levels, rare, missing, tuple(size / max(1, len(values)) for size in sizes))

    def features(self) -> list[str]:
        """See the class."""
        marks = [*self.levels, *(["(rare)"] if self.rare else []), *(["(missing)"] if self.missing else [])]
        return [f"{self.column.name} = {mark}" for mark in marks][self._dropped :]

    @property
    def _dropped(self) -> int:
        """How many features of the first ones the others tell already."""
        return 1 if len(self.means) <= 2 else 0

    def encode(self, values: pl.Series) -> Array:
        """``[n, features]``."""
        found = np.zeros((len(values), len(self.means)))
        for number, level in enumerate(self.levels):
            found[:, number] = (values == level).fill_null(False).to_numpy()
        gone = values.is_null().to_numpy()
        unseen = ~gone & ~found.any(1)
        k = len(self.levels)
        found[unseen] = np.eye(len(self.means))[k] if self.rare else self.means
        found[gone] = np.eye(len(self.means))[-1] if self.missing else self.means
        return found[:, self._dropped :]

    def unseen(self, values: pl.Series) -> list[str]:
        """Categories that no training row had a feature for, if there were no rare ones they could be."""
        return [] if self.rare else sorted(set(values.drop_nulls().unique()) - set(self.levels))

    def words(self) -> str:
        """With the categories."""
        shown = ", ".join(self.levels[:6]) + (" …" if len(self.levels) > 6 else "")
        rare = f"; rarer ones in {self.rare} rows are one together" if self.rare else ""
        gone = f"; {self.missing} missing, a category of their own" if self.missing else ""
        return f"{len(self.levels)} categories ({shown}){rare}{gone}"


KINDS: Mapping[str, Any] = {"number": Number, "date": Date, "category": Category}


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become features ``[n, d]``."""

    codes: tuple[Code, ...]

    @classmethod
    def fit(cls, columns: Sequence[Column], values: Mapping[str, pl.Series]) -> Self:
        """From training rows only, which ``values`` holds by column."""
        return cls(tuple(KINDS[column.kind].fit(column, values[column.name]) for column in columns))

    def __call__(self, values: Mapping[str, pl.Series]) -> Array:
        """The features of other rows."""
        return np.hstack([code.encode(values[code.column.name]) for code in self.codes])

    def features(self) -> list[str]:
        """Their names."""
        return [feature for code in self.codes for feature in code.features()]

    def of(self, names: Sequence[str]) -> Array:
        """Which features come from these columns, ``[d]`` booleans."""
        return np.array([code.column.name in names for code in self.codes for _ in code.features()], dtype=bool)

    def record(self) -> list[dict[str, Any]]:
        """As JSON."""
        return [asdict(code) for code in self.codes]  # type: ignore[call-overload]

    @classmethod
    def from_record(cls, record: Sequence[Mapping[str, Any]]) -> Self:
        """The reverse of :meth:`record`."""
        codes = []
        for entry in record:
            column = Column(**{**entry["column"], "cycles": tuple(entry["column"]["cycles"])})
            rest = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
            codes.append(KINDS[column.kind](**{**rest, "column": column}))
        return cls(tuple(codes))


def typed(frame: Frame, columns: Sequence[Column]) -> dict[str, pl.Series]:
    """Each column in the type of its kind; a value of another type is refused with its line."""
    found = {}
    for column in columns:
        if column.kind == "number":
            found[column.name] = as_numbers(frame, column.name)
        elif column.kind == "date":
            found[column.name] = as_times(frame, column.name, column.format)
        else:
            found[column.name] = as_text(frame.columns[column.name])
    return found


def _median(values: pl.Series) -> float:
    found = values.median()
    return 0.0 if found is None else float(found)  # type: ignore[arg-type]


def _days(values: pl.Series) -> pl.Series:
    return values.dt.epoch("us") / 86_400e6
