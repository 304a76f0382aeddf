"""The honest comparison: nothing of a hidden row is used, and the error is the corrected one."""

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import log_loss, r2_score, roc_auc_score

from imm.fit import nested_cv as evaluating
from imm.fit.nested_cv import Case, Scores, compare, evaluate, how_often, judge
from imm.fit.verdict import gain_shown, helped, shown, summarise, verdict
from imm.tabular import Linear
from imm.tabular.column_types import Column
from imm.tabular.encoding import Encoding
from imm.tabular.rivals import METHODS
from imm.tabular.selection import folds
from imm.tabular.tasks import Classification, Regression


def case(n=50, seed=0, old_knows=True):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    y = (a + b + rng.logistic(size=n) > 0).astype(int)
    p = 1 / (1 + np.exp(-(a if old_knows else rng.normal(size=n))))
    values = {"a": pl.Series(a), "b": pl.Series(b), "c": pl.Series(rng.choice(["u", "v", "w"], n))}
    columns = [Column("a", "number"), Column("b", "number"), Column("c", "category")]
    old = np.stack([1 - p, p], 1)
    return Case(columns, values, y, old, ["a"], Classification(np.arange(2)), "linear", 0)


@pytest.fixture
def two_folds(monkeypatch):
    monkeypatch.setattr(Linear, "folds", lambda self, n: (2, 1))
    monkeypatch.setattr(evaluating, "how_often", lambda n, model: (2, 1))


def test_every_split_is_what_each_method_does_alone(two_folds):
    here = case()
    scores = evaluate(here, ["full-only", "old-only", "imm"], lambda done, total: None)
    (train, test), _ = folds(here.y, 2, 1, 0)
    encoding = Encoding.fit(here.columns, here.rows(train))
    rows = evaluating.Table(encoding(here.rows(train)), here.y[train], here.old[train])
    for method in scores.by:
        alone = METHODS[method](rows, here.setup(encoding))
        found = judge(alone.predict(encoding(here.rows(test)), here.old[test]), here.y[test])
        for metric, value in found.items():
            assert scores.by[method][metric][0] == pytest.approx(value, rel=1e-9)
    assert scores.lams[0] == pytest.approx(alone.strength, rel=1e-9)


def test_hidden_rows_are_not_seen(two_folds, monkeypatch):
    """Encodings are fitted, and models trained, on what a change of the hidden rows does not touch."""
    seen = []
    monkeypatch.setitem(METHODS, "spy", lambda rows, setup: seen.append(rows) or METHODS["old-only"](rows, setup))
    here = case()
    evaluate(here, ["spy"], lambda done, total: None)
    (_, test), _ = folds(here.y, 2, 1, 0)
    a, c = here.values["a"].to_numpy().copy(), here.values["c"].to_list()
    a[test] = 1e6
    changed = {**here.values, "a": pl.Series(a), "c": pl.Series(["z" if i in test else v for i, v in enumerate(c)])}
    evaluate(Case(**{**vars(here), "values": changed}), ["spy"], lambda done, total: None)
    np.testing.assert_array_equal(seen[0].x, seen[2].x)
    assert not np.array_equal(seen[1].x, seen[3].x)


def test_progress_ends_at_its_total(two_folds):
    steps = []
    evaluate(case(), ["full-only", "old-only"], lambda done, total: steps.append((done, total)))
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_metrics_are_scikit_learns():
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, 40), rng.uniform(size=40)
    found = judge(np.stack([1 - p, p], 1), y)
    assert found["log-loss"] == pytest.approx(log_loss(y, p))
    assert found["AUC"] == pytest.approx(roc_auc_score(y, p))
    assert found["accuracy"] == ((p > 0.5) == y).mean()
    assert set(judge(np.full((4, 3), 1 / 3), np.array([0, 1, 2, 0]))) == {"log-loss", "accuracy"}
    assert np.isnan(judge(np.full((4, 2), 0.5), np.zeros(4, dtype=int))["AUC"])
    values = rng.normal(size=40)
    found = judge(p[:, None], values)
    assert found["RMSE"] == pytest.approx(np.sqrt(((values - p) ** 2).mean()))
    assert found["R²"] == pytest.approx(r2_score(values, p))


