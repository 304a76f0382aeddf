import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from imm.targets import Classifier, Scores, Table
from imm.targets.base import align

X = np.array([[0.0], [1.0], [2.0], [3.0]])


@given(st.permutations(["a", "b", "c", 1, 2]), st.permutations(["a", "b", "c", 1, 2]))
def test_align_finds_each_class(classes, own):
    assert [own[place] for place in align(classes, own)] == classes


def test_align_names_what_is_missing_and_what_is_extra():
    with pytest.raises(ValueError, match=r"\[1, 2\] are not the full model's \[1, 3\] \(it lacks \[3\], and has \[2\]"):
        align([1, 3], own=[1, 2])


class TestClassifier:
    def test_probabilities_are_put_in_the_full_models_order(self):
        old = LogisticRegression().fit(X, [0, 0, 1, 1])
        expected = torch.from_numpy(old.predict_proba(X)).float()
        torch.testing.assert_close(Classifier(old)(X), expected)
        torch.testing.assert_close(Classifier(old, classes=[1, 0])(X), expected.flip(1))

    def test_numbered_columns_are_picked(self):
        old = LogisticRegression().fit(X, [0, 0, 1, 1])
        wide = np.concatenate([np.full_like(X, 99), X], 1)
        torch.testing.assert_close(Classifier(old, columns=[1])(wide), Classifier(old)(X))
        torch.testing.assert_close(Classifier(old, columns=[1])(torch.from_numpy(wide)), Classifier(old)(X))

    def test_labels_are_plain_python(self):
        assert Classifier(LogisticRegression().fit(X, np.array([0, 0, 1, 1]))).classes == (0, 1)

    def test_a_model_without_probabilities_is_refused(self):
        with pytest.raises(TypeError, match="must have predict_proba; LinearSVC has not"):
            Classifier(LinearSVC())

    def test_a_model_that_is_not_fitted_is_refused(self):
        with pytest.raises(ValueError, match="not fitted"):
            Classifier(LogisticRegression())

    def test_a_model_need_not_be_scikit_learns(self):
        class Coin:
            classes_ = ("head", "tail")

            def predict_proba(self, rows):
                return [[0.25, 0.75]] * len(rows)

        assert Classifier(Coin(), classes=["tail", "head"])(X[:1]).tolist() == [[0.75, 0.25]]

    @pytest.mark.parametrize("fitted", [{}, {"classes_": None}])
    def test_a_model_without_classes_is_refused(self, fitted):
        model = type("Coin", (), {"predict_proba": None, **fitted})()
        with pytest.raises(TypeError, match="must be fitted and have classes_; Coin has not"):
            Classifier(model)

    @pytest.mark.parametrize("columns", [["age"], [1], [0, -2]])
    def test_columns_that_an_array_has_not_are_refused(self, columns):
        old = LogisticRegression().fit(X, [0, 0, 1, 1])
        with pytest.raises(ValueError, match=r"array of shape \(4, 1\) \(names .*, got ") as refused:
            Classifier(old, columns=columns)(X)
        assert str(refused.value).endswith(f"got {columns}")

    def test_missing_named_columns_are_refused(self):
        class Frame:
            columns = ("age",)

            def __len__(self):
                return 1

        old = LogisticRegression().fit(X, [0, 0, 1, 1])
        with pytest.raises(ValueError, match=r"lack the restricted model's columns \['income'\]; they have \['age'\]"):
            Classifier(old, columns=["age", "income"])(Frame())


class TestScores:
    def test_one_column_is_the_second_class(self):
        scores = Scores([0.25, 1.0], ["a", "b"])
        assert scores(torch.tensor([1, 0, 0])).tolist() == [[0.0, 1.0], [0.75, 0.25], [0.75, 0.25]]
        assert len(scores) == 2

    def test_columns_are_put_in_the_full_models_order(self):
        scores = Scores([[0.2, 0.8]], ["a", "b"], scores_classes=["b", "a"])
        torch.testing.assert_close(scores(torch.tensor([0])), torch.tensor([[0.8, 0.2]]))

    def test_a_series_that_cannot_be_written_to_is_copied(self):
        series = np.array([0.25, 1.0], dtype=np.float32)  # float32: nothing else would copy it
        series.flags.writeable = False
        assert Scores(series, ["a", "b"])(torch.tensor([0])).tolist() == [[0.75, 0.25]]

    @pytest.mark.parametrize("row", [2, -1])
    def test_a_row_without_score_is_refused(self, row):
        with pytest.raises(ValueError, match=f"row {row} has no score: there are 2"):
            Scores([0.25, 0.5], ["a", "b"])(torch.tensor([0, row]))

    @pytest.mark.parametrize(
        ("scores", "message"),
        [
            ([0.5, 1.2], "scores must be between 0 and 1, got 1.2 in row 1"),
            ([-0.25], "scores must be between 0 and 1, got -0.25 in row 0"),
            ([0.5, math.nan], "row 1 has NaN"),
            ([[0.5, 0.4]], "row 0 sums to 0.9"),
            ([[0.2, 0.3, 0.5]], r"got shape \(1, 3\)"),
            (0.5, r"got shape \(\)"),
        ],
    )
    def test_what_is_no_score_is_refused(self, scores, message):
        with pytest.raises(ValueError, match=message):
            Scores(scores, ["a", "b"])


class TestTable:
    def test_keys_may_come_as_a_tensor(self):
        table = Table({5: [0.1, 0.9], 3: [0.6, 0.4]}, [0, 1])
        torch.testing.assert_close(table(torch.tensor([3, 5])), torch.tensor([[0.6, 0.4], [0.1, 0.9]]))

    def test_an_unknown_key_is_shown(self):
        with pytest.raises(ValueError, match=r"short context 'z' is not in the table"):
            Table({"x": [0.1, 0.9]}, [0, 1])(["x", "z"])

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            ({"x": [0.5, 0.5], "y": [0.5, 0.6]}, "row 'y' must be probabilities; it sums to 1.1"),
            ({"x": [0.5, 0.5], "y": [1.0]}, r"row 'y' must have 2 probabilities, got shape \(1,\)"),
            ({"x": [[0.5, 0.5]]}, r"row 'x' must have 2 probabilities, got shape \(1, 2\)"),
            ({}, "rows is empty"),
        ],
    )
    def test_bad_rows_are_refused(self, rows, message):
        with pytest.raises(ValueError, match=message):
            Table(rows, [0, 1])
