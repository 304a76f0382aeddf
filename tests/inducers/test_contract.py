"""What every inducer must do. A new one joins ``CASES``; the last test tells when it is missing there."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from scipy import stats

import imm.inducers
from imm.inducers import Belief, Contexts, Inducer, Kernel, Multiset


@dataclass(frozen=True)
class Case:
    """An inducer, a batch of short contexts for it, and what it must refuse."""

    name: str
    build: Callable[[], Inducer]
    short: Any
    n_extended: int
    unseen: Any
    """A batch with a short context that the inducer cannot know, or None if it knows all."""
    shown: str
    """How the error must repeat it."""


CODES = torch.tensor([4, 0, 4, 2, 4, 0, 4])
REALS = torch.tensor([0.0, 0.3, -1.0, 2.0, 0.1])
TABLE = torch.tensor([[0.5, 0.2, 0.3, 0.0], [0.0, 0.9, 0.05, 0.05]])
PAIRS = [("a", 1), ("b", 1), ("a", 1), ("a", 2)]

CASES = [
    Case("Multiset", lambda: Multiset(CODES), torch.tensor([0, 4, 4, 2]), 7, torch.tensor([4, 3]), "3"),
    Case("Multiset", lambda: Multiset(CODES - 2**40), CODES[:3] - 2**40, 7, torch.tensor([5]), "5"),
    Case("Multiset", lambda: Multiset(CODES.numpy()), CODES.numpy()[:3], 7, CODES.numpy()[:1] + 7, "11"),
    Case(
        "Multiset",
        lambda: Multiset(CODES[:, None].expand(7, 2)),
        torch.tensor([[4, 4], [0, 0]]),
        7,
        torch.tensor([[4, 0]]),
        r"\[4, 0\]",
    ),
    Case("Multiset", lambda: Multiset(PAIRS), PAIRS[:2], 4, [("c", 1)], r"\('c', 1\)"),
    Case("Kernel", lambda: Kernel(REALS, alpha=1.0), torch.tensor([0.0, 5.0]), 5, None, ""),
    Case("Kernel", lambda: Kernel(REALS, alpha=1.0, kind="gaussian", n_neighbors=3), REALS, 5, None, ""),
    Case("Kernel", lambda: Kernel(REALS, alpha=math.inf), REALS[1:3], 5, torch.tensor([0.3, 7.0]), r"\[7.0\]"),
    Case(
        "Kernel",
        lambda: Kernel(REALS.double(), alpha=1.0, sample_weight=torch.arange(5.0)),
        REALS.double(),
        5,
        None,
        "",
    ),
    Case("Belief", lambda: Belief(TABLE), torch.tensor([1, 0, 1]), 4, torch.tensor([0, 2]), "2"),
    Case("Belief", lambda: Belief(TABLE.double()), torch.tensor([0]), 4, torch.tensor([-1]), "-1"),
]
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def check(contexts: Contexts, case: Case) -> None:
    index, weights = contexts.index, contexts.weights
    assert index.dtype == torch.int64
    assert index.shape == weights.shape
    assert len(index) == len(case.short)
    assert weights.is_floating_point()
    assert (index >= 0).all()
    assert (index < case.n_extended).all()
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(1), torch.ones(len(weights), dtype=weights.dtype))


@each_case
class TestInducer:
    def test_every_is_a_distribution(self, case):
        contexts = case.build().every(case.short)
        check(contexts, case)
        for index, weights in zip(contexts.index, contexts.weights, strict=True):
            seen = index[weights > 0].tolist()
            assert len(seen) == len(set(seen)), "a context stands twice"

    def test_draw_is_k_equal_weights(self, case, generator):
        contexts = case.build().draw(case.short, 6, generator)
        check(contexts, case)
        assert contexts.index.shape == (len(case.short), 6)
        torch.testing.assert_close(contexts.weights, torch.full_like(contexts.weights, 1 / 6))

    def test_draws_are_distributed_as_every_says(self, case, generator):
        inducer = case.build()
        every, drawn = inducer.every(case.short), inducer.draw(case.short, 20_000, generator)
        for t in range(len(case.short)):
            probability = torch.zeros(case.n_extended, dtype=torch.float64)
            probability.index_add_(0, every.index[t], every.weights[t].double())
            counts = torch.bincount(drawn.index[t], minlength=case.n_extended).double()
            possible = probability > 1e-12
            assert counts[~possible].sum() == 0
            expected = probability[possible] / probability[possible].sum() * 20_000
            common = expected >= 5
            if int(common.sum()) > 1:
                observed = counts[possible][common]
                scaled = expected[common] * observed.sum() / expected[common].sum()
                assert stats.chisquare(observed.numpy(), scaled.numpy()).pvalue > 1e-5

    def test_draws_of_one_batch_differ(self, case, generator):
        """Draws are with replacement and independent: two rows with the same short context draw apart."""
        inducer = case.build()
        same = case.short[-1:]
        twice = torch.cat([same, same]) if isinstance(same, torch.Tensor) else [*same, *same]
        if int((inducer.every(same).weights > 0.05).sum()) > 1:
            drawn = inducer.draw(twice, 200, generator).index
            assert (drawn[0] != drawn[1]).any()

    def test_the_same_seed_draws_the_same(self, case, seed):
        first, second = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed)
        a, b = case.build().draw(case.short, 50, first), case.build().draw(case.short, 50, second)
        assert torch.equal(a.index, b.index)

    def test_repeated_short_contexts_get_the_same(self, case):
        short = case.short
        twice = torch.cat([short, short]) if isinstance(short, torch.Tensor) else [*short, *short]
        contexts = case.build().every(twice)
        n = len(short)
        assert torch.equal(contexts.index[:n], contexts.index[n:])
        torch.testing.assert_close(contexts.weights[:n], contexts.weights[n:])

    @pytest.mark.parametrize("ask", ["every", "draw"])
    def test_an_empty_batch_is_refused(self, case, ask):
        with pytest.raises(ValueError, match="empty") as refused:
            getattr(case.build(), ask)(case.short[:0], *([3] if ask == "draw" else []))
        assert "\n" not in str(refused.value)

    @pytest.mark.parametrize("k", [0, -1, 1.5])
    def test_no_draws_are_refused(self, case, k):
        with pytest.raises(ValueError, match=f"n_contexts must be a whole number of at least 1, got {k}"):
            case.build().draw(case.short, k)

    @pytest.mark.parametrize("ask", ["every", "draw"])
    def test_an_unseen_short_context_is_refused_and_shown(self, case, ask):
        if case.unseen is None:
            pytest.skip("knows every short context")
        with pytest.raises(ValueError, match=f"short context {case.shown} ") as refused:
            getattr(case.build(), ask)(case.unseen, *([3] if ask == "draw" else []))
        assert "\n" not in str(refused.value)


def test_everything_exported_stands_in_the_list():
    assert {case.name for case in CASES} == set(imm.inducers.__all__) - {"Contexts", "Inducer"}
