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

    @pytest.mark.parametrize("row", [2, -1])
    def test_a_row_without_score_is_refused(self, row):
        with pytest.raises(ValueError, match=f"row {row} has no score: there are 2"):
            Scores([0.25, 0.5], ["a", "b"])(torch.tensor([0, row]))

    @pytest.mark.parametrize(
        ("scores", "message"),
        [
            ([0.5, 1.2], "row 1 has the negative value -0.2"),
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
            ({"x": [0.5, 0.6]}, "row 0 sums to 1.1"),
            ({"x": [0.5, 0.5], "y": [1.0]}, r"row 'y' must have 2 probabilities, got shape \(1,\)"),
            ({"x": [[0.5, 0.5]]}, r"row 'x' must have 2 probabilities, got shape \(1, 2\)"),
            ({}, "rows is empty"),
        ],
    )
    def test_bad_rows_are_refused(self, rows, message):
        with pytest.raises(ValueError, match=message):
            Table(rows, [0, 1])
