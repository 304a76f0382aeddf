"""Bigrams that are there already: the same probabilities, in the words of one stream."""

import json
import math

import pytest
import torch

from imm.language import fit_ngram
from imm.language.ngram_files import read_bigram
from imm.ngram import save
from imm.ngram.arpa import write_arpa

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


def test_frequent_words_come_first_in_files_and_folders_keep_their_order(written):
    _, path = written("sentence", "bigram.arpa")
    given = read_bigram(path)
    assert given.trie.base[2:].tolist() == sorted(given.trie.base[2:], reverse=True)
    bigram, path = written("stream", "folder")
    assert read_bigram(path).classes == bigram.classes


HEAD = "\\data\\\nngram 1={}\nngram 2={}\n\n\\1-grams:\n"


def arpa(path, words, bigrams):
    """A file with these probabilities and back-off weights."""
    ones = [f"{math.log10(p) if p else -99}\t{word}\t{math.log10(weight)}" for word, p, weight in words]
    twos = [f"{math.log10(p)}\t{pair}" for pair, p in bigrams.items()]
    head = HEAD.format(len(ones), len(twos))
    path.write_text(head + "\n".join([*ones, "", "\\2-grams:", *twos, "", "\\end\\", ""]))
    return path


def test_without_unknown_words_they_have_no_probability(tmp_path):
    words = [("<s>", 0, 1.0), ("</s>", 0.2, 1.0), ("a", 0.5, 0.8 / 0.5), ("b", 0.3, 1.0)]
    given = read_bigram(arpa(tmp_path / "no.arpa", words, {"a a": 0.2}))
    assert given.classes == ("<unk>", "<eos>", "a", "b")
    expected = torch.tensor([[0, 0.2, 0.5, 0.3], [0, 0.2, 0.5, 0.3], [0, 0.32, 0.2, 0.48], [0, 0.2, 0.5, 0.3]])
    torch.testing.assert_close(given.probabilities(torch.arange(4)), expected, rtol=1e-4, atol=1e-6)


WORDS = [("<unk>", 0.1, 1.0), ("<s>", 0, 1.0), ("</s>", 0.2, 1.0), ("a", 0.4, 1.0), ("b", 0.3, 1.0)]


@pytest.mark.parametrize(
    ("words", "bigrams", "message"),
    [
        (WORDS, {"</s> a": 0.4}, r"has bigrams that begin with </s> or end with <s>"),
        (WORDS, {"a <s>": 0.4}, r"has bigrams that begin with </s> or end with <s>"),
        (WORDS, {"a b": 0.9}, r"what follows a must have probabilities that sum to 1, got 1\.6"),
        ([*WORDS[:-1], ("<eos>", 0.3, 1.0)], {"a a": 0.4}, r"has the word <eos>, which stands for something else here"),
    ],
)
def test_a_file_that_means_something_else_is_refused(words, bigrams, message, tmp_path):
    with pytest.raises(ValueError, match=r"x\.arpa:? " + message):
        read_bigram(arpa(tmp_path / "x.arpa", words, bigrams))


@pytest.mark.parametrize(("name", "number"), [("eos", 99), ("eos", "x"), ("unk", -1), ("bos", 1)])
def test_a_folder_whose_numbers_are_wrong_is_refused(name, number, written):
    _, path = written("stream", "folder")
    settings = json.loads((path / "ngram.json").read_text())
    (path / "ngram.json").write_text(json.dumps(settings | {name: number}))
    with pytest.raises(ValueError, match=r"is not a whole n-gram model: eos, bos and unk must be different numbers of"):
        read_bigram(path)


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
