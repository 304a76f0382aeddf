import pytest
import torch

from imm.baselines import Noise, noise
from imm.language.methods.noising import kneser_ney_noise, unigram_noise
from tests.language import tiny
from tests.language.methods.steps import take


def dense(tokens):
    counts = torch.zeros(len(tiny.WORDS), len(tiny.WORDS))
    for x, y in zip(tokens[:-1].tolist(), tokens[1:].tolist(), strict=True):
        counts[x, y] += 1
    return counts


@pytest.mark.parametrize("gamma", [0.0, 0.2, 1.0])
def test_kneser_ney_noise_is_that_of_the_dense_counts(gamma):
    """But for the last word, which nothing follows: the dense counts have it once less."""
    texts = tiny.texts()
    expected = Noise.kneser_ney(dense(texts.train), gamma)
    followed = texts.counts.clone()
    followed[texts.train[-1]] -= 1
    found = kneser_ney_noise(texts.bigram, followed, gamma)
    torch.testing.assert_close(found.gamma, expected.gamma)
    torch.testing.assert_close(found.q, expected.q)
    near = kneser_ney_noise(texts.bigram, texts.counts, gamma)
    others = torch.arange(len(tiny.WORDS)) != texts.train[-1]
    torch.testing.assert_close(near.gamma[others], expected.gamma[others])


def test_a_word_that_does_not_occur_is_never_noised_nor_drawn():
    texts = tiny.texts()
    counts = torch.cat([texts.counts, torch.tensor([0])])
    found = kneser_ney_noise(texts.bigram, counts, 0.5)
    assert found.gamma[-1] == found.q[-1] == 0


def test_unigram_noise_is_by_frequency():
    texts = tiny.texts()
    found = unigram_noise(texts.counts, 0.3)
    torch.testing.assert_close(found.q, texts.counts / len(texts.train))
    assert found.gamma.unique().tolist() == pytest.approx([0.3])


@pytest.mark.parametrize(("name", "where"), [("kn-noising", "both"), ("unigram-noising", "context")])
def test_it_is_the_baselines_noise_on_each_batch(name, where):
    generator = torch.Generator().manual_seed(0)
    texts = tiny.texts()
    by = kneser_ney_noise(texts.bigram, texts.counts, 0.7) if name == "kn-noising" else unigram_noise(texts.counts, 0.7)
    changed = 0
    for step in take(5, method=name, gamma=0.7):
        inputs, labels = noise(step.given.inputs.flatten(), step.given.labels, by, where, generator)
        assert torch.equal(step.batch.inputs.flatten(), inputs)
        assert torch.equal(step.batch.labels, labels)
        changed += int((step.batch.labels != step.given.labels).sum())
    assert (changed > 0) == (where == "both")
