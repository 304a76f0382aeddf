"""An n-gram that is there already, in a folder or an ARPA file; a bigram made ready for one stream of words."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from imm.language.corpus import EOS, UNK, Vocabulary
from imm.language.counting import fit_ngram
from imm.language.text import Progress
from imm.targets.arpa import read_arpa
from imm.targets.ngram import Ngram, load
from imm.validation import SUM_TOLERANCE


def read_ngram(path: Path) -> Ngram:
    """The n-gram of a folder that ``imm ngram fit`` wrote, or of an ARPA file."""
    if not path.exists():
        raise FileNotFoundError(f"there is no {path}")
    return load(path) if path.is_dir() else read_arpa(path)


def read_bigram(path: Path, level: str = "word") -> Ngram:
    """The bigram of a folder that ``imm ngram fit`` wrote, or of an ARPA file.

    Its words are then ``<unk>``, ``<eos>``, and the others: of a folder in its order, that of falling frequency, of a
    file by falling probability of the last back-off. ``<s>`` and ``</s>`` are both ``<eos>``: the one is never
    predicted, and nothing follows the other. What is otherwise is refused.
    """
    given = read_ngram(path)
    _check(given, path, level)
    unk, eos, bos = given.about.unk, given.about.eos, given.about.bos
    order = np.arange(len(given.classes)) if path.is_dir() else np.argsort(-given.trie.base, kind="stable")
    others = [word for word in order.tolist() if word not in (unk, eos, bos)]
    names = np.ones(len(given.classes), np.int64)
    names[others] = np.arange(2, 2 + len(others))
    if unk is not None:
        names[unk] = 0
    words = [UNK, EOS["stream"], *(str(given.classes[word]) for word in others)]
    stream = given.renamed(names.tolist(), words)
    return Ngram(stream.trie, words, replace(stream.about, convention="stream", eos=1, bos=None, unk=0))


def bigram_of_words(vocabulary: Vocabulary, text: Path, ngram: Path | None, progress: Progress | None = None) -> Ngram:
    """Returns a bigram over a model's words, numbered as the model numbers them.

    Args:
        vocabulary: the model's.
        text: what it is counted on, if no other is given.
        ngram: a bigram that is there already; refused if its words are not the model's.
        progress: is told how many bytes of how many were read.
    """
    known = [word for word in vocabulary.words if word not in (UNK, EOS["stream"])]
    if ngram is None:
        bigram = fit_ngram(text, 2, vocabulary=known, level=vocabulary.level, progress=progress)
    else:
        bigram = read_bigram(ngram, vocabulary.level)
    words = [str(word) for word in bigram.classes]
    number = {word: i for i, word in enumerate(vocabulary.words)}
    if number.keys() != set(words):
        other = min(number.keys() ^ set(words))
        raise ValueError(
            f"{ngram} has {len(words):,} words and the model {len(number):,}, and they are not the same: {other} …"
        )
    return bigram.renamed([number[word] for word in words], list(vocabulary.words))


def _check(given: Ngram, path: Path, level: str) -> None:
    """Refuses what is no bigram of lines of words, or characters."""
    about, trie = given.about, given.trie
    if given.order != 2:
        raise ValueError(f"{path} holds n-grams of order {given.order}; a bigram is needed")
    if about.eos is None:
        raise ValueError(f"{path} has no word for the end of a line, </s> or <eos>")
    ours = (about.unk, about.eos, about.bos)
    words = [str(word) for number, word in enumerate(given.classes) if number not in ours]
    for word in (UNK, EOS["stream"]):
        if word in words:
            raise ValueError(f"{path} has the word {word}, which stands for something else here")
    if level == "char" and (longer := next((word for word in words if len(word) > 1), None)):
        raise ValueError(f"{path} has the word {longer}, and with level char every word is one character")
    first, second = trie.words(2).T
    if about.bos is not None and bool(((first == about.eos) | (second == about.bos)).any()):
        raise ValueError(f"{path} has bigrams that begin with </s> or end with <s>, which stand between lines here")
    total = np.bincount(first, trie.levels[0].values, len(trie.base)) + trie.missing[0] * trie.base.sum()
    wrong = np.flatnonzero(~(np.abs(total - 1) <= SUM_TOLERANCE))
    if len(wrong):
        word, found = given.classes[wrong[0]], total[wrong[0]]
        raise ValueError(f"{path}: what follows {word} must have probabilities that sum to 1, got {found:.6g}")
