"""The texts of a training run, as tokens of one vocabulary, and the bigram that is matched."""

import hashlib
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import torch
from torch import Tensor

from imm.language.ngram_files import fit_ngram, read_bigram
from imm.language.text_file import check_file, check_read_again
from imm.language.vocabulary import EOS, UNK, Vocabulary, check_level, encode, words_of
from imm.ngram import Ngram
from imm.progress import Progress
from imm.validation import check_count, check_fraction


@dataclass(frozen=True)
class Texts:
    """What a run is trained and judged on.

    Attributes:
        vocabulary: the words.
        bigram: the restricted model, over the same words.
        counts: how often each word stands in the bigram's text, ``[words]``; None if only the bigram is there.
        train, valid: tokens ``[n]``.
        test: tokens, or None.
        unknown: for each text, how many of its words are not in the vocabulary.
    """

    vocabulary: Vocabulary
    bigram: Ngram
    counts: Tensor | None
    train: Tensor
    valid: Tensor
    test: Tensor | None
    unknown: dict[str, int]

    @classmethod
    def read(
        cls,
        train: Path | str,
        valid: Path | str,
        test: Path | str | None = None,
        ngram_text: Path | str | None = None,
        ngram: Path | str | None = None,
        level: str = "word",
        min_count: int = 1,
        progress: Progress | None = None,
    ) -> Self:
        """Reads text files, one sentence a line.

        Args:
            train: what the model is trained on.
            valid: what training is steered by.
            test: what the trained model is judged on.
            ngram_text: what the bigram is counted on; the training text if None.
            ngram: a bigram instead, see :func:`~imm.language.ngram_files.read_bigram`; no other words are known.
            level: ``word`` or ``char``.
            min_count: words that occur less often in the training text and the bigram's together are ``<unk>``.
            progress: is told how many bytes of how many were read, for each pass over a file anew: those of the
                training text and the bigram's are read to count words first.
        """
        given = {"train": train, "valid": valid, "test": test}
        paths = {name: Path(path) for name, path in given.items() if path is not None}
        counted = Path(train if ngram_text is None else ngram_text)
        for path in paths.values():  # before a long one is counted
            check_file(path)
        for path in [] if ngram is not None else [paths["train"], counted]:
            check_read_again(path)
        check_count(min_count, "min_count")
        check_level(level)
        counts = None
        if ngram is None:
            bigram, counts = _count(Path(train), counted, level, min_count, progress)
        elif ngram_text is not None or min_count != 1:
            raise ValueError("a bigram has its own words and counts: give no ngram_text and no min_count with it")
        else:
            bigram = read_bigram(Path(ngram), level)
        vocabulary = Vocabulary([str(word) for word in bigram.classes], level=level)
        tokens, unknown = {}, {}
        for name, path in paths.items():
            tokens[name], unknown[name] = read_tokens(path, vocabulary, progress)
        return cls(vocabulary, bigram, counts, tokens["train"], tokens["valid"], tokens.get("test"), unknown)

    @property
    def judged(self) -> dict[str, Tensor]:
        """What models are judged on: ``valid``, and ``test`` if there is one."""
        return {"valid": self.valid} | ({} if self.test is None else {"test": self.test})

    def first(self, fraction: float, recount: bool = False) -> Self:
        """The same with the first part of the training text only; with ``recount`` the bigram is of that part too."""
        part = replace(self, train=self.train[: max(2, round(len(self.train) * check_fraction(fraction, "fraction")))])
        if not recount:
            return part
        about = self.bigram.about
        bigram = Ngram.fit(part.train, self.vocabulary.words, 2, eos=about.eos, unk=about.unk)
        return replace(part, bigram=bigram, counts=torch.bincount(part.train, minlength=len(self.vocabulary)))

    def fingerprint(self) -> str:
        """Tells these texts from others."""
        digest = hashlib.sha256("\n".join(self.vocabulary.words).encode())
        for tokens in (self.train, self.valid, self.test):
            digest.update(b"none" if tokens is None else str(len(tokens)).encode() + tokens.numpy().tobytes())
        trie = self.bigram.trie
        for array in (trie.base, *(array for level in trie.levels for array in (level.keys, level.values))):
            digest.update(array.tobytes())
        return digest.hexdigest()[:16]


def _count(train: Path, counted: Path, level: str, min_count: int, progress: Progress | None) -> tuple[Ngram, Tensor]:
    """The bigram of a text over its words and the training text's, and how often each of its words occurs."""
    frequency = everywhere = count_words(counted, level, progress)
    if counted.resolve() != train.resolve():
        everywhere = frequency + count_words(train, level, progress)
    known = [word.decode() for word, n in everywhere.items() if n >= min_count and word != UNK.encode()]
    if len(set(known) - {EOS["stream"]}) < 2:
        have = f"{train} has" if everywhere is frequency else f"{train} and {counted} together have"
        raise ValueError(f"{have} fewer than two different {level}s with min_count {min_count}: too few to learn")
    bigram = fit_ngram(counted, 2, vocabulary=known, level=level, progress=progress)
    counts = torch.tensor([frequency[str(word).encode()] for word in bigram.classes])
    counts[0] += frequency.total() - counts.sum()  # the first is <unk>
    return bigram, counts


def read_tokens(path: Path, vocabulary: Vocabulary, progress: Progress | None = None) -> tuple[Tensor, int]:
    """The tokens of a text file, ``[n]``, and how many of its words are not in the vocabulary: not all of them."""
    pieces = list(encode(path, vocabulary, progress))
    tokens = torch.from_numpy(np.concatenate([piece for piece, _ in pieces])).long()
    unknown = sum(n for _, n in pieces)
    n_words = int((tokens != vocabulary.eos).sum())
    if unknown == n_words:
        raise ValueError(
            f"{path}: none of its {n_words:,} {vocabulary.level}s is in the vocabulary of {len(vocabulary):,}"
        )
    return tokens, unknown


def count_words(path: Path, level: str, progress: Progress | None = None) -> Counter[bytes]:
    """How often each word of a text occurs, the line's end among them."""
    counts: Counter[bytes] = Counter()
    for words in words_of(path, "stream", progress, level):
        counts.update(words)
    return counts
