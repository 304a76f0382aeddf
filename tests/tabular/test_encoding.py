"""What columns are taken to be, and the numbers they become."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from imm.fit.table_file import Frame, read_table
from imm.tabular.column_types import as_numbers, find_kinds
from imm.tabular.encoding import MOST, Encoding, typed

N = 60


def frame(**columns):
    table = pl.DataFrame({name: pl.Series(values, strict=False) for name, values in columns.items()})
    return Frame(Path("t.parquet"), table.with_columns(pl.col(pl.Int64).cast(pl.Float64)))


def kind(name="c", **columns):
    (column,) = find_kinds(frame(**columns), [name])
    return column


def encoded(train, test=None):
    """Fitted on one list of values, applied to another."""
    column = kind(c=train)
    table = {name: typed(frame(c=values), [column]) for name, values in (("train", train), ("test", test or train))}
    encoding = Encoding.fit([column], table["train"])
    return encoding, encoding(table["test"])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([str(i / 2) for i in range(N)], "number"),
        (["3"] * 30 + [None] * 30, "number"),
        ([f"1e{i % 5}" for i in range(N)], "number"),
        (["yes", "no"] * 30, "category"),
        (["1", "2", "X"] * 20, "category"),
        ([f"2024-{1 + i % 12:02}-05" for i in range(N)], "date"),
        ([f"{1 + i % 28}.{1 + i % 12}.2023" for i in range(N)], "date"),
        ([f"2024-01-{1 + i % 28:02}T10:{i:02}:00Z" for i in range(N)], "date"),
        ([f"2024-01-{1 + i % 28:02}T10:{i:02}:00+0{i % 2}:00" for i in range(N)], "date"),
        ([f"2024-01-{1 + i % 28:02} 10:{i:02}:00.25 -0500" for i in range(N)], "date"),
        ([None] * N, "left out"),
        (["x"] * N, "left out"),
        ([f"name {i}" for i in range(N)], "left out"),
        ([str(100 + i) for i in range(N)], "left out"),  # consecutive: they number the rows
    ],
)
def test_kinds(values, expected):
    assert kind(c=pl.Series(values, dtype=pl.String)).kind == expected


def test_identifiers_are_known_by_their_names():
    values = [str(7 * i + i % 3) for i in range(N)]
    assert {name: kind(name, **{name: values}).kind for name in ("customer_id", "userId", "paid", "income")} == {
        "customer_id": "left out",
        "userId": "left out",
        "paid": "number",
        "income": "number",
    }


def test_day_and_month_are_told_apart_where_the_dates_allow_it():
    day_first = [f"{1 + i % 28:02}/{1 + i % 12:02}/2023" for i in range(N)]
    assert kind(c=day_first).format == "%d/%m/%Y"
    assert not kind(c=day_first).note
    either = [f"{1 + i % 12:02}/{1 + i % 11:02}/2023" for i in range(N)]
    assert kind(c=either).format == "%m/%d/%Y"
    assert "read as month/day/year" in kind(c=either).note


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([str(i + 0.5) for i in range(40)] + ["abc"], "holds numbers, but row 41 of t.parquet has 'abc'"),
        ([f"2024-01-{1 + i % 28:02}" for i in range(40)] + ["soon"], "holds dates, but row 41 of t.parquet has 'soon'"),
        (["inf"] + [str(i) for i in range(N)], "infinite"),
    ],
)
def test_mixed_columns_are_refused_with_the_row(values, message):
    with pytest.raises(ValueError, match=message):
        kind(c=values)


def test_a_comma_is_a_point_where_semicolons_separate():
    table = frame(c=[f"{i},5" for i in range(N)])
    assert find_kinds(table, ["c"])[0].kind == "left out"
    (column,) = find_kinds(replace(table, separator=";"), ["c"])
    assert column.kind == "number"
    assert typed(replace(table, separator=";"), [column])["c"].to_list() == [i + 0.5 for i in range(N)]


def test_thousands_in_a_file_with_commas(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('c,d\n"12,345",a\n"-1,234,567.5",b\n999,\n,c\n')
    (column,) = find_kinds(read_table(path), ["c"])
    assert column.kind == "number"
    assert typed(read_table(path), [column])["c"].to_list() == [12345, -1234567.5, 999, None]
    path.write_text('c,d\n"12,34",a\n"1,2345",b\n"12,34",b\n"12,34",b\n')  # a list, or a code
    assert find_kinds(read_table(path), ["c"])[0].kind == "category"


def test_numbers_missing_is_the_median_and_marked():
    encoding, x = encoded([1.0, 2.0, 9.0, None, None, None], [5.0, None])
    assert encoding.features() == ["c", "c missing"]
    np.testing.assert_array_equal(x, [[5, 0], [2, 1]])
    encoding, x = encoded([1.0, 2.0, 9.0, None], [5.0, None])  # one row teaches nothing
    np.testing.assert_array_equal(x, [[5], [2]])


def test_categories_are_one_feature_each():
    train = ["a"] * 5 + ["b"] * 4 + ["c"] * 3 + ["d", "e", "f"] + [None] * 3
    encoding, x = encoded(train, ["b", "d", "unseen", None])
    assert encoding.features() == ["c = a", "c = b", "c = c", "c = (rare)", "c = (missing)"]
    np.testing.assert_array_equal(x, [[0, 1, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]])


def test_a_category_that_was_never_seen_speaks_for_nothing():
    _, x = encoded(["a"] * 6 + ["b"] * 3 + ["c"] * 3, ["new", None])
    np.testing.assert_allclose(x, [[0.5, 0.25, 0.25]] * 2)


def test_two_categories_are_one_feature():
    encoding, x = encoded(["yes"] * 3 + ["no"] * 4, ["no", "yes"])
    assert encoding.features() == ["c = yes"]
    np.testing.assert_array_equal(x, [[0], [1]])


def test_of_very_many_categories_the_most_frequent_are_kept():
    train = [f"v{i}" for i in range(50) for _ in range(3 + (i == 49))]
    encoding, x = encoded(train)
    assert x.shape[1] == MOST + 1
    assert encoding.features()[0] == "c = v49"
    assert x[:, -1].sum() == 3 * (50 - MOST)


def test_dates_are_days_and_go_round():
    train = pl.Series([f"2023-{1 + i % 12:02}-15 {i % 24:02}:00" for i in range(N)])
    encoding, x = encoded(train.to_list(), ["1970-01-02 06:00", None])
    assert encoding.features() == [
        "c days",
        *(f"c {part} of {cycle}" for cycle in ("year", "week", "day") for part in ("sine", "cosine")),
    ]
    year = 2 * np.pi * 1.25 / 365.2425
    np.testing.assert_allclose(x[0, :3], [1.25, np.sin(year), np.cos(year)])
    np.testing.assert_allclose(x[0, 5:], [1, 0], atol=1e-12)  # six in the morning
    np.testing.assert_array_equal(x[1, 1:], 0)
    assert 19300 < x[1, 0] < 19700


def test_a_fitted_encoding_comes_back_from_json():
    table = frame(
        n=[1.0, None, 3.0] * 20,
        c=["a", "b", None] * 20,
        d=[f"2023-{1 + i % 12:02}-15" for i in range(N)],
    )
    columns = find_kinds(table, table.names)
    values = typed(table, columns)
    encoding = Encoding.fit(columns, values)
    again = Encoding.from_record(json.loads(json.dumps(encoding.record())))
    assert again == encoding
    np.testing.assert_array_equal(again(values), encoding(values))
    np.testing.assert_array_equal(
        encoding.of(["c"]), [False, False, True, True, True, False, False, False, False, False]
    )
    assert all(code.words() for code in encoding.codes)


def test_wrong_types_are_refused_where_they_are():
    number, date = kind(c=["1.5", "2"] * 20), kind(c=[f"2023-{1 + i % 12:02}-15" for i in range(N)])
    with pytest.raises(ValueError, match=r"column 'c': 'x' in row 2 of t\.parquet is not a number"):
        typed(frame(c=["1", "x"]), [number])
    with pytest.raises(ValueError, match=r"'03.04.2024' in row 1 of t\.parquet is not a date as in %Y-%m-%d"):
        typed(frame(c=["03.04.2024"]), [date])
    with pytest.raises(ValueError, match="must hold dates, but holds Float64"):
        typed(frame(c=[1.0]), [date])


def test_whole_numbers_are_the_same_category_from_either_kind_of_file():
    column = kind(c=["1", "2", "X"] * 20)
    assert typed(frame(c=[1.0, 2.5]), [column])["c"].to_list() == ["1", "2.5"]


def test_no_number_in_capitals_is_missing(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n" + "\n".join(["1.5", "2.5", "NAN", "-nan"] * 10) + "\n")
    assert read_table(path).columns["a"].null_count() == 20
    with pytest.raises(ValueError, match=r"column 'a': '\+nan' in row 3 .* is not a number"):
        as_numbers(frame(a=["1.5", "2.5", "+nan"]), "a")


def test_years_of_two_digits_are_no_dates():
    assert kind(c=[f"0{1 + i % 9}.02.24" for i in range(40)]).kind != "date"
    assert kind(c=[f"0{1 + i % 9}.02.2024" for i in range(40)]).kind == "date"
