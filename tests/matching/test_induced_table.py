"""The running mean by itself."""

import math

import pytest
import torch

from imm.matching.base import Batch, Groups
from imm.matching.induced_table import InducedTable


def feed(table, q, short, count=None):
    count = torch.ones(len(short)) if count is None else count
    groups = Groups.of(Batch(None, short, None, count, count / count.sum()))
    return table.update(q, groups, groups.short)


def test_memory_forgets():
    """With memory K and batches of m, what is older has the share (1 - β) of the step before."""
    old, new = torch.tensor([[0.9, 0.1]]), torch.tensor([[0.1, 0.9]])
    table = InducedTable(1, memory=4.0, lifetime=math.inf)
    for _ in range(50):
        feed(table, old, torch.tensor([0]))
    feed(table, new, torch.tensor([0]))
    torch.testing.assert_close(table.rows(torch.tensor([0])), 0.8 * old + 0.2 * new, rtol=1e-4, atol=1e-5)


def test_everything_seen_is_averaged(generator):
    table = InducedTable(3, math.inf, math.inf)
    q, short = torch.rand(40, 4, generator=generator), torch.randint(3, (40,), generator=generator)
    for rows in torch.arange(40).split(7):
        feed(table, q[rows], short[rows])
    expected = torch.stack([q[short == code].mean(0) for code in range(3)])
    torch.testing.assert_close(table.rows(torch.arange(3)), expected)


def test_in_evaluation_mode_it_answers_and_keeps_nothing():
    table = InducedTable(1, memory=4.0)
    feed(table, torch.tensor([[0.9, 0.1]]), torch.tensor([0]))
    before = {name: value.clone() for name, value in table.state_dict().items()}
    table.eval()
    answer = feed(table, torch.tensor([[0.1, 0.9]]), torch.tensor([0]))
    assert all(torch.equal(value, before[name]) for name, value in table.state_dict().items())
    table.train()
    assert torch.equal(feed(table, torch.tensor([[0.1, 0.9]]), torch.tensor([0])), answer)


def test_what_is_not_there_is_named():
    table = InducedTable(3, n_held=2)
    with pytest.raises(ValueError, match="the table has had no predictions yet"):
        table.rows(torch.tensor([0]))
    feed(table, torch.tensor([[0.5, 0.5]]), torch.tensor([0]))
    with pytest.raises(ValueError, match="short context 1 has had no prediction yet"):
        table.rows(torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="codes must be 0 to 1, got 0 to 2"):
        table.rows(torch.tensor([0, 2]))
    with pytest.raises(ValueError, match="the table has 2 classes, and these predictions 3"):
        feed(table, torch.full((1, 3), 1 / 3), torch.tensor([0]))
