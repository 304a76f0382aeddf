"""An n-gram whose words get other numbers predicts the same words."""

import numpy as np
import pytest
import torch

from imm.ngram import Ngram


def model(seed, order=3):
    tokens = np.random.default_rng(seed).integers(0, 7, 200)
    return Ngram.fit(tokens, 8, order, eos=2, unk=7, zero_counts="keep")


@pytest.mark.parametrize("order", [2, 3, 4])
def test_a_permutation_permutes(seed, order):
    given = model(seed, order)
    names = np.random.default_rng(seed + 1).permutation(11)[:8]
    found = given.renamed(names, [f"word {i}" for i in range(11)])
    short = np.random.default_rng(seed + 2).integers(0, 8, (20, order - 1))
    rows = found(torch.from_numpy(names[short]))
    torch.testing.assert_close(rows[:, names], given(short))
    assert rows.sum(-1).numpy() == pytest.approx(1.0, abs=1e-5)
    assert (found.about.eos, found.about.unk) == (names[2], names[7])


def test_a_word_that_nothing_predicts_can_be_left_out(seed):
    given = Ngram.fit(np.random.default_rng(seed).integers(0, 7, 200), 8, 3)  # 7 is never seen: it has the base alone
    found = given.renamed([*range(7), -1], list("abcdefg"))
    short = np.random.default_rng(seed + 2).integers(0, 7, (20, 2))
    rows, before = found(short), given(short)
    assert rows.sum(-1).numpy() == pytest.approx(1.0, abs=1e-5)
    assert (rows >= before[:, :7]).all()
    with pytest.raises(ValueError, match="a word that is left out is predicted by 2-grams"):
        given.renamed([-1, *range(7)], list("abcdefg"))
