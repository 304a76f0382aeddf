import math

import numpy as np
import pytest
import torch

from imm import validation

HALF = torch.float16, torch.bfloat16


@pytest.mark.parametrize(
    ("p", "message"),
    [
        (torch.tensor([[0.5, 0.5], [0.5, 0.6]]), "row 1 sums to 1.1"),
        (torch.tensor([[1.2, -0.2]]), "row 0 has the negative value -0.2"),
        (torch.tensor([[0.5, math.nan]]), "row 0 has NaN"),
        (torch.tensor([[[0.5, 0.5], [0.1, 0.1]]]), r"row \(0, 1\) sums to 0.2"),
        (torch.tensor([0.5, 0.1]), "it sums to 0.6"),
        (torch.tensor([[math.inf, 0.0]]), "sums to inf"),
        (torch.empty(0, 3), r"p is empty: shape \(0, 3\)"),
        (torch.tensor(1.0), r"p is empty: shape \(\)"),
        (torch.tensor([[1, 0]]), "floating point, got torch.int64"),
    ],
)
def test_what_is_not_probabilities_is_refused(p, message):
    with pytest.raises(ValueError, match=message) as refused:
        validation.check_probabilities(p, "p")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, *HALF])
def test_probabilities_pass_in_every_precision(dtype):
    validation.check_probabilities(torch.tensor([[0.25, 0.75], [1.0, 0.0]], dtype=dtype), "p")
    validation.check_log_probabilities(torch.tensor([[0.25, 0.75]], dtype=dtype).log())


def test_fifty_thousand_classes_pass_in_float32(generator):
    logits = 5 * torch.randn(2, 50_000, generator=generator)
    validation.check_probabilities(torch.softmax(logits, -1), "p")
    validation.check_log_probabilities(torch.log_softmax(logits, -1))
    validation.check_log_probabilities(torch.log_softmax(logits, -1).bfloat16())


@pytest.mark.parametrize(
    ("log_q", "message"),
    [
        (torch.tensor([[1.0, 2.0]]), "log_softmax, not logits"),
        (torch.tensor([[math.nan, 0.0]]), "has NaN in row 0: .* training diverged"),
        (torch.tensor([[math.inf, 0.0]]), "sums to inf"),
        (torch.empty(2, 0), r"log_q is empty: shape \(2, 0\)"),
        (torch.zeros(1, 1, dtype=torch.int64), "floating point, got torch.int64"),
    ],
)
def test_what_is_not_log_probabilities_is_refused(log_q, message):
    with pytest.raises(ValueError, match=message):
        validation.check_log_probabilities(log_q)


def test_the_row_that_is_looked_at_has_weight():
    log_q = torch.tensor([[[-math.inf, -math.inf], [0.0, -math.inf]]])
    validation.check_log_probabilities(log_q, weights=torch.tensor([[0.0, 1.0]]))
    with pytest.raises(ValueError, match="sums to 0"):
        validation.check_log_probabilities(log_q, weights=torch.tensor([[1.0, 0.5]]))


@pytest.mark.parametrize("value", [0, -1, 1.5, True, math.nan, math.inf])
def test_a_count_is_a_whole_number_from_one(value):
    with pytest.raises(ValueError, match=f"k must be a whole number of at least 1, got {value!r}"):
        validation.check_count(value, "k")


@pytest.mark.parametrize("value", [1, 7, 2.0, np.int64(3)])
def test_a_count_comes_back_as_an_int(value):
    assert validation.check_count(value, "k") == value
    assert type(validation.check_count(value, "k")) is int


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, -math.inf])
def test_what_is_negative_or_not_finite_is_refused(value):
    with pytest.raises(ValueError, match=f"lam must be finite and not negative, got {value!r}"):
        validation.check_not_negative(value, "lam")


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan])
def test_what_is_not_a_fraction_is_refused(value):
    with pytest.raises(ValueError, match=f"p must be between 0 and 1, got {value!r}"):
        validation.check_fraction(value, "p")


@pytest.mark.parametrize("value", [0, 0.5, 1])
def test_a_fraction_includes_both_ends(value):
    assert validation.check_fraction(value, "p") == value


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([[1.0, -2.0]], "got -2.0"),
        ([[1.0, math.nan]], "got nan"),
        ([[1.0, math.inf]], "got inf"),
        ([[1.0, 1.0], [0.0, 0.0]], "all zero"),
        ([], r"empty: shape \(0,\)"),
    ],
)
def test_bad_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        validation.check_weights(torch.tensor(weights), "w")


def test_different_shapes_are_both_named():
    with pytest.raises(ValueError, match=r"a and b must have the same shape, got \(2, 3\) and \(2, 4\)"):
        validation.check_same_shape(torch.ones(2, 3), torch.ones(2, 4), "a and b")
