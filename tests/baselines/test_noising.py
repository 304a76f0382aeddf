import math

import pytest
import torch

from imm.baselines import Noise, expected_counts, noise

COUNTS = torch.tensor([[3, 1, 0, 0], [0, 2, 2, 1], [0, 0, 0, 0], [4, 0, 0, 7]])
BY = {
    "uniform": Noise.uniform(4, 0.3),
    "unigram": Noise.unigram(COUNTS, 0.4),
    "kneser_ney": Noise.kneser_ney(COUNTS, 0.8),
    "other": Noise(torch.tensor([0.1, 0.9, 0.5, 0.0]), torch.tensor([0.7, 0.0, 0.1, 0.2])),
}
WHERE = ["context", "prediction", "both"]
each_noise = pytest.mark.parametrize("by", BY.values(), ids=BY)
everywhere = pytest.mark.parametrize("where", WHERE)


def pairs(copies):
    """The contexts and predictions that have ``copies`` times the counts."""
    x, y = torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")
    return x.flatten().repeat_interleave(COUNTS.flatten() * copies), y.flatten().repeat_interleave(
        COUNTS.flatten() * copies
    )


def test_distributions_by_hand():
    assert BY["uniform"].gamma.tolist() == pytest.approx([0.3] * 4)
    assert BY["uniform"].q.tolist() == pytest.approx([0.25] * 4)
    assert BY["unigram"].gamma.tolist() == pytest.approx([0.4] * 4)
    assert BY["unigram"].q.tolist() == pytest.approx([7 / 20, 3 / 20, 2 / 20, 8 / 20])
    # Kinds of successors 2, 3, 0, 2 over counts 4, 5, 0, 11; kinds of predecessors 2, 2, 1, 2.
    assert BY["kneser_ney"].gamma.tolist() == pytest.approx([0.8 * 2 / 4, 0.8 * 3 / 5, 0.0, 0.8 * 2 / 11])
    assert BY["kneser_ney"].q.tolist() == pytest.approx([2 / 7, 2 / 7, 1 / 7, 2 / 7])


@each_noise
@everywhere
def test_counts_are_by_the_definition(by, where):
    """Cases (a), (b) and (c) of Appendix noising-observations, in loops."""
    gamma, q, c = by.gamma.tolist(), by.q.tolist(), COUNTS.tolist()
    found = expected_counts(COUNTS, by, where)
    for x in range(4):
        for y in range(4):
            if where == "context":
                moved = q[x] * sum(gamma[x2] * c[x2][y] for x2 in range(4))
            elif where == "prediction":
                moved = q[y] * gamma[x] * sum(c[x])
            else:
                moved = q[x] * q[y] * sum(gamma[x2] * c[x2][y2] for x2 in range(4) for y2 in range(4))
            assert found[x, y].item() == pytest.approx((1 - gamma[x]) * c[x][y] + moved, rel=1e-5, abs=1e-6)


@each_noise
@everywhere
def test_the_total_is_conserved(by, where):
    found = expected_counts(COUNTS, by, where)
    assert found.sum().item() == pytest.approx(20, rel=1e-5)
    if where == "context":
        torch.testing.assert_close(found.sum(0), COUNTS.sum(0).float())
    if where == "prediction":
        torch.testing.assert_close(found.sum(1), COUNTS.sum(1).float())


@each_noise
@everywhere
def test_noise_has_the_expected_counts(by, where, generator):
    copies = 2000
    contexts, predictions = pairs(copies)
    x, y = noise(contexts, predictions, by, where, generator)
    found = torch.bincount(4 * x + y, minlength=16).view(4, 4) / copies
    # A count is a sum of independent coins: its variance is below its mean, and so below this.
    error = (expected_counts(COUNTS, by, where) / copies).sqrt()
    assert ((found - expected_counts(COUNTS, by, where)).abs() <= 5 * error + 1e-6).all()
    assert not torch.equal(found, COUNTS.float())


@everywhere
def test_only_what_is_named_is_noised(where, generator):
    contexts, predictions = pairs(20)
    given = contexts.clone(), predictions.clone()
    x, y = noise(contexts, predictions, BY["uniform"], where, generator)
    assert torch.equal(x, contexts) == (where == "prediction")
    assert torch.equal(y, predictions) == (where == "context")
    assert torch.equal(contexts, given[0])
    assert torch.equal(predictions, given[1])


