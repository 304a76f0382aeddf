"""Language: text files, vocabularies, n-grams counted from them, and full models trained to match these."""

from imm.language.corpus import Vocabulary, encode
from imm.language.counting import fit_ngram, perplexity
from imm.language.data import data_file, data_folder
from imm.language.diagnosis import BigramDiagnosis, diagnose
from imm.language.induced import InducedBigram, induced_ngram
from imm.language.model import LanguageModel, load_model, save_model
from imm.language.settings import METHODS, PRESETS, Settings
from imm.language.texts import Texts
from imm.language.training import DivergenceError, Run

__all__ = [
    "METHODS",
    "PRESETS",
    "BigramDiagnosis",
    "DivergenceError",
    "InducedBigram",
    "LanguageModel",
    "Run",
    "Settings",
    "Texts",
    "Vocabulary",
    "data_file",
    "data_folder",
    "diagnose",
    "encode",
    "fit_ngram",
    "induced_ngram",
    "load_model",
    "perplexity",
    "save_model",
]
