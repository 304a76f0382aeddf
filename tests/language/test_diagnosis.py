"""What a bigram knows that a model does not, against sums by hand."""

import math

import pytest
import torch

from imm.language import diagnose, induced_ngram
from imm.language.diagnosis import mixed_with
from imm.language.evaluation import log_likelihoods, perplexity
from tests.language import tiny


def test_the_figures_are_those_of_loops_by_hand():
    texts, model = tiny.texts(300), tiny.model()
    found = diagnose(model, texts.train, texts.test, texts.bigram, 4, 3)
    induced = induced_ngram(model, texts.train, len(tiny.WORDS), 4, 3).probabilities.double()
    old = texts.bigram.probabilities(torch.arange(len(tiny.WORDS))).double()
    pairs = list(zip(texts.test[:-1].tolist(), texts.test[1:].tolist(), strict=True))

    def of(table):
        return math.exp(-sum(math.log(table[pair]) for pair in pairs) / len(pairs))

    assert found.old == pytest.approx(of(old), rel=1e-5)
    assert found.induced == pytest.approx(of(induced), rel=1e-5)
    mixed = {step / 20: of((1 - step / 20) * induced + step / 20 * old) for step in range(21)}
    assert found.ratio == min(mixed, key=mixed.get)
    assert found.mixed == pytest.approx(min(mixed.values()), rel=1e-5)
    assert found.model == pytest.approx(perplexity(log_likelihoods(model, texts.test, 4, 3)))
    assert found.before == pytest.approx(math.log(found.induced / found.old))
    assert found.room == pytest.approx(math.log(found.induced / found.mixed))
    assert found.room >= 0


def test_a_share_can_be_given_from_another_text():
    texts, model = tiny.texts(300), tiny.model()
    induced = induced_ngram(model, texts.train, len(tiny.WORDS), 4, 3)
    assert mixed_with(induced, texts.bigram, texts.test, 0.0) == (0.0, pytest.approx(induced.perplexity(texts.test)))
    best, lowest = mixed_with(induced, texts.bigram, texts.test)
    assert mixed_with(induced, texts.bigram, texts.test, best) == (best, lowest)
