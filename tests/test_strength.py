import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from imm import strength


@given(st.floats(0, 1e6))
def test_lam_survives_the_way_there_and_back(lam):
    assert strength.ratio_to_lam(strength.lam_to_ratio(lam)) == pytest.approx(lam, rel=1e-9, abs=1e-12)


@given(st.floats(0, 0.999))
def test_ratio_survives_the_way_there_and_back(ratio):
    assert strength.lam_to_ratio(strength.ratio_to_lam(ratio)) == pytest.approx(ratio, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("ratio", [1.0, -0.1, 2.0, math.nan])
def test_a_ratio_outside_zero_to_one_is_refused(ratio):
    with pytest.raises(ValueError, match=f"ratio must be at least 0 and below 1, got {ratio!r}"):
        strength.ratio_to_lam(ratio)
    with pytest.raises(ValueError, match=f"got {ratio!r}"):
        strength.constant(ratio)


def test_negative_lam_is_refused():
    with pytest.raises(ValueError, match="lam must be finite and not negative, got -1"):
        strength.lam_to_ratio(-1)


def test_the_fitted_line_is_the_papers():
    """Appendix lambda: ratios 0.8, 0.7 and 0.6 at n = 2, 10 and 20."""
    fit = strength.Linear.fitted([2, 10, 20], [0.8, 0.7, 0.6])
    assert fit.slope == pytest.approx(-0.0111, abs=5e-5)
    assert fit.intercept == pytest.approx(0.818, abs=5e-4)
    assert pytest.approx((fit.slope, fit.intercept), abs=5e-4) == (strength.PAPER.slope, strength.PAPER.intercept)


def test_the_line_stops_at_zero():
    assert strength.PAPER.ratio(50) == pytest.approx(0.263)
    assert strength.PAPER.ratio(100) == 0.0
    assert strength.PAPER.lam(100) == 0.0
    assert strength.PAPER.lam(10) == pytest.approx(0.707 / 0.293)


def test_constant_is_the_same_everywhere():
    assert {strength.constant(0.7).ratio(n) for n in (1, 10, 1000)} == {0.7}


@pytest.mark.parametrize(("sizes", "ratios"), [([2], [0.8]), ([2, 2], [0.8, 0.7]), ([2, 10], [0.8])])
def test_a_line_through_one_point_is_refused(sizes, ratios):
    with pytest.raises(ValueError, match="two different sizes"):
        strength.Linear.fitted(sizes, ratios)


@pytest.mark.parametrize(("slope", "intercept"), [(math.nan, 0.5), (0.1, math.inf)])
def test_a_line_that_is_not_finite_is_refused(slope, intercept):
    with pytest.raises(ValueError, match=f"slope and intercept must be finite, got {slope} and {intercept}"):
        strength.Linear(slope, intercept)


@pytest.mark.parametrize(
    ("sizes", "ratios", "message"),
    [
        ([1, math.inf], [0.5, 0.4], r"sizes must be finite, got \[1, inf\]"),
        ([1, 2], [math.nan, 0.5], "ratio must be at least 0 and below 1, got nan"),
        ([1, 2], [0.5, 1.0], "got 1.0"),
        ([1, 2], [0.5, -0.2], "got -0.2"),
    ],
)
def test_a_line_through_what_is_no_ratio_is_refused(sizes, ratios, message):
    with pytest.raises(ValueError, match=message):
        strength.Linear.fitted(sizes, ratios)


@pytest.mark.parametrize(("n", "ratio"), [(100, "10.5"), (5, "1.0"), (math.nan, "nan")])
def test_a_line_at_or_above_one_is_refused(n, ratio):
    with pytest.raises(ValueError, match=f"ratio must be below 1, but Linear.* gives {ratio} at n = {n}"):
        strength.Linear(0.1, 0.5).ratio(n)


LABELS = np.array([0, 1] * 20)
LAMS = [4.0, 0.0, 1.0, 0.5]


def test_lam_is_zero_when_the_old_model_harms(seed):
    noise = np.random.default_rng(seed)
    choice = strength.choose_lam(lambda lam, *_: 1 + lam + noise.normal(0, 0.01), LABELS, LAMS)
    assert choice.lam == 0
    assert choice.lams == (0.0, 0.5, 1.0, 4.0)


def test_lam_is_the_best_when_the_old_model_helps(seed):
    noise = np.random.default_rng(seed)
    choice = strength.choose_lam(lambda lam, *_: (lam - 1) ** 2 + noise.normal(0, 0.01), LABELS, LAMS)
    assert choice.lam == 1.0
    assert choice.mean.argmin() == 2
    assert choice.standard_error[2] == 0


def test_the_smallest_lam_within_one_standard_error_is_taken():
    """Losses by fold: λ = 1 is better on average by 0.1, but with a standard error of the difference above that."""
    fold = iter(range(10**6))
    losses = {0.0: lambda: 1.0, 1.0: lambda: 0.9 + (1 if next(fold) % 2 else -1)}
    assert strength.choose_lam(lambda lam, *_: losses[lam](), LABELS, [0.0, 1.0]).lam == 0.0
    losses[1.0] = lambda: 0.9 + (0.1 if next(fold) % 2 else -0.1)
    assert strength.choose_lam(lambda lam, *_: losses[lam](), LABELS, [0.0, 1.0]).lam == 1.0


def test_every_candidate_sees_the_same_stratified_folds():
    seen = {0.0: [], 1.0: []}

    def loss(lam, train, test):
        seen[lam].append((tuple(train), tuple(test)))
        assert not set(train) & set(test)
        assert LABELS[test].mean() == 0.5
        return lam

    strength.choose_lam(loss, LABELS, [0.0, 1.0], n_splits=4, n_repeats=3, seed=1)
    assert seen[0.0] == seen[1.0]
    assert len(seen[0.0]) == 12
    assert seen[0.0][:4] != seen[0.0][4:8]


def test_a_rare_class_lowers_the_number_of_folds():
    calls = []
    strength.choose_lam(lambda *given: calls.append(given) or 1.0, [0] * 8 + [1] * 3, [1.0], n_splits=5, n_repeats=2)
    assert len(calls) == 3 * 2


@pytest.mark.parametrize(
    ("labels", "lams", "message"),
    [
        ([0, 0, 1, 1], [], "lams is empty"),
        ([0, 0, 0, 1], [1.0], "the rarest has 1"),
        ([0, 0, 1, 1], [0.0, -2.0], "got -2.0"),
    ],
)
def test_what_cannot_be_chosen_from_is_refused(labels, lams, message):
    with pytest.raises(ValueError, match=message):
        strength.choose_lam(lambda *_: 1.0, labels, lams)


def test_a_loss_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match=r"loss at lam 1\.0 is nan"):
        strength.choose_lam(lambda lam, *_: math.nan if lam else 1.0, LABELS, [0.0, 1.0])
