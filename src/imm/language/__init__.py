"""Language: text files, vocabularies, n-grams counted from them, and full models trained to match these."""

from imm.language.dataset import Texts
from imm.language.diagnosis import BigramDiagnosis, diagnose
from imm.language.induced import InducedBigram, induced_ngram
from imm.language.model import LanguageModel, load_model, save_model
from imm.language.ngram_files import fit_ngram, perplexity
from imm.language.settings import METHODS, PRESETS, Settings
from imm.language.trained import TrainedModel, load
from imm.language.training import DivergenceError, Run
from imm.language.vocabulary import Vocabulary, encode

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
    "TrainedModel",
    "Vocabulary",
    "diagnose",
    "encode",
    "fit_ngram",
    "induced_ngram",
    "load",
    "load_model",
    "perplexity",
    "save_model",
]
