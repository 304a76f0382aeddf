"""What a table's columns are: numbers, dates, categories, or nothing to learn from."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from imm.tabular.frame import Frame

Kind = Literal["number", "date", "category", "left out"]

RARE = 3
"""A category that fewer training rows have is joined with the other rare ones."""

CODES = 20
"""A column with more different numbers than this is one of numbers, with mistakes where it has other text."""

MONTH_FIRST, DAY_FIRST = "%m/%d/%Y", "%d/%m/%Y"
DATES = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", MONTH_FIRST, DAY_FIRST)
TIMES = (
    "",
    " %H:%M",
    " %H:%M:%S",
    "T%H:%M",
    "T%H:%M:%S",
    " %H:%M:%S%.f",
    "T%H:%M:%S%.f",
    "T%H:%M:%SZ",
    "T%H:%M:%S%.fZ",
)
ZONE = r"(:\d\d(?:\.\d+)?) ?[+-]\d\d(?::?\d\d)?$"
"""The end of a time with its zone, as +01:00."""
COMMAS = {";": (r"^[+-]?\d*,\d+$", "."), ",": (r"^[+-]?\d{1,3}(,\d{3})+(\.\d*)?$", "")}
"""By a file's separator: which numbers with commas are meant, and what stands for a comma."""
IDENTIFIER = re.compile(r"(?i:(.*[ _.-])?(id|uuid|key|index|row|rownames|unnamed: ?0|column 1))|.*[a-z](Id|ID)")
"""Names of columns that number rows, if every row has a whole number of its own."""


@dataclass(frozen=True)
class Column:
    """What a column is.

    Attributes:
        name: its name.
        kind: ``left out`` if nothing can be learned from it.
        note: why it is left out, or what a person should know.
        format: of dates that come as text.
        cycles: of dates, in which rhythms they go round: ``year``, ``week``, ``day``.
    """

    name: str
    kind: Kind
    note: str = ""
    format: str | None = None
    cycles: tuple[str, ...] = field(default=())


def find_kinds(frame: Frame, names: Collection[str]) -> list[Column]:
    """What each of these columns is; text among numbers or dates is refused with the line it is in."""
    return [_kind(frame, name) for name in names]


def _kind(frame: Frame, name: str) -> Column:
    values = frame.columns[name]
    present = values.drop_nulls()
    if not len(present):
        return Column(name, "left out", "empty")
    if present.n_unique() == 1 and len(present) == len(values):
        return Column(name, "left out", f"{as_text(present[:1])[0]!r} in every row")
    if values.dtype == pl.Datetime:
        return _date(name, present, None)
    parsed = _parse_numbers(frame, present)
    wrong = parsed.is_null()
    if not wrong.any():
        return _number(frame, name, parsed, missing=len(present) < len(values))
    formats = _date_formats(present)
    if formats:
        times = _parse_times(present, formats[0])
        if times.null_count() == 0:
            both = {form.partition(" ")[0].partition("T")[0] for form in formats} == {MONTH_FIRST, DAY_FIRST}
            note = "read as month/day/year; write dates as 2024-03-01 if that is wrong" if both else ""
            return _date(name, times, formats[0], note)
        wrong = times.is_null()
    if formats or (2 * int(wrong.sum()) < len(wrong) and parsed.n_unique() > CODES):
        what = "dates" if formats else "numbers"
        first = present.filter(wrong)[0]
        place = frame.place(int((values == first).arg_true()[0]))
        raise ValueError(f"column {name!r} holds {what}, but {place} has {first!r}: correct it or remove the column")
    counts = present.value_counts()["count"]
    if int(counts.max()) < RARE:  # type: ignore[arg-type]
        return Column(
            name, "left out", f"text that differs from row to row ({len(counts)} texts in {len(values)} rows)"
        )
    return Column(name, "category")


def _number(frame: Frame, name: str, parsed: pl.Series, missing: bool) -> Column:
    if parsed.is_infinite().any():
        raise ValueError(f"column {name!r} of {frame.path} has an infinite number: correct it or remove the column")
    whole = bool((parsed == parsed.floor()).all())
    if whole and not missing and parsed.n_unique() == len(parsed) >= 20:
        consecutive = parsed.max() - parsed.min() == len(parsed) - 1  # type: ignore[operator]
        if consecutive or IDENTIFIER.fullmatch(name):
            return Column(name, "left out", "a number of its own for every row: an identifier")
    return Column(name, "number")


