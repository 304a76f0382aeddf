"""Bigrams that are there already: the same probabilities, in the words of one stream."""

import pytest
import torch

from imm.language import fit_ngram
from imm.language.given import read_bigram
from imm.targets.arpa import write_arpa
from imm.targets.ngram import save

TEXT = "the cat sat\nthe dog sat on the cat\na dog ran\nthe cat ran\n"


@pytest.fixture
def written(tmp_path):
    """The bigram of a text by its convention, and where it was written in each form."""

    def write(convention, form):
        (tmp_path / "text.txt").write_text(TEXT)
        bigram = fit_ngram(tmp_path / "text.txt", 2, convention)
        path = tmp_path / form
        save(bigram, path) if form == "folder" else write_arpa(bigram, path)
        return bigram, path

    return write


@pytest.mark.parametrize("form", ["folder", "bigram.arpa", "bigram.arpa.gz"])
@pytest.mark.parametrize("convention", ["stream", "sentence"])
def test_probabilities_stay_and_a_line_begins_after_the_end_of_one(written, convention, form):
    bigram, path = written(convention, form)
    given = read_bigram(path)
    assert given.classes[:2] == ("<unk>", "<eos>")
    assert (given.about.convention, given.about.eos, given.about.bos, given.about.unk) == ("stream", 1, None, 0)
    before = {word: number for number, word in enumerate(bigram.classes)}
    end, begin = ("<eos>", "<eos>") if convention == "stream" else ("</s>", "<s>")
    predicted = [before[end if word == "<eos>" else word] for word in given.classes]
    contexts = [before[begin if word == "<eos>" else word] for word in given.classes]
    expected = bigram.probabilities(torch.tensor(contexts))[:, predicted]
    torch.testing.assert_close(given.probabilities(torch.arange(len(given.classes))), expected, rtol=1e-5, atol=1e-7)
    assert set(given.classes) == set(bigram.classes) - {"<s>", "</s>"} | {"<eos>"}


def test_frequent_words_come_first(written):
    _, path = written("sentence", "bigram.arpa")
    given = read_bigram(path)
    assert given.trie.base[2:].tolist() == sorted(given.trie.base[2:], reverse=True)


def test_without_unknown_words_they_have_no_probability(written):
    _, path = written("sentence", "bigram.arpa")
    lines = [line for line in path.read_text().splitlines() if "<unk>" not in line]
    path.write_text("\n".join(lines).replace("ngram 1=10", "ngram 1=9") + "\n")
    given = read_bigram(path)
    assert given.classes[0] == "<unk>"
    assert (given.probabilities(torch.arange(len(given.classes)))[:, 0] == 0).all()


def test_what_is_no_bigram_of_lines_is_refused(written, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no .*nowhere"):
        read_bigram(tmp_path / "nowhere")
    written("stream", "folder")
    save(fit_ngram(tmp_path / "text.txt", 3), tmp_path / "trigram")
    with pytest.raises(ValueError, match=r"trigram holds n-grams of order 3; a bigram is needed"):
        read_bigram(tmp_path / "trigram")
    _, path = written("sentence", "bigram.arpa")
    path.write_text(path.read_text().replace("</s>", "END"))
    with pytest.raises(ValueError, match=r"bigram\.arpa has no word for the end of a line"):
        read_bigram(path)
