"""n-grams from text files, folders and ARPA files, and their perplexity on other texts."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from imm.language.vocabulary import BOS, EOS, UNK, Tokens, Vocabulary, check_level, encode, special, words_of
from imm.ngram import Counter, Evaluation, Ngram, check_zero_counts, evaluate, load
from imm.ngram.arpa import read_arpa
from imm.progress import Progress
from imm.validation import SUM_TOLERANCE, check_count


def fit_ngram(
    path: Path | str,
    order: int,
    convention: str = "stream",
    *,
    min_count: int = 1,
    vocabulary: Sequence[str] | None = None,
    zero_counts: str = "one",
    level: str = "word",
    progress: Progress | None = None,
) -> Ngram:
    """Counts the n-grams of a text file, one sentence a line, and smooths them.

    Args:
        path: UTF-8 text; words are what white space separates.
        order: of the n-grams.
        convention: ``stream`` or ``sentence``; see :mod:`imm.ngram.smoothing`.
        min_count: words that occur less often are ``<unk>``; not together with a vocabulary.
        vocabulary: the only words besides ``<unk>`` and the end of line; None for those of the file.
        zero_counts: see :func:`imm.ngram.smoothing.smooth`.
        level: ``word``, or ``char`` for n-grams of characters.
        progress: is told how many bytes of how many were read.

    Returns:
        A model whose classes are ``<unk>``, the end of line, ``<s>`` in ``sentence``, then words by falling frequency
        (those of equal frequency as they come first).
    """
    first = [UNK, *special(convention)]
    if check_count(min_count, "min_count") > 1 and vocabulary is not None:
        raise ValueError("min_count and vocabulary both say which words are known: give one of them")
    check_level(level)
    check_zero_counts(zero_counts)
    numbers = _Numbers((word.encode(), number) for number, word in enumerate(first))
    counter = Counter(order, eos=1, bos=2 if convention == "sentence" else None)
    frequency = np.zeros(len(first), np.int64)
    for words in words_of(Path(path), convention, progress, level):
        tokens = np.fromiter(map(numbers.__getitem__, words), np.int32, len(words))
        new = np.bincount(tokens, minlength=len(numbers))
        new[: len(frequency)] += frequency
        frequency = new
        counter.add(tokens)
    names, kept = _names(numbers, frequency, len(first), min_count, vocabulary)
    counts = counter.counts()
    del counter, numbers  # large, and not needed any more
    counts = counts.renamed(names)
    return Ngram.from_counts(counts, kept, unk=0, zero_counts=zero_counts)


class _Numbers(dict[bytes, int]):
    """Gives each new word the next number."""

    def __missing__(self, word: bytes) -> int:
        number = self[word] = len(self)
        return number


def _names(
    numbers: dict[bytes, int],
    frequency: NDArray[np.int64],
    n_first: int,
    min_count: int,
    vocabulary: Sequence[str] | None,
) -> tuple[NDArray[np.int64], list[str]]:
    """The final number of each word that occurs, 0 for unknown ones, and the words that are kept, in that order."""
    words = list(numbers)
    ranked = np.argsort(-frequency[n_first:], kind="stable") + n_first
    ranked = ranked[frequency[ranked] >= min_count]
    if vocabulary is not None:
        allowed = {word.encode() for word in vocabulary}
        ranked = np.array([rank for rank in ranked.tolist() if words[rank] in allowed], np.int64)
    kept = [words[number].decode() for number in [*range(n_first), *ranked.tolist()]]
    if vocabulary is not None:
        have = set(kept)
        kept += [word for word in dict.fromkeys(vocabulary) if word not in have]
    names = np.zeros(len(words), np.int64)
    names[:n_first] = np.arange(n_first)
    names[ranked] = np.arange(n_first, n_first + len(ranked))
    return names, kept


class Perplexity(NamedTuple):
    """How well a text is predicted, and how many of its words are not in the model's vocabulary."""

    evaluation: Evaluation
    unknown: int


def perplexity(model: Ngram, path: Path | str, progress: Progress | None = None, level: str = "word") -> Perplexity:
    """How well ``model`` predicts a text file, one sentence a line, ``level`` being that of :func:`fit_ngram`.

    Words that are not in the vocabulary are predicted as ``<unk>``, and are counted in the perplexity.
    """
    words, about = [str(word) for word in model.classes], model.about
    convention = "stream" if about.bos is None else "sentence"
    for number, name in ((about.unk, UNK), (about.eos, EOS[convention]), (about.bos, BOS)):
        if number is not None:  # an ARPA file may call it otherwise
            words[number] = name
    vocabulary = Vocabulary(words, convention, level)
    unknown = 0

    def pieces() -> Iterator[Tokens]:
        nonlocal unknown
        for tokens, n_unknown in encode(path, vocabulary, progress):
            unknown += n_unknown
            yield tokens

    return Perplexity(evaluate(model, pieces()), unknown)


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