def _date(name: str, times: pl.Series, form: str | None, note: str = "") -> Column:
    """Rhythms are kept that the dates can show: a year if they span half of one, days of the week, hours."""
    days = (times.max() - times.min()).total_seconds() / 86400  # type: ignore[operator,union-attr]
    cycles = []
    if days > 180:
        cycles.append("year")
    if times.dt.weekday().n_unique() > 1 and days > 14:
        cycles.append("week")
    if times.dt.hour().n_unique() > 1:
        cycles.append("day")
    return Column(name, "date", note, form, tuple(cycles))


def _date_formats(present: pl.Series) -> list[str]:
    """Formats in which more than half are dates, best first."""
    if present.dtype != pl.String or not present.head(100).str.contains(r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}").any():
        return []
    forms = [day + time for day in DATES for time in TIMES]
    for some in (present.head(1000), present):  # most formats are seen to be wrong at once
        share = {form: float(_parse_times(some, form).is_not_null().mean() or 0) for form in forms}  # type: ignore[arg-type]
        best = max(share.values())
        forms = [form for form in forms if share[form] > 0.5 and (len(some) < len(present) or share[form] == best)]
        if not forms:
            return []
    return forms


def _parse_times(text: pl.Series, form: str) -> pl.Series:
    """Null where a text is no such date; a year of two digits is none, as nobody knows which it is.

    Of times with a zone the clock's are taken, as of such columns of Parquet files.
    """
    parsed = text.str.replace(ZONE, "$1").str.strptime(pl.Datetime("us"), form, strict=False)
    return parsed.set((parsed.dt.year() < 1000).fill_null(False), None)


def _parse_numbers(frame: Frame, values: pl.Series) -> pl.Series:
    """Null where a text is no number; in a file with semicolons 2,5 is 2.5, in one with commas 2,500 is 2500."""
    if values.dtype != pl.String:
        return values
    parsed = values.cast(pl.Float64, strict=False)
    if frame.separator in COMMAS and parsed.null_count() > values.null_count():
        form, instead = COMMAS[frame.separator]
        plain = values.set(~values.str.contains(form), None).str.replace_all(",", instead, literal=True)
        parsed = parsed.fill_null(plain.cast(pl.Float64, strict=False))
    return parsed.fill_nan(None)


def as_numbers(frame: Frame, name: str) -> pl.Series:
    """A column as Float64; what is no number is refused with its line."""
    values = frame.columns[name]
    if values.dtype == pl.Datetime:
        raise ValueError(f"column {name!r} of {frame.path} must hold numbers, but holds dates")
    parsed = _parse_numbers(frame, values)
    _refuse_first(
        frame, name, (parsed.is_null() & values.is_not_null()) | parsed.is_infinite().fill_null(False), "number"
    )
    return parsed


def as_times(frame: Frame, name: str, form: str | None) -> pl.Series:
    """A column as Datetime; what is no date is refused with its line."""
    values = frame.columns[name]
    if values.dtype == pl.Datetime:
        return values
    if values.dtype != pl.String or form is None:
        if not values.null_count() == len(values):
            raise ValueError(f"column {name!r} of {frame.path} must hold dates, but holds {values.dtype}")
        return values.cast(pl.Datetime("us"))
    parsed = _parse_times(values, form)
    _refuse_first(frame, name, parsed.is_null() & values.is_not_null(), f"date as in {form}")
    return parsed


def _refuse_first(frame: Frame, name: str, wrong: pl.Series, what: str) -> None:
    if wrong.any():
        row = int(wrong.arg_true()[0])
        given = frame.columns[name][row]
        raise ValueError(f"column {name!r}: {given!r} in {frame.place(row)} is not a {what}")


def as_text(values: pl.Series) -> pl.Series:
    """A column as text; whole numbers without a point."""
    if values.dtype == pl.Float64:
        return pl.Series(values.name, [None if v is None else f"{v:.15g}" for v in values], dtype=pl.String)
    return values.cast(pl.String)
