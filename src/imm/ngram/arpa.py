"""ARPA files: n-gram models of KenLM, SRILM and others as targets, and ours for them.

A line is ``log10 P(word|context)``, the n-gram, and ``log10`` of the context's back-off weight; a word that is not
listed after a context has ``weight · P(word|context without its first word)``. As in
:class:`~imm.ngram.trie.Trie`, but that the probability is listed whole: the discounted part is what is left
when the back-off's share is taken away. (In models that do not interpolate that may be negative.)
"""

import gzip
import sys
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from imm.files import remove_leftovers, whole_file
from imm.ngram.keys import Ints
from imm.ngram.model import About, Ngram
from imm.ngram.trie import Floats, Level, Trie, word_bits

NEVER = -99.0
"""What stands for the logarithm of zero."""


def write_arpa(model: Ngram, path: Path | str) -> None:
    """Writes an ARPA file, compressed if its name ends in ``.gz``; it appears whole or not at all."""
    path, trie = Path(path), model.trie
    words = [str(word) for word in model.classes]
    broken = next((word for word in words if len(word.encode().split()) != 1), None)
    if broken is not None:
        raise ValueError(f"an ARPA file cannot hold the word {broken!r}: white space separates words there")
    if model.about.bos is None and "<s>" in words:
        trie = _without(trie, words.index("<s>"))
    sizes = [len(trie.base), *(len(level.keys) for level in trie.levels)]
    with whole_file(path) as raw, _compressed(raw, path) as file:
        counts = "".join(f"ngram {order}={size}\n" for order, size in enumerate(sizes, 1))
        file.write(f"\\data\\\n{counts}".encode())
        for order in range(1, model.order + 1):
            file.write(f"\n\\{order}-grams:\n".encode())
            for piece in _lines(trie, order, words):
                file.write(piece.encode())
        file.write(b"\n\\end\\\n")
    remove_leftovers(path)


def _without(trie: Trie, start: int) -> Trie:
    """The same without ``<s>``, which stands for a sentence's beginning in an ARPA file and is never predicted."""
    if any((level.keys & ((1 << trie.bits) - 1) == start).any() for level in trie.levels):
        raise ValueError(
            "an ARPA file cannot hold <s> as a word that stands in the text: it is a sentence's beginning there"
        )
    return trie.without(np.arange(len(trie.base)) == start)


def _compressed(raw: IO[bytes], path: Path) -> IO[bytes] | gzip.GzipFile:
    # No name and no time inside: the same model gives the same bytes.
    return gzip.GzipFile("", "wb", 6, raw, mtime=0) if path.suffix == ".gz" else raw


def _lines(trie: Trie, order: int, words: list[str], at_once: int = 1 << 17) -> Iterator[str]:
    grams = trie.words(order)
    weights = _log10(trie.missing[order - 1]) if order < trie.order else None
    for i in range(0, len(grams), at_once):
        some = grams[i : i + at_once]
        log_p = _log10(trie.score(some[:, :-1], some[:, -1])).tolist()
        texts = [" ".join([words[word] for word in gram]) for gram in some.tolist()]
        if weights is None:
            yield "".join(map("%.7f\t%s\n".__mod__, zip(log_p, texts, strict=True)))
        else:
            yield "".join(
                map("%.7f\t%s\t%.7f\n".__mod__, zip(log_p, texts, weights[i : i + at_once].tolist(), strict=True))
            )


def _log10(p: Floats) -> NDArray[np.float64]:
    out = np.full(len(p), NEVER)
    np.log10(p, out=out, where=p > 0, dtype=np.float64)
    return out


def read_arpa(path: Path | str) -> Ngram:
    """The model of an ARPA file (``.gz`` too) as a target; its classes are the file's words, in its order."""
    path = Path(path)
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        reader = _Reader(path, file)
        try:
            sizes = reader.sizes()
            _, log_p, log_weight = reader.section(1, sizes[0])
            base = _power(log_p)
            names = {reader.decoded(word): number for word, number in reader.numbers.items()}
            bos = names.get("<s>")
            if bos is not None:
                base[bos] = 0  # some write 0 or -99 there: <s> is never predicted
            trie = Trie(base, (), ())
            for order, size in enumerate(sizes[1:], 2):
                missing = _power(log_weight)
                grams, log_p, log_weight = reader.section(order, size)
                trie, log_weight = _extend(trie, grams, _power(log_p), missing, log_weight, reader)
            reader.expect(b"\\end\\")
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path} cannot be read as an ARPA file: {error}") from None
    eos = names.get("</s>", names.get("<eos>"))
    unk = names.get("<unk>", names.get("<UNK>"))
    if eos is None:
        bos = None
    return Ngram(trie, list(names), About("arpa", eos, bos, unk, None, (None,) * len(sizes)))


