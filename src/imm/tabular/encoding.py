"""Columns of any kind as numbers: fitted on some rows, then the same for all others."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, Self

import numpy as np
import polars as pl

from imm.tabular.column_types import RARE, Column, as_numbers, as_text, as_times
from imm.tabular.distinct_rows import Array
from imm.tabular.frame import Frame

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
    """The number; a missing one is the training rows' median, and a second feature says that it was missing.

    The second feature is there if at least :data:`RARE` training rows lack the number: fewer teach nothing.
    """

    column: Column
    median: float
    missing: int

    @property
    def marked(self) -> bool:
        """Whether there is the second feature."""
        return self.missing >= RARE

    @classmethod
    def fit(cls, column: Column, values: pl.Series) -> Self:
        """From training rows."""
        return cls(column, _median(values), values.null_count())

    def features(self) -> list[str]:
        """One, or two."""
        return [self.column.name, *([f"{self.column.name} missing"] if self.marked else [])]

    def encode(self, values: pl.Series) -> Array:
        """``[n, 1 or 2]``."""
        found = [values.fill_null(self.median), *([values.is_null()] if self.marked else [])]
        return np.column_stack([part.to_numpy().astype(np.float64) for part in found])

    def words(self) -> str:
        """With the count of missing values."""
        return "number" + _gone(self.missing, f"the median {self.median:.4g}", self.marked)


@dataclass(frozen=True)
class Date:
    """Days since 1970, and where in the year, the week and the day it is, as sine and cosine."""

    column: Column
    median: float
    missing: int

    @property
    def marked(self) -> bool:
        """Whether a feature says that the date is missing, as for :class:`Number`."""
        return self.missing >= RARE

    @classmethod
    def fit(cls, column: Column, values: pl.Series) -> Self:
        """From training rows."""
        return cls(column, _median(_days(values)), values.null_count())

    def features(self) -> list[str]:
        """Days; two for each rhythm; and whether it is missing."""
        name = self.column.name
        rounds = [f"{name} {part} of {cycle}" for cycle in self.column.cycles for part in ("sine", "cosine")]
        return [f"{name} days", *rounds, *([f"{name} missing"] if self.marked else [])]

    def encode(self, values: pl.Series) -> Array:
        """``[n, features]``; a missing date is the median day and has no place in any rhythm."""
        days = _days(values).to_numpy().astype(np.float64)
        gone = np.isnan(days)
        parts = [np.where(gone, self.median, days)]
        for cycle in self.column.cycles:
            angle = 2 * np.pi * days / CYCLES[cycle]
            parts += [np.where(gone, 0, np.sin(angle)), np.where(gone, 0, np.cos(angle))]
        if self.marked:
            parts.append(gone.astype(np.float64))
        return np.column_stack(parts)

    def words(self) -> str:
        """With the rhythms."""
        rounds = f", and its place in the {' and the '.join(self.column.cycles)}" if self.column.cycles else ""
        gone = _gone(self.missing, "the median day", self.marked)
        note = f" ({self.column.note})" if self.column.note else ""
        return f"date: days since 1970{rounds}{gone}{note}"


@dataclass(frozen=True)
class Category:
    """One feature for each category, 0 or 1; missing is a category of its own, and rare ones are one together.

    Rare are those that fewer than :data:`RARE` training rows have, and all beyond the :data:`MOST` most frequent. A
    category that no training row had counts as rare. Where rare ones are too few for a feature too, their features
    are the training rows' means: they speak for nothing. Two categories need one feature, that of the second.

    Attributes:
        levels: categories with a feature of their own, the most frequent first.
        rare: how many training rows have another.
        missing: how many training rows have none.
        means: of the features, ``levels``, then rare and missing if they have one.
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
        sizes = [*(counts[level] for level in levels), *(size for size in (rare, missing) if size >= RARE)]
        return cls(column, levels, rare, missing, tuple(size / max(1, len(values)) for size in sizes))

    def features(self) -> list[str]:
        """See the class."""
        others = [mark for mark, size in (("(rare)", self.rare), ("(missing)", self.missing)) if size >= RARE]
        return [f"{self.column.name} = {mark}" for mark in (*self.levels, *others)][self._told :]

    @property
    def _told(self) -> int:
        """How many of the first features the others tell already."""
        return 1 if len(self.means) == 2 else 0

    def encode(self, values: pl.Series) -> Array:
        """``[n, features]``."""
        found = np.zeros((len(values), len(self.means)))
        for number, level in enumerate(self.levels):
            found[:, number] = (values == level).fill_null(False).to_numpy()
        one = np.eye(len(self.means))
        rare = one[len(self.levels)] if self.rare >= RARE else np.array(self.means)
        gone = values.is_null().to_numpy()
        found[~gone & ~found.any(1)] = rare
        found[gone] = one[-1] if self.missing >= RARE else rare
        return found[:, self._told :]

    def words(self) -> str:
        """With the categories."""
        shown = ", ".join(self.levels[:6]) + (" …" if len(self.levels) > 6 else "")
        as_one = "are one together" if self.rare >= RARE else "count for nothing"
        rare = f"; rarer ones (rows: {self.rare}) {as_one}" if self.rare else ""
        as_own = "a category of their own" if self.missing >= RARE else "as rare ones"
        gone = f"; {self.missing} missing, {as_own}" if self.missing else ""
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


def _gone(missing: int, instead: str, marked: bool) -> str:
    return f"; {missing} missing, set to {instead}{' and marked' if marked else ''}" if missing else ""


def _median(values: pl.Series) -> float:
    found = values.median()
    return 0.0 if found is None else float(found)  # type: ignore[arg-type]


def _days(values: pl.Series) -> pl.Series:
    return values.dt.epoch("us") / 86_400e6
