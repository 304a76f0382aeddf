import math

import pytest
import torch

from imm.language import load, save_model
from imm.language.model import build
from tests.language import tiny


@pytest.fixture
def trained(tmp_path):
    save_model(tiny.model(), tiny.texts().vocabulary, tiny.settings(), tmp_path / "run" / "model")
    return load(tmp_path / "run")


def test_the_next_word_is_the_models(trained, tmp_path):
    words = trained.vocabulary.words
    text = f"{words[2]} {words[3]} nowhere\n{words[4]}"
    tokens = torch.tensor([2, 3, 0, 1, 4])
    log_q, _ = trained.model(tokens[:, None])
    found = trained.next_word(text, top_k=3)
    expected = log_q[-1].exp().topk(3)
    assert [word for word, _ in found] == [words[i] for i in expected.indices]
    assert [p for _, p in found] == pytest.approx(expected.values.tolist())
    assert sum(p for _, p in trained.next_word(text, top_k=10_000)) == pytest.approx(1)
    assert load(tmp_path / "run" / "model").next_word(text, 3) == found
    likelihood = log_q[range(4), tokens[1:]].mean().item()
    assert trained.perplexity(text) == pytest.approx(math.exp(-likelihood), rel=1e-5)
    with pytest.raises(ValueError, match="the text has no words"):
        trained.next_word(" ")


def test_a_model_can_be_called_without_a_state():
    model = build(len(tiny.WORDS), tiny.settings()).eval()
    tokens = tiny.tokens(6).view(3, 2)
    torch.testing.assert_close(model(tokens)[0], model(tokens, model.initial_state(2))[0])


def test_a_bare_string_is_no_list_of_words(trained):
    with pytest.raises(TypeError, match="words must be a list of words, got the string 'the model': split it first"):
        trained.vocabulary.encode("the model")
