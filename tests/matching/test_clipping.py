import math

import pytest
import torch
from torch import nn

from imm.matching import clipped_apart


@pytest.fixture
def weights():
    a, b = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))
    (a.sum() * 30).backward()
    return a, b


def test_each_gradient_is_clipped_by_its_own_norm(weights):
    """Clipping the sum would give another direction: the larger loss would drown the smaller one."""
    a, b = weights
    with clipped_apart(weights, max_norm=1.0):
        (a[0] * 300 + b[0] * 400).backward()
    torch.testing.assert_close(a.grad, torch.tensor([30.6, 30.0]))
    torch.testing.assert_close(b.grad, torch.tensor([0.8]))


def test_a_small_gradient_is_added_as_it_is(weights):
    a, b = weights
    with clipped_apart(iter(weights), max_norm=1.0):
        (a[1] * 0.5).backward()
    torch.testing.assert_close(a.grad, torch.tensor([30.0, 30.5]))
    assert b.grad is None


def test_nothing_inside_changes_nothing(weights):
    before = weights[0].grad.clone()
    with clipped_apart(weights, max_norm=1.0):
        pass
    assert torch.equal(weights[0].grad, before)


def test_gradients_accumulate_inside(weights):
    a, _ = weights
    with clipped_apart(weights, max_norm=1.0):
        (a[0] * 0.25).backward()
        (a[0] * 0.25).backward()
    torch.testing.assert_close(a.grad, torch.tensor([30.5, 30.0]))


def test_an_exception_inside_leaves_the_gradients_from_before(weights):
    a, b = weights
    before = a.grad.clone()

    def fails_midway():
        with clipped_apart(weights, max_norm=1.0):
            (a[0] * 300 + b[0]).backward()
            raise RuntimeError("replay")

    with pytest.raises(RuntimeError, match="replay"):
        fails_midway()
    assert torch.equal(a.grad, before)
    assert b.grad is None


@pytest.mark.parametrize("max_norm", [-1.0, math.nan])
def test_a_bad_norm_is_refused(weights, max_norm):
    with (
        pytest.raises(ValueError, match=f"max_norm must be finite and not negative, got {max_norm}"),
        clipped_apart(weights, max_norm),
    ):
        pass
