import re

import numpy as np
import pytest

from imm.fit.nested_cv import Scores
from imm.fit.verdict import summarise
from imm.report.fit_figure import draw_comparison
from imm.report.fit_page import write_fit_page


def record(gain=0.05, **changes):
    rng = np.random.default_rng(0)
    full = rng.uniform(0.45, 0.5, 10)
    by = {"full-only": full, "old-only": full + 0.3, "imm": full - gain + rng.normal(0, 0.01, 10)}
    scores = Scores({name: {"log-loss": v, "accuracy": 1 - v} for name, v in by.items()}, np.ones(10), 5, 2)
    return {
        "title": "Does the old model help to predict <y>?",
        "settings": {"model": "linear", "keep_old": False, "old_score": None},
        "verdict": "The old model helped.",
        "helped": "helped",
        "method": "imm",
        "task": "classification",
        "classes": ["no", "yes"],
        "n": 1234,
        "folds": 5,
        "repeats": 2,
        "lam": 3.0,
        "l2": 1.0,
        "share": 0.0,
        "lams_in_splits": [1.0, 3.0],
        "old": "a linear model",
        "short": ["age"],
        "distance": {"without": 0.0123, "with_imm": 0.0045},
        "rows": summarise(scores),
        "splits": {m: {k: list(v) for k, v in s.items()} for m, s in scores.by.items()},
        "columns": [
            {"column": "<b>age</b>", "role": "short", "treatment": "number"},
            {"column": "id", "role": "left out", "treatment": "an identifier"},
        ],
        "notes": ["something to know"],
        "seconds": 1.0,
        "versions": {"imm": "0"},
    } | changes


@pytest.fixture
def page(tmp_path):
    write_fit_page(record(), tmp_path / "p.html", tmp_path / "out")
    return (tmp_path / "p.html").read_text()


def test_the_page_says_what_was_found(page):
    for text in ("The old model helped.", "1,234", "0.0123", "0.0045", "something to know", "imm predict", "no, yes"):
        assert text in page
    assert re.search(r"with the old model \(IMM\)</td><td class=\"n\">0\.\d{3}</td>", page)


def test_the_page_needs_nothing_else_and_names_cannot_run(page):
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    assert "<b>age" not in page
    assert "&lt;b&gt;age" in page
    assert "<script" not in page


def test_the_distance_of_a_regression_is_a_root(tmp_path):
    write_fit_page(record(task="regression", classes=None), tmp_path / "p.html", tmp_path)
    assert f"{0.0123**0.5:.4g}" in (tmp_path / "p.html").read_text()


def test_far_away_methods_are_arrows_so_that_others_can_be_told_apart():
    left, right = draw_comparison(record()).axes
    assert [text.get_text() for text in left.get_yticklabels()] == [
        "new rows only",
        "old model only",
        "with the old model (IMM)",
    ]
    (arrow,) = right.texts
    assert arrow.get_text().startswith("-0.30")
    low, high = right.get_xlim()
    assert high < 0.15
    assert low == -high
