"""n-grams from text files, and their perplexity on others, in one pass and bounded memory."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from imm.language.corpus import BOS, EOS, UNK, Tokens, Vocabulary, check_level, encode, special, words_of
from imm.language.text import Progress
from imm.targets.ngram import Counter, Evaluation, Ngram, check_zero_counts, evaluate
from imm.validation import check_count


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
        convention: ``stream`` or ``sentence``; see :mod:`imm.targets.ngram.smoothing`.
        min_count: words that occur less often are ``<unk>``; not together with a vocabulary.
        vocabulary: the only words besides ``<unk>`` and the end of line; None for those of the file.
        zero_counts: see :func:`imm.targets.ngram.smoothing.smooth`.
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
