import gzip
import re
from pathlib import Path

import polars as pl
import pytest

from imm.fit.table_file import read_table


def write(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


PLAIN = "a,b\n1,x\n2,\n"


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        gzip.compress(PLAIN.encode(), mtime=0),
        b"\xef\xbb\xbf" + PLAIN.encode(),
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", "\t"),
        "\n , \na, b\n\n1 , x\n  \n2,NA\n\n",
        '"a","b"\n"1","x"\n"2",""\n',
    ],
)
def test_forms_of_the_same_table(tmp_path, content):
    frame = read_table(write(tmp_path, content))
    assert frame.names == ["a", "b"]
    assert frame.columns.rows() == [("1", "x"), ("2", None)]


def test_parquet_keeps_its_types(tmp_path):
    path = tmp_path / "t.bin"  # what is in it decides, not the name
    table = pl.DataFrame(
        {"i": [1, None], "f": [0.5, float("nan")], "t": [True, False], "s": ["x", "NA"], "d": [None, "2024-02-03"]}
    ).with_columns(pl.col("d").str.to_date(), pl.col("s").cast(pl.Categorical))
    table.write_parquet(path)
    frame = read_table(path)
    assert frame.columns.dtypes == [pl.Float64, pl.Float64, pl.String, pl.String, pl.Datetime("us")]
    assert frame.columns["f"].to_list() == [0.5, None]
    assert frame.columns["t"].to_list() == ["true", "false"]
    assert frame.columns["s"].to_list() == ["x", None]
    assert frame.place(1) == f"row 2 of {path}"


def test_a_row_is_found_in_the_file_even_after_quoted_and_blank_lines(tmp_path):
    path = write(tmp_path, 'a,b\n"1\n1",x\n\n2,y\n')
    assert read_table(path).place(1) == f"line 5 of {path}"


def test_a_quotation_mark_inside_a_field_is_text(tmp_path):
    assert read_table(write(tmp_path, 'a,b\n1,5" pipe\n')).columns.rows() == [("1", '5" pipe')]


@pytest.mark.parametrize("row", [",", " , ", '"",""'])
@pytest.mark.parametrize("blank", ["", "\n", " \n"])
def test_a_row_without_any_value_is_a_row(tmp_path, row, blank):
    path = write(tmp_path, f"{blank}a,b\n1,2\n{blank}{row}\n3,4\n")
    assert read_table(path).columns.rows() == [("1", "2"), (None, None), ("3", "4")]
    assert read_table(path).place(1) == f"line {3 + 2 * bool(blank)} of {path}"


def test_a_header_without_a_name_gets_one(tmp_path):
    assert read_table(write(tmp_path, ",b\n0,3\n")).names == ["column 1", "b"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        (" ,\n,\n", "is empty"),
        ('""\n""\n', "is empty"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (gzip.compress(b" \n\n", mtime=0), "is empty"),
        ("a,b\n", "has column names, but no rows"),
        ("a,b\n1,2\n3\n", "line 3 of"),
        ("a,b\n1,2\n3\n", "has 1 fields, but the header has 2"),
        ("a,b\n1,2\n3,4,5\n", "line 3 of"),
        ("a,b,a\n1,2,3\n", "has the column 'a' twice"),
        ('a,b\n1,"2\n3,4\n', "is a quotation mark not closed?"),
        ('a,"b\n1,2\n', "is a quotation mark not closed?"),
        (b"a,b\n1,2\n3,\xff\n", "line 3 of"),
        ("a,b\n1,2\n".encode("utf-16"), "is UTF-16"),
        (bytes(range(256)) * 8, "is not a table"),
        (gzip.compress(PLAIN.encode(), mtime=0)[:-6], "is a damaged gzip file"),
        (b"PAR1 nonsense", "is not a readable Parquet file"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, content, message):
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        read_table(write(tmp_path, content))
    assert "\n" not in str(error.value)
    assert "t.csv" in str(error.value)


def test_lists_in_parquet_are_refused(tmp_path):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"a": [[1, 2], [3]]}).write_parquet(path)
    with pytest.raises(ValueError, match=r"column 'a' of .* holds List"):
        read_table(path)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file nowhere\.csv"):
        read_table(Path("nowhere.csv"))
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_table(tmp_path)
