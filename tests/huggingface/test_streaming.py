"""Streaming some rows at a time is streaming all at once."""

import math

import pytest
import torch

pytest.importorskip("transformers")

from imm.huggingface import Causal, Codes, Index, streaming_loss
from imm.matching import Streaming
from imm.matching.induced_table import InducedTable
from imm.targets import Table
from tests.huggingface import tiny


@pytest.mark.parametrize("n_held", [None, 3])
@pytest.mark.parametrize("rows_at_once", [1, 4, 1000])
def test_parts_are_the_whole_over_several_batches(seed, rows_at_once, n_held):
    generator = torch.Generator().manual_seed(seed)
    codes = Codes(Index(tiny.rows(20), Causal(), 1))
    target, n_words = tiny.bigram(), len(tiny.WORDS)
    ours = InducedTable(len(codes), 7.0, 2.0, n_held)
    of_code = Table.from_tensor(target(codes.short(torch.arange(len(codes)))))
    whole = Streaming(of_code, None, 7.0, 2.0, n_held)
    for _ in range(4):
        scores = torch.randn(12, n_words, generator=generator, requires_grad=True)
        which = torch.randint(0, 6, (12,), generator=generator)
        weight = torch.rand(12, generator=generator) + 0.5
        matched = torch.rand(12, generator=generator) < 0.8
        loss = streaming_loss(ours, scores, which.where(matched, -1), weight, target, codes, rows_at_once)
        (0.3 * loss).backward()
        again = scores.detach().clone().requires_grad_()
        wanted = whole(again[matched], which[matched], sample_weight=weight[matched])
        (0.3 * weight[matched].sum() * wanted).backward()
        assert loss.item() == pytest.approx(weight[matched].sum().item() * wanted.item(), rel=1e-5)
        torch.testing.assert_close(scores.grad, again.grad, rtol=1e-4, atol=1e-6)
        assert not scores.grad[~matched].any()
    for name in ("induced", "count", "seen"):
        one, other = (getattr(table, name)[: ours.n_held] for table in (ours, whole.table))
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)


def test_a_batch_without_places_adds_nothing():
    codes = Codes(Index(tiny.rows(5), Causal(), 1))
    table = InducedTable(len(codes), 1.0)
    scores = torch.randn(3, len(tiny.WORDS), requires_grad=True)
    loss = streaming_loss(table, scores, torch.full((3,), -1), torch.ones(3), tiny.bigram(), codes)
    assert loss.item() == 0
    assert not loss.requires_grad
    assert table.steps == 0


@pytest.mark.parametrize("m", [1, 2])
def test_codes_are_by_falling_frequency_and_there_and_back(m):
    index = Index(tiny.rows(20), Causal(), m)
    codes = Codes(index)
    given = codes.encode(index.short)
    assert torch.equal(codes.short(given), index.short)
    counts = torch.bincount(given, minlength=len(codes))
    assert (counts.diff() <= 0).all()
    assert counts.sum() == len(index.short)
    assert codes.encode(index.short[:0]).tolist() == []


def test_infinite_memory_of_a_frozen_model_is_the_exact_mean():
    index = Index(tiny.rows(6), Causal(), 1)
    codes, target = Codes(index), tiny.bigram()
    table = InducedTable(len(codes), math.inf, math.inf)
    scores = torch.randn(len(index.short), len(tiny.WORDS), generator=torch.Generator().manual_seed(0))
    which = codes.encode(index.short)
    for part in torch.arange(len(scores)).split(5):
        streaming_loss(table, scores[part].requires_grad_(), which[part], torch.ones(len(part)), target, codes, 2)
    for code in which.unique():
        wanted = torch.softmax(scores[which == code], -1).mean(0)
        torch.testing.assert_close(table.rows(code[None])[0], wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("m", [1, 2])
def test_short_contexts_that_the_data_does_not_have_are_refused(m):
    """Among single tokens each has a number, and without a check one would be given the target of another."""
    codes = Codes(Index([{"input_ids": [7, 7, 9, 9, 5]}], Causal(), m))
    with pytest.raises(ValueError, match=rf"short context \[{', '.join(['8'] * m)}\] does not occur in the data"):
        codes.encode(torch.tensor([[9] * m, [8] * m]))