def scores_of(full, imm, old=None, n_folds=5):
    by = {"full-only": full, "old-only": full if old is None else old, "imm": imm, "imm-stacking": imm}
    return Scores({name: {"log-loss": np.array(v)} for name, v in by.items()}, np.ones(len(full)), n_folds, 2)


def test_the_standard_error_is_the_corrected_one():
    rng = np.random.default_rng(0)
    full, imm = rng.uniform(0.4, 0.5, (2, 10))
    found = compare(scores_of(full, imm), "imm", "full-only")
    gain = full - imm
    plain = gain.std(ddof=1) / np.sqrt(10)
    assert found.mean == pytest.approx(gain.mean())
    assert found.standard_error == pytest.approx(plain * np.sqrt(1 + 10 / 4))  # test rows over training rows: 1/4
    assert (found.better, found.equal, found.splits) == ((gain > 0).sum(), 0, 10)


def test_equal_but_for_rounding_is_equal():
    found = compare(scores_of([0.5, 0.4], [0.5 + 1e-14, 0.3]), "imm", "full-only")
    assert (found.better, found.equal) == (1, 1)


UP, DOWN = [0.50, 0.52, 0.48, 0.51, 0.49], [0.40, 0.41, 0.39, 0.40, 0.41]


@pytest.mark.parametrize(
    ("full", "imm", "begins", "word"),
    [
        (UP, DOWN, "The old model helped: log-loss 0.402 instead of 0.500 (better in 5 of 5 splits).", "helped"),
        (DOWN, UP, "The old model did not help here: log-loss 0.500 instead of 0.402", "did not help"),
        (UP, UP[::-1], "The old model made no clear difference", "no clear difference"),
        (UP, UP, "The old model made no clear difference: log-loss 0.500 instead of 0.500 (better in 0 of 5", None),
        ([0.5, 0.5, 0.5, 0.5, 0.5], [0.48, 0.51, 0.47, 0.47, 0.5], "The old model probably helped", "probably helped"),
    ],
)
def test_the_verdict(full, imm, begins, word):
    scores = scores_of(full, imm)
    assert verdict(scores, "imm", 1.0).startswith(begins)
    assert helped(compare(scores, "imm", "full-only")) == (word or "no clear difference")


def test_the_verdict_says_more_where_there_is_more_to_say():
    assert "has λ = 0" in verdict(scores_of(UP, UP), "imm", 0.0)
    assert verdict(scores_of(UP, UP), "imm-stacking", 0.0).endswith(" The old model is kept: every prediction asks it.")
    assert "asks it, and is 25% the old model's." in verdict(scores_of(UP, UP), "imm-stacking", 0.0, 0.25)
    assert "alone is better still (log-loss 0.402)" in verdict(scores_of(UP, UP, DOWN), "imm", 1.0)


def test_figures_as_they_are_shown():
    row = summarise(scores_of(UP, DOWN))[2]
    assert (row["method"], row["runs"], row["better_splits"]) == ("imm", 5, 5)
    assert gain_shown({"gain": 0.01234, "standard_error": 0.0034}) == ("+0.0123", "0.0034")
    assert gain_shown({"gain": 1234.5, "standard_error": 210.0}) == ("+1,234", "210")
    assert gain_shown({"gain": 0.0, "standard_error": 0.0}) == ("+0.000", "0.000")
    assert [shown(v) for v in (0.4567, 123.456, 98765.4, 1.234e-5, None)] == [
        "0.457",
        "123.5",
        "98,765",
        "1.23e-05",
        "",
    ]


def test_fewer_splits_where_rows_are_many_or_training_is_slow():
    assert [how_often(n, "linear") for n in (50, 10_000)] == [(5, 2), (5, 1)]
    assert [how_often(n, "lightgbm") for n in (50, 100_000)] == [(5, 1), (3, 1)]


def test_regression_splits(two_folds):
    here = case()
    y = here.values["a"].to_numpy() + here.values["b"].to_numpy()
    values = Case(**{**vars(here), "y": y, "old": here.old[:, 1:], "task": Regression()})
    scores = evaluate(values, ["full-only", "old-only", "imm"], lambda done, total: None)
    assert scores.by["full-only"]["RMSE"].mean() < 0.5 * scores.by["old-only"]["RMSE"].mean()
