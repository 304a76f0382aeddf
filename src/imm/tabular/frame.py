"""A table of a file, whose rows an error message can point to."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl


@dataclass(frozen=True)
class Frame:
    """A table that was read.

    Attributes:
        path: where from.
        columns: text (all of a CSV file), numbers (Float64) or times (Datetime); missing values are null.
        separator: of a CSV file; None for Parquet.
        line: says where a person finds a row in a text file.
    """

    path: Path
    columns: pl.DataFrame
    separator: str | None = None
    line: Callable[[int], str] | None = None

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return self.columns.columns

    def __len__(self) -> int:
        return self.columns.height

    def place(self, row: int) -> str:
        """Says where a person finds a row: ``line 17 of new.csv``."""
        return f"row {row + 1} of {self.path}" if self.line is None else self.line(row)
