import math
from itertools import pairwise

import pytest
import torch

from imm.baselines import interpolate
from imm.language.evaluation import best_ratio, evaluating, interpolated, log_likelihoods, perplexity
from tests.language import tiny


def plain(model, tokens):
    """Word by word."""
    state, found = model.initial_state(1), []
    for word, after in pairwise(tokens):
        log_q, state = model(word.view(1, 1), state)
        found.append(log_q[0, after].item())
    return torch.tensor(found)


class TestLogLikelihoods:
    @pytest.mark.parametrize("unroll", [1, 3, 4, 100])
    def test_one_column_is_a_plain_loop(self, unroll):
        model, tokens = tiny.model(), tiny.tokens(14)
        torch.testing.assert_close(log_likelihoods(model, tokens, unroll), plain(model, tokens))

    @pytest.mark.parametrize("batch_size", [1, 2, 3, 5, 13, 14, 40])
    def test_each_column_begins_anew_and_no_word_is_lost(self, batch_size):
        model, tokens = tiny.model(), tiny.tokens(14)
        found = log_likelihoods(model, tokens, 4, batch_size)
        rows = math.ceil(13 / batch_size)
        parts = [plain(model, tokens[begin : begin + rows + 1]) for begin in range(0, 13, rows)]
        assert len(found) == 13
        torch.testing.assert_close(found, torch.cat(parts))

    def test_it_leaves_the_mode_and_no_gradient(self):
        model, tokens = tiny.model().train(), tiny.tokens(9)
        found = log_likelihoods(model, tokens, 4)
        assert model.training
        assert not found.requires_grad
        torch.testing.assert_close(found, plain(model.eval(), tokens))

    def test_the_mode_comes_back_after_an_error(self):
        model = tiny.model().train()
        with pytest.raises(IndexError), evaluating(model):
            model(torch.tensor([[99]]), model.initial_state(1))
        assert model.training

    @pytest.mark.parametrize("n", [0, 1])
    def test_nothing_to_predict_is_refused(self, n):
        with pytest.raises(ValueError, match=f"a text needs two words, got {n}"):
            log_likelihoods(tiny.model(), tiny.tokens(9)[:n], 4)


def test_perplexity_is_the_exponential_of_minus_the_mean():
    assert perplexity(torch.tensor([0.5, 0.125]).log()) == pytest.approx(4)
    assert math.isfinite(perplexity(torch.tensor([-math.inf])))


class TestInterpolation:
    @pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0])
    def test_it_is_the_baselines(self, ratio):
        model, texts = tiny.model(), tiny.texts()
        tokens = texts.valid
        log_q, _ = model(tokens[:-1, None], model.initial_state(1))
        mixed = interpolate(log_q.detach(), texts.bigram(tokens[:-1]), ratio)
        expected = mixed.gather(1, tokens[1:, None])[:, 0]
        found = interpolated(log_likelihoods(model, tokens, 4), tokens, texts.bigram, ratio)
        torch.testing.assert_close(found.float(), expected)

    def test_the_best_ratio_is_the_best_of_all(self):
        texts = tiny.texts()
        likelihoods = torch.linspace(0.05, 0.9, len(texts.valid) - 1).log()
        found = best_ratio(likelihoods, texts.valid, texts.bigram)

        def value(ratio):
            return perplexity(interpolated(likelihoods, texts.valid, texts.bigram, ratio))

        assert value(found) == min(value(step / 100) for step in range(0, 100, 5))
        assert 0 < found < 1
        assert value(found) < min(value(0.0), value(1.0))

    def test_beside_a_model_that_knows_nothing_the_bigram_is_alone(self):
        texts = tiny.texts()
        assert best_ratio(torch.full((len(texts.valid) - 1,), -99.0), texts.valid, texts.bigram) == 1

    def test_a_model_that_knows_needs_no_bigram(self):
        texts = tiny.texts()
        assert best_ratio(torch.zeros(len(texts.valid) - 1), texts.valid, texts.bigram) == 0
