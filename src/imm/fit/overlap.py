"""Rows that stand in the new and the old table: an old model that has seen them cannot be judged on them."""

from collections.abc import Sequence

import polars as pl

from imm.fit.label import Label
from imm.tabular.column_types import Column
from imm.tabular.encoding import typed
from imm.tabular.frame import Frame

CHANCE = 0.05
"""What part of the new rows may have a twin beyond what is expected before it is said."""


def rows_in_both(
    new: Frame, new_columns: Sequence[Column], old: Frame, old_columns: Sequence[Column], label: Label
) -> int:
    """How many new rows have a twin among the old ones, of the same label and shared columns; 0 if by chance.

    Where columns take few values, different rows are the same in them. How often that is so the old rows tell, of which
    as many have a twin among themselves.

    Args:
        new: the new rows.
        new_columns: the shared columns, as they are there.
        old: the old rows.
        old_columns: the same columns, as they are here.
        label: of both.
    """
    ours, theirs = _keys(new, new_columns, label), _keys(old, old_columns, label)
    twins = int(ours.is_in(theirs).sum())
    expected = float(theirs.is_duplicated().mean() or 0) * len(ours)  # type: ignore[arg-type]
    return twins if twins > expected + 3 * expected**0.5 + CHANCE * len(ours) else 0


def _keys(frame: Frame, columns: Sequence[Column], label: Label) -> pl.Series:
    """A number for each row, the same for rows that are the same."""
    values = typed(frame, columns)
    table = pl.DataFrame([label.of(frame), *(values[name] for name in sorted(values))])
    return table.hash_rows(0)
