import numpy as np
import pytest
import torch

from imm.inducers import Belief


def test_every_gives_the_rows_of_the_table(generator):
    table = torch.softmax(torch.randn(4, 3, generator=generator), -1)
    short = torch.tensor([2, 0, 2])
    contexts = Belief(table).every(short)
    assert torch.equal(contexts.weights, table[short])
    assert contexts.index.tolist() == [[0, 1, 2]] * 3


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (torch.tensor([[0.5, 0.6]]), "row 0 sums to 1.1"),
        (torch.tensor([0.5, 0.5]), r"must be \[n_short, n_extended\], got shape \(2,\)"),
        (torch.tensor([[1.5, -0.5]]), "negative value -0.5"),
    ],
)
def test_what_is_no_distribution_is_refused(table, message):
    with pytest.raises(ValueError, match=message):
        Belief(table)


def test_arrays_and_lists_are_taken():
    table = [[0.5, 0.5], [0.25, 0.75]]
    for belief in (Belief(table), Belief(np.array(table)), Belief(torch.tensor(table))):
        for short in ([1], np.array([1], dtype=np.uint16), torch.tensor([1])):
            assert belief.every(short).weights.tolist() == [[0.25, 0.75]]
            assert belief.draw(short, 3).index.shape == (1, 3)


@pytest.mark.parametrize(
    ("short", "message"),
    [
        ([[0, 1]], r"short must be integers \[n\], got torch.int64 of shape \(1, 2\)"),
        ([0.0, 1.0], r"got torch.float64 of shape \(2,\)"),
        ([True, False], r"got torch.bool of shape \(2,\)"),
    ],
)
def test_a_batch_that_is_not_row_numbers_is_refused(short, message):
    with pytest.raises(ValueError, match=message):
        Belief([[0.5, 0.5], [0.25, 0.75]]).every(short)


def test_another_type_is_refused():
    with pytest.raises(TypeError, match=r"probabilities must be a tensor, an array or a list of numbers, got {0: 1.0}"):
        Belief({0: 1.0})
    with pytest.raises(TypeError, match=r"short must be a tensor, an array or a list of numbers, got \['a'\]"):
        Belief([[0.5, 0.5]]).every(["a"])
