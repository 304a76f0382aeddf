"""Language: text files, vocabularies, and n-grams counted from them."""

from imm.language.corpus import Vocabulary, encode
from imm.language.counting import fit_ngram, perplexity
from imm.language.data import data_file, data_folder

__all__ = ["Vocabulary", "data_file", "data_folder", "encode", "fit_ngram", "perplexity"]
