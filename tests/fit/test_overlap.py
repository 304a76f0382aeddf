"""Rows that are in both tables, and such that only look the same."""

import numpy as np
import polars as pl
import pytest

from imm.fit.label import Label
from imm.fit.overlap import rows_in_both
from imm.fit.table_file import read_table
from imm.tabular.column_types import find_kinds

LABEL = Label("y", ("0", "1"))


def rows(n, seed, values):
    """``values`` different numbers in column ``a``; some are missing."""
    rng = np.random.default_rng(seed)
    a = pl.Series("a", rng.integers(values, size=n)).cast(pl.String)
    return pl.DataFrame({"a": a.set(pl.Series(rng.random(n) < 0.1), None), "y": rng.integers(2, size=n)})


def count(tmp_path, new, old):
    frames = []
    for name, table in (("new.csv", new), ("old.csv", old)):
        table.write_csv(tmp_path / name)
        frames.append(read_table(tmp_path / name))
    kinds = [find_kinds(frame, ["a"]) for frame in frames]
    return rows_in_both(frames[0], kinds[0], frames[1], kinds[1], LABEL)


@pytest.mark.parametrize("values", [5, 200, 1_000_000])
def test_chance_is_not_said(tmp_path, values, seed):
    assert count(tmp_path, rows(100, seed, values), rows(1000, seed + 1, values)) == 0


@pytest.mark.parametrize("written", ["{}", "{}.0"])
def test_some_of_the_rows_in_both(tmp_path, written, seed):
    new = rows(100, seed, 1_000_000).drop_nulls()
    both = new[:40].with_columns(a=pl.Series([written.format(a) for a in new["a"][:40]]))
    assert count(tmp_path, new, pl.concat([rows(1000, seed + 1, 1_000_000), both])) == 40