def _extend(
    trie: Trie, grams: Ints, p: Floats, missing: Floats, log_weight: Floats, reader: "_Reader"
) -> tuple[Trie, Floats]:
    """The trie with one order more; n-grams are put in order, and their back-off weights with them."""
    parent = trie.find(list(grams[:, :-1].T))
    if (parent < 0).any():
        gram = [list(reader.numbers)[word] for word in grams[int((parent < 0).argmax())]]
        raise ValueError(f"{reader.path} has {_shown(b' '.join(gram))}, but not {_shown(b' '.join(gram[:-1]))}")
    values = p - missing[parent] * trie.score(grams[:, 1:-1], grams[:, -1])
    keys = (parent << word_bits(len(trie.base))) | grams[:, -1]
    order = np.argsort(keys, kind="stable")
    if (np.diff(keys[order]) == 0).any():
        raise ValueError(f"{reader.path} has the same {grams.shape[1]}-gram twice")
    level = Level(keys[order], values[order])
    return Trie(trie.base, (*trie.levels, level), (*trie.missing, missing)), log_weight[order]


def _power(log10: Floats) -> NDArray[np.float64]:
    p: NDArray[np.float64] = 10.0**log10
    p[log10 <= NEVER] = 0
    return p


def _shown(text: bytes) -> str:
    return repr(text.decode(errors="replace")[:60])


class _Reader:
    """Goes through the lines; errors name the file and what was wrong.

    Lines are bytes: as everywhere in this package, only ASCII's white space separates words.

    Attributes:
        numbers: of the words, in the order of the file's 1-grams.
    """

    def __init__(self, path: Path, file: Iterable[bytes]) -> None:
        self.path = path
        self.numbers: dict[bytes, int] = {}
        self._lines = (text for line in file if (text := line.strip()))

    def decoded(self, word: bytes) -> str:
        """A word as text."""
        try:
            return word.decode()
        except UnicodeDecodeError:
            raise ValueError(f"{self.path} is not UTF-8: it has the word {word[:60]!r}") from None

    def expect(self, wanted: bytes) -> None:
        """Refuses a next line that is another."""
        line = next(self._lines, b"the end of the file")
        if line != wanted:
            raise ValueError(f"{self.path}: expected {wanted.decode()}, found {_shown(line)}")

    def sizes(self) -> list[int]:
        """How many n-grams of each order there are; stops after the first section's title."""
        if all(line.removeprefix(BOM_UTF8) != b"\\data\\" for line in self._lines):  # goes on until it is found
            raise ValueError(f"{self.path} is not an ARPA file: it has no \\data\\")
        sizes: list[int] = []
        for line in self._lines:
            if line == b"\\1-grams:":
                break
            name, _, size = line.partition(b"=")
            if name.split() != [b"ngram", b"%d" % (len(sizes) + 1)] or not size.strip().isdigit():
                raise ValueError(f"{self.path}: expected 'ngram {len(sizes) + 1}=...', found {_shown(line)}")
            sizes.append(int(size))
        if len(sizes) < 2:
            raise ValueError(f"{self.path} must have n-grams of order 2 at least, has order {len(sizes)}")
        return sizes

    def section(self, order: int, size: int) -> tuple[Ints, Floats, Floats]:
        """The n-grams ``[size, order]``, log10 P and log10 back-off weights; stops after the last of them."""
        if order > 1:
            self.expect(b"\\%d-grams:" % order)
        rows = [line.split() for line in islice(self._lines, min(size, sys.maxsize))]
        bad = next((row for row in rows if not order + 1 <= len(row) <= order + 2), None)
        if len(rows) != size or bad is not None:
            found = f"{len(rows)} lines" if bad is None else _shown(b" ".join(bad))
            raise ValueError(f"{self.path}: expected {size} lines of {order}-grams, found {found}")
        if order == 1:
            self.numbers = {row[1]: word for word, row in enumerate(rows)}
            if len(self.numbers) != size:
                raise ValueError(f"{self.path} has the same 1-gram twice")
        try:
            grams = np.array([[self.numbers[word] for word in row[1 : order + 1]] for row in rows], np.int64)
            log_p = np.array([float(row[0]) for row in rows])
            log_weight = np.array([float(row[order + 1]) if len(row) > order + 1 else 0.0 for row in rows])
        except KeyError as unknown:
            raise ValueError(f"{self.path}: {_shown(unknown.args[0])} is in a {order}-gram, but not a 1-gram") from None
        except ValueError as error:
            raise ValueError(f"{self.path}: among the {order}-grams, {error}") from None
        if not (np.isfinite(log_p) & (log_p <= 0)).all():
            raise ValueError(f"{self.path}: among the {order}-grams is a log10 probability above 0 or not finite")
        if not (np.isfinite(log_weight) & (log_weight < -NEVER)).all():
            raise ValueError(f"{self.path}: among the {order}-grams is a log10 weight above {-NEVER:.0f} or not finite")
        return grams.reshape(size, order), log_p, log_weight
