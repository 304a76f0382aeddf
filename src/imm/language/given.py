"""A bigram that is there already, in a folder or an ARPA file, made ready for one stream of words."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from imm.language.corpus import EOS, UNK
from imm.targets.arpa import read_arpa
from imm.targets.ngram import Ngram, load


def read_bigram(path: Path) -> Ngram:
    """The bigram of a folder that ``imm ngram fit`` wrote, or of an ARPA file.

    Its words are then ``<unk>``, ``<eos>``, and the others by falling probability of the last back-off. ``<s>`` and
    ``</s>`` are both ``<eos>``: the one is never predicted, and nothing follows the other.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no {path}")
    given = read_arpa(path) if path.is_file() else load(path)
    about = given.about
    if given.order != 2:
        raise ValueError(f"{path} holds n-grams of order {given.order}; a bigram is needed")
    if about.eos is None:
        raise ValueError(f"{path} has no word for the end of a line, </s> or <eos>")
    special = (about.unk, about.eos, about.bos)
    others = [word for word in np.argsort(-given.trie.base, kind="stable").tolist() if word not in special]
    names = np.ones(len(given.classes), np.int64)
    names[others] = np.arange(2, 2 + len(others))
    if about.unk is not None:
        names[about.unk] = 0
    words = [UNK, EOS["stream"], *(str(given.classes[word]) for word in others)]
    stream = given.renamed(names.tolist(), words)
    return Ngram(stream.trie, words, replace(stream.about, convention="stream", eos=1, bos=None, unk=0))
