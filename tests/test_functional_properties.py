import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from imm import functional

SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 6), st.integers(1, 5), st.integers(0, 10_000))


def make(shape: tuple[int, int, int, int]) -> tuple[Tensor, Tensor]:
    n, k, classes, seed = shape
    generator = torch.Generator().manual_seed(seed)
    log_q = torch.log_softmax(5 * torch.randn(n, k, classes, generator=generator, dtype=torch.float64), -1)
    weights = torch.rand(n, k, generator=generator, dtype=torch.float64)
    weights[:, 1:] *= torch.rand(n, k - 1, generator=generator) > 0.3
    return log_q, weights + (weights.sum(1, keepdim=True) == 0)


@given(SHAPES)
def test_induced_rows_are_normalised(shape):
    log_q, weights = make(shape)
    torch.testing.assert_close(functional.induce(log_q, weights).exp().sum(-1), torch.ones(shape[0]).double())


@given(SHAPES)
def test_induced_lies_between_the_contexts_with_weight(shape):
    log_q, weights = make(shape)
    induced, counts = functional.induce(log_q, weights), (weights > 0)[..., None]
    assert (induced <= log_q.where(counts, -torch.inf).amax(1) + 1e-9).all()
    assert (induced >= log_q.where(counts, torch.inf).amin(1) - 1e-9).all()


@given(SHAPES)
def test_the_order_of_contexts_does_not_matter(shape):
    log_q, weights = make(shape)
    order = torch.randperm(shape[1], generator=torch.Generator().manual_seed(shape[3]))
    torch.testing.assert_close(functional.induce(log_q, weights), functional.induce(log_q[:, order], weights[:, order]))


@given(SHAPES)
def test_risk_is_at_least_the_targets_entropy(shape):
    log_q, weights = make(shape)
    assert functional.divergence(functional.induce(log_q, weights), log_q[:, 0].exp()) >= -1e-12
