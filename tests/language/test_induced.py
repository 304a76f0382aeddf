from collections import defaultdict
from itertools import pairwise

import pytest
import torch

from imm.language import induced_ngram
from imm.language.windows import Windows
from tests.language import tiny


def plain(model, windows):
    """Each column word by word: the mean of all predictions after a word, in plain floats."""
    sums, counts = defaultdict(lambda: [0.0] * len(tiny.WORDS)), defaultdict(int)
    for column in windows.inputs.T:
        state = model.initial_state(1)
        for word in column:
            log_q, state = model(word.view(1, 1), state)
            sums[int(word)] = [a + b for a, b in zip(sums[int(word)], log_q[0].exp().tolist(), strict=True)]
            counts[int(word)] += 1
    return {word: [p / counts[word] for p in row] for word, row in sums.items()}, counts


def test_it_is_the_mean_over_all_places():
    model, tokens = tiny.model().train(), tiny.tokens(61)
    induced = induced_ngram(model, tokens, len(tiny.WORDS), unroll=4, batch_size=3)
    assert model.training
    means, counts = plain(model.eval(), Windows(tokens, 3, 4))
    assert len(means) > 4
    for word, row in means.items():
        found = induced.score(torch.full((len(row),), word), torch.arange(len(row)))
        torch.testing.assert_close(found, torch.tensor(row), rtol=1e-5, atol=1e-6)
    expected = sum(counts.values())
    assert expected == len(Windows(tokens, 3, 4).short)


def test_a_word_that_the_text_does_not_have_is_answered_by_the_mean_over_all_places():
    model, tokens = tiny.model(), tiny.tokens(61) % 4
    induced = induced_ngram(model, tokens, len(tiny.WORDS), unroll=4, batch_size=3)
    means, counts = plain(model, Windows(tokens, 3, 4))
    total = sum(counts.values())
    anywhere = [sum(counts[w] * row[y] for w, row in means.items()) / total for y in range(len(tiny.WORDS))]
    found = induced.score(torch.full((len(tiny.WORDS),), 6), torch.arange(len(tiny.WORDS)))
    torch.testing.assert_close(found, torch.tensor(anywhere), rtol=1e-5, atol=1e-6)


def test_the_perplexity_of_a_text():
    model, tokens = tiny.model(), tiny.tokens(61)
    induced = induced_ngram(model, tokens, len(tiny.WORDS), unroll=4, batch_size=3)
    means, _ = plain(model, Windows(tokens, 3, 4))
    text = [1, 2, 3, 2, 4]
    log = sum(torch.tensor(means[a][b]).log().item() for a, b in pairwise(text))
    assert induced.perplexity(torch.tensor(text)) == pytest.approx(torch.tensor(-log / 4).exp().item(), rel=1e-5)