def test_one_coin_decides_for_both(generator):
    """A replacement of both by tokens that do not occur: they are replaced together."""
    by = Noise(torch.full((4,), 0.5), torch.tensor([0.0, 0.0, 0.0, 1.0]))
    x, y = noise(torch.zeros(1000, dtype=torch.int64), torch.ones(1000, dtype=torch.int64), by, "both", generator)
    assert torch.equal(x == 3, y == 3)
    assert 400 < int((x == 3).sum()) < 600


def test_the_same_seed_makes_the_same_noise(seed):
    a, b = (noise(*pairs(10), BY["unigram"], "both", torch.Generator().manual_seed(seed)) for _ in range(2))
    assert torch.equal(a[0], b[0])
    assert torch.equal(a[1], b[1])


def test_prediction_noising_interpolates_between_the_data_and_kneser_ney():
    """Eq. KNnoising: with γ = λ ν, ν the missing mass."""
    lam = 0.35
    c, whole = COUNTS.double(), Noise.kneser_ney(COUNTS, 0.9)
    nu, q = whole.gamma.double()[:, None], whole.q.double()
    smoothed = (1 - nu) * c + nu * q * c.sum(1, keepdim=True)
    found = expected_counts(COUNTS, Noise(lam * whole.gamma, whole.q), "prediction")
    torch.testing.assert_close(found.double(), (1 - lam) * c + lam * smoothed, rtol=1e-6, atol=1e-6)


def test_unigram_context_noising_is_interpolative_smoothing():
    """Case (a) with constant γ and q = c/n: the paper's one justified use of context noising."""
    square = torch.tensor([[2, 1], [1, 4]])  # contexts and predictions have the same frequencies
    by, c = Noise.unigram(square, 0.4), square.float()
    expected = 0.6 * c / c.sum(1, keepdim=True) + 0.4 * c.sum(0) / c.sum()
    found = expected_counts(square, by, "context")
    torch.testing.assert_close(found / found.sum(1, keepdim=True), expected)


def test_no_gamma_is_no_noise(generator):
    contexts, predictions = pairs(5)
    x, y = noise(contexts, predictions, Noise.uniform(4, 0.0), "both", generator)
    assert torch.equal(x, contexts)
    assert torch.equal(y, predictions)
    torch.testing.assert_close(expected_counts(COUNTS, Noise.uniform(4, 0.0), "both"), COUNTS.float())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Noise.uniform(4, 1.5), "gamma must be between 0 and 1, got 1.5"),
        (lambda: Noise.uniform(0, 0.2), "n_tokens must be a whole number of at least 1, got 0"),
        (lambda: Noise.unigram(-COUNTS, 0.2), "counts must be finite and not negative, got -3"),
        (lambda: Noise.unigram(0 * COUNTS, 0.2), "counts must not be all zero"),
        (lambda: Noise.kneser_ney(-COUNTS, 0.2), "counts must be finite and not negative, got -3"),
        (lambda: Noise.kneser_ney(0 * COUNTS, 0.2), "counts must not be all zero"),
        (lambda: Noise.unigram(COUNTS, -0.1), "gamma must be between 0 and 1, got -0.1"),
        (lambda: Noise.kneser_ney(COUNTS, 2.0), "gamma0 must be between 0 and 1, got 2.0"),
        (lambda: Noise(torch.tensor([0.5, 2.0]), torch.tensor([0.5, 0.5])), "got 0.5 to 2.0"),
        (lambda: Noise(torch.tensor([math.nan]), torch.tensor([0.5, 0.5])), "gamma must be"),
        (lambda: Noise(torch.tensor([0.5, 0.5]), torch.tensor([0.5, 0.6])), "q must be probabilities; it sums to 1.1"),
        (lambda: noise(*pairs(1), BY["uniform"], "all"), "where must be .* got 'all'"),
        (lambda: expected_counts(COUNTS, BY["uniform"], "all"), "where must be .* got 'all'"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("contexts", [[0, 7], [-1, 0], []])
def test_tokens_outside_the_noise_distribution_are_refused(contexts):
    contexts = torch.tensor(contexts, dtype=torch.long)
    with pytest.raises(ValueError, match="contexts must be tokens 0 to 2"):
        noise(contexts, torch.zeros_like(contexts), Noise.uniform(3, 0.5), "both")
    with pytest.raises(ValueError, match="contexts and predictions must have the same shape"):
        noise(torch.tensor([0, 1]), torch.tensor([0]), Noise.uniform(3, 0.5), "both")


def test_kneser_ney_takes_counts_below_one_and_contexts_without_any():
    by = Noise.kneser_ney(torch.tensor([[0.5, 0.25], [0.0, 0.0]]), gamma0=0.2)
    torch.testing.assert_close(by.gamma, torch.tensor([0.2 * 2 / 0.75, 0.0]))
