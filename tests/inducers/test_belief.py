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
