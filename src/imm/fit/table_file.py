"""Tables from and to files: CSV, gzipped CSV and Parquet. What is in a file decides, not its name."""

import csv
import gzip
import io
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from imm.files import first_line
from imm.tabular.frame import Frame

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "-nan", "NULL", "null", "None", "?", ".", "-")
"""Texts that stand for a missing value."""


def read_table(path: Path) -> Frame:
    """Reads a table; a file that cannot be read whole is refused with the line at which it goes wrong."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; a CSV or Parquet file is needed")
    content = path.read_bytes()
    frame = _parquet(path, content) if content.startswith(b"PAR1") else _csv(path, content)
    if not len(frame):
        raise ValueError(f"{path} has column names, but no rows")
    return frame


def file_content(table: pl.DataFrame, path: Path) -> bytes:
    """A table as the file's name asks for it: Parquet, gzipped CSV (``.gz``), or CSV."""
    if path.suffix == ".parquet":
        buffer = io.BytesIO()
        table.write_parquet(buffer)
        return buffer.getvalue()
    content = table.write_csv().encode()
    return gzip.compress(content, mtime=0) if path.suffix == ".gz" else content


def _parquet(path: Path, content: bytes) -> Frame:
    try:
        found = pl.read_parquet(io.BytesIO(content))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ValueError(f"{path} is not a readable Parquet file: {first_line(error)}") from None
    return Frame(path, found.select(_plain(path, column) for column in found))


def _plain(path: Path, column: pl.Series) -> pl.Series:
    """One of the three types of a :class:`Frame`."""
    kind = column.dtype
    if kind.is_numeric() or kind == pl.Null:
        return column.cast(pl.Float64).fill_nan(None)
    if kind == pl.Boolean:
        return column.cast(pl.String)
    if isinstance(kind, pl.Datetime | pl.Date):
        zoned = isinstance(kind, pl.Datetime) and kind.time_zone is not None
        return (column.dt.replace_time_zone(None) if zoned else column).cast(pl.Datetime("us"))
    if kind == pl.String or isinstance(kind, pl.Categorical | pl.Enum):
        return _text_column(column.cast(pl.String))
    raise ValueError(f"column {column.name!r} of {path} holds {kind}; numbers, text, dates and booleans can be used")


def _text_column(column: pl.Series) -> pl.Series:
    column = column.str.strip_chars()
    return column.set(column.is_in(MISSING), None)


def _csv(path: Path, content: bytes) -> Frame:
    text = _text(path, content)
    separator = _separator(text)
    line, header = next(_records(path, text, separator), (0, []))
    if not header:
        raise ValueError(f"{path} is empty")
    header = [name.strip() or f"column {number}" for number, name in enumerate(header, 1)]
    twice = [name for number, name in enumerate(header) if name in header[:number]]
    if twice:
        raise ValueError(f"{path} has the column {twice[0]!r} twice; give each a name of its own")
    body = text.split("\n", line - 1)[-1].rstrip("\r\n")
    try:
        found = pl.read_csv(body.encode(), separator=separator, has_header=False, infer_schema=False)[1:]
    except pl.exceptions.PolarsError:
        found = pl.DataFrame()
    empty = found.select(pl.all_horizontal(pl.all().str.strip_chars().fill_null("") == "")).to_series()
    if empty.any():  # blank lines are no rows, but separators without values are one
        kept = [_is_row(record) for _, record in _lines(path, body, separator)][1:]
        found = found.filter(pl.Series(kept)) if len(kept) == len(found) else pl.DataFrame()
    if found.width != len(header):
        _check_even(path, text, separator, len(header))
        every = [record for _, record in _records(path, text, separator)]
        found = pl.DataFrame(every[1:], schema=dict.fromkeys(header, pl.String), orient="row")
    elif found[:, -1].null_count():  # as of a row that is too short, which polars fills
        _check_even(path, text, separator, len(header))
    found.columns = header

    def place(row: int) -> str:
        records = _records(path, _text(path, path.read_bytes()), separator)
        line = next(line for number, (line, _) in enumerate(records) if number == row + 1)
        return f"line {line} of {path}"

    return Frame(path, found.select(_text_column(column) for column in found), separator, place)


def _text(path: Path, content: bytes) -> str:
    if content.startswith(b"\x1f\x8b"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, ValueError) as error:
            raise ValueError(f"{path} is a damaged gzip file: {error}") from None
    content = content.removeprefix(b"\xef\xbb\xbf")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(f"{path} is UTF-16; save it as CSV in UTF-8")
    if b"\0" in content:
        raise ValueError(f"{path} is not a table: it is neither text (CSV), gzipped text nor Parquet")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ValueError(f"line {line} of {path} is not UTF-8 text; save it as CSV in UTF-8") from None


def _separator(text: str) -> str:
    """The one of ``, ; tab |`` that the header has most of; names in quotes aside."""
    header = "".join(text.lstrip().partition("\n")[0].split('"')[::2])
    return max(",;\t|", key=header.count)


def _records(path: Path, text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The header and every row, with the line at which it begins; what is blank above the header is passed over."""
    begun = False
    for line, record in _lines(path, text, separator):
        begun = begun or any(field.strip() for field in record)
        if begun and _is_row(record):
            yield line, record


def _lines(path: Path, text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Every record, blank lines too, with the line at which it begins."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            record = next(reader, None)
        except csv.Error as error:
            raise ValueError(f"line {line} of {path}: {error}; is a quotation mark not closed?") from None
        if record is None:
            return
        yield line, record


def _is_row(record: list[str]) -> bool:
    """Whether it has separators, or a value."""
    return len(record) > 1 or any(field.strip() for field in record)


def _check_even(path: Path, text: str, separator: str, width: int) -> None:
    """Refuses the first record that is not as wide as the header."""
    for line, record in _records(path, text, separator):
        if len(record) != width:
            raise ValueError(f"line {line} of {path} has {len(record)} fields, but the header has {width}")
