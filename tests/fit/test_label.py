from pathlib import Path

import polars as pl
import pytest

from imm.fit.label import find_label
from imm.fit.table_file import Frame


def frame(values):
    return Frame(Path("t.parquet"), pl.DataFrame({"y": pl.Series(values, strict=False)}))


@pytest.mark.parametrize(
    ("values", "task", "classes"),
    [
        (["no", "yes"] * 20, None, ("no", "yes")),
        (["1.0", "0"] * 20, None, ("0", "1")),
        ([1.0, 0.0] * 20, None, ("0", "1")),
        (["10", "9", "2"] * 20, None, ("2", "9", "10")),
        (["0.5", "1.5"] * 20, None, ("0.5", "1.5")),
        ([str(i % 12) for i in range(60)], "classification", tuple(map(str, range(12)))),
        ([str(i / 7) for i in range(60)], "regression", None),
        (["0", "1"] * 20, "regression", None),
    ],
)
def test_what_a_label_is(values, task, classes):
    assert find_label(frame(values), "y", task).classes == classes


def test_numbers_and_their_classes():
    label = find_label(frame(["b", "a"] * 20), "y", None)
    assert label.of(frame(["a", "b", "c"])).tolist() == [0, 1, -1]
    assert find_label(frame(["1", "2.5"] * 20), "y", "regression").of(frame(["7"])).tolist() == [7.0]


@pytest.mark.parametrize(
    ("values", "task", "message"),
    [
        ([str(i / 7) for i in range(60)], None, "looks continuous .60 different numbers.: give --task regression"),
        ([str(i % 12) for i in range(60)], None, "looks continuous .12 different numbers."),
        (["a"] * 30, None, "label 'y' is 'a' in every row"),
        (["a", "b"] * 5, None, "has 10 rows; at least 20 are needed"),
        ([f"n{i}" for i in range(30)], None, "has 30 different values in 30 rows"),
        (["a"] * 29 + ["b"], None, "label 'y' is 'b' in one row only"),
        (["a", "b", None] * 20, None, "label 'y' is missing in 20 rows, first in row 3 of t.parquet"),
        (["a", "b"] * 20, "regression", "'a' in row 1 of t.parquet is not a number"),
    ],
)
def test_what_cannot_be_learned_is_refused(values, task, message):
    with pytest.raises(ValueError, match=message):
        find_label(frame(values), "y", task)


def test_a_wrong_name_is_answered_with_those_there_are():
    with pytest.raises(ValueError, match=r"no column 'z' \(--label\); it has y"):
        find_label(frame(["a", "b"] * 20), "z", None)


@pytest.mark.parametrize(
    ("classes", "given", "positive"),
    [(("0", "1"), None, 1), (("no", "yes"), None, 1), (("TRUE", "false"), None, 0), (("bad", "good"), "bad", 0)],
)
def test_the_positive_class(classes, given, positive):
    assert find_label(frame(list(classes) * 20), "y", None).positive(given) == positive


@pytest.mark.parametrize(
    ("classes", "given", "message"),
    [
        (("bad", "good"), None, "Give --positive good or --positive bad"),
        (("bad", "good"), "Good", "--positive is 'Good', but the classes are 'bad' and 'good'"),
        (("a", "b", "c"), None, "needs a label with two classes, but 'y' has 3"),
    ],
)
def test_a_positive_class_that_is_not_plain(classes, given, message):
    with pytest.raises(ValueError, match=message):
        find_label(frame(list(classes) * 20), "y", None).positive(given)
