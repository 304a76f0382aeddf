"""From text to tokens: a vocabulary of words or characters, and files as integers, one sentence a line."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from imm.language.text_file import blocks
from imm.progress import Progress

Tokens = NDArray[np.int32]

UNK = "<unk>"
EOS = {"stream": "<eos>", "sentence": "</s>"}
BOS = "<s>"
LEVELS = ("word", "char")


class Vocabulary:
    """Words and their numbers.

    Args:
        words: different, with ``<unk>`` and the convention's end of line among them: ``<eos>`` in ``stream``,
            ``</s>`` in ``sentence``, which also needs ``<s>``.
        convention: ``stream`` or ``sentence``.
        level: ``word``, or ``char`` where each character of a text is a word, white space too.

    Attributes:
        eos, unk, bos: the numbers of the end of line, of unknown words, and of ``<s>`` (None in ``stream``).

    Example:
        >>> vocabulary = Vocabulary(["<unk>", "<eos>", "cat", "the"])
        >>> vocabulary.encode(["the", "dog"]).tolist()
        [3, 0]
    """

    def __init__(self, words: Sequence[str], convention: str = "stream", level: str = "word") -> None:
        self.words = tuple(words)
        self.convention = convention
        self.level = check_level(level)
        self._numbers = {word.encode(): number for number, word in enumerate(self.words)}
        needed = [UNK, *special(convention)]
        lacking = [word for word in needed if word.encode() not in self._numbers]
        if lacking or len(self._numbers) != len(self.words):
            wrong = f"lacks {', '.join(lacking)}" if lacking else "has a word twice"
            raise ValueError(f"the vocabulary {wrong}; a {convention} vocabulary needs different words with {needed}")
        self.unk = self._numbers[UNK.encode()]
        self.eos = self._numbers[EOS[convention].encode()]
        self.bos = self._numbers.get(BOS.encode()) if convention == "sentence" else None

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, words: Iterable[str]) -> Tokens:
        """Returns the numbers of words; that of ``<unk>`` for those that are not here."""
        if isinstance(words, str):
            raise TypeError(f"words must be a list of words, got the string {words[:40]!r}: split it first")
        return self.encode_bytes([word.encode() for word in words])

    def encode_bytes(self, words: Sequence[bytes]) -> Tokens:
        """The same for words as UTF-8."""
        return np.fromiter(map(self._numbers.get, words, repeat(self.unk)), np.int32, len(words))

    def unknown(self, words: Sequence[bytes], tokens: Tokens) -> int:
        """How many of the words are not here; ``<unk>`` itself is."""
        places = np.flatnonzero(tokens == self.unk).tolist()
        return sum(words[place] != UNK.encode() for place in places)


def special(convention: str) -> tuple[str, ...]:
    """The words that are put in by us: they must not stand in a text."""
    if convention not in EOS:
        raise ValueError(f"convention must be one of {', '.join(EOS)}, got {convention!r}")
    return (EOS[convention], BOS) if convention == "sentence" else (EOS[convention],)


def check_level(level: str) -> str:
    """Refuses what is not a level."""
    if level not in LEVELS:
        raise ValueError(f"level must be one of {', '.join(LEVELS)}, got {level!r}")
    return level


def words_of(
    path: Path, convention: str, progress: Progress | None = None, level: str = "word"
) -> Iterator[list[bytes]]:
    """The words or characters of a file, some at a time, the end of each line among them."""
    eos, *others = (word.encode() for word in special(convention))
    some = False
    lines = 0
    for block in blocks(path, progress):
        if level == "char":
            words = [eos if c == "\n" else c.encode() for c in block.decode().replace("\r\n", "\n")]
        else:
            if any(word in block for word in (eos, *others)):
                _refuse_special(path, block, (eos, *others), lines)
            words = block.replace(b"\n", b" " + eos + b" ").split()
        ends = block.count(b"\n")
        some = some or len(words) > ends
        lines += ends
        yield words
    if not some:
        raise ValueError(f"{path} has no words, only {lines} empty lines")


def _refuse_special(path: Path, block: bytes, words: Sequence[bytes], lines: int) -> None:
    for number, line in enumerate(block.split(b"\n"), lines + 1):
        found = next((word for word in words if word in line.split()), None)
        if found is not None:
            raise ValueError(
                f"{path}: line {number} has the word {found.decode()}, which stands for a line's end or beginning here;"
                f" take it out of the text"
            )


def encode(path: Path | str, vocabulary: Vocabulary, progress: Progress | None = None) -> Iterator[tuple[Tokens, int]]:
    """The tokens of a file, some at a time, and how many of them are unknown words."""
    for words in words_of(Path(path), vocabulary.convention, progress, vocabulary.level):
        tokens = vocabulary.encode_bytes(words)
        yield tokens, vocabulary.unknown(words, tokens)
