"""The paper's bigram, and KenLM's figures, on the real texts; skipped where those are not."""

import pytest

from imm.experiments.data import data_file
from imm.language import fit_ngram, perplexity

SPLITS = ("train", "valid", "test")


def texts(name):
    prefix = {"ptb": "ptb/ptb.", "wikitext-2": "wikitext-2/"}[name]
    try:
        return [data_file(f"{prefix}{split}.txt") for split in SPLITS]
    except FileNotFoundError as missing:
        pytest.skip(str(missing))


def figures(name, order, convention, **options):
    train, *others = texts(name)
    model = fit_ngram(train, order, convention, **options)
    return model, [perplexity(model, path).evaluation for path in (train, *others)]


def test_the_papers_bigram():
    """Appendix lm-motivation prints 92.19, 199.28 and 185.71; a word decides the middle one (docs/guides/ngrams.md)."""
    model, (train, valid, test) = figures("ptb", 2, "stream")
    assert len(model.classes) == 10_000
    assert [round(d, 4) for d in model.about.discounts[1].amounts] == [0.7077, 1.0838, 1.4432]
    assert f"{train.perplexity:.2f}" == "92.19"
    assert f"{test.perplexity:.2f}" == "185.71"
    assert f"{valid.perplexity:.2f}" == "199.57"
    assert [result.tokens for result in (train, valid, test)] == [929_588, 73_759, 82_429]


def test_the_papers_bigram_with_a_word_of_probability_zero():
    model, (train, valid, test) = figures("ptb", 2, "stream", zero_counts="keep")
    assert [result.zeros for result in (train, valid, test)] == [0, 10, 0]
    assert f"{train.perplexity:.2f} {test.perplexity:.2f}" == "92.19 185.71"
    assert f"{valid.perplexity_without_zeros:.2f}" == "199.32"
    assert model.score([model.about.eos], [model.classes.index("aer")]) == 0


@pytest.mark.parametrize(
    ("name", "order", "expected", "tolerance"),
    [
        ("ptb", 2, (92.197, 199.018, 185.705), 0.001),
        ("ptb", 3, (19.967, 157.765, 148.281), 0.001),
        ("wikitext-2", 2, (117.00, 284.73, 263.96), 0.005),
        ("wikitext-2", 3, (20.64, 242.32, 226.05), 0.005),
    ],
)
def test_kenlms_figures(name, order, expected, tolerance):
    _, results = figures(name, order, "sentence")
    assert [result.perplexity for result in results] == pytest.approx(expected, abs=tolerance)
