"""Modified Kneser-Ney n-grams from token arrays, with the whole next-word distribution for batches of contexts."""

from imm.targets.ngram.counting import Counter, Counts
from imm.targets.ngram.discounts import Discounts
from imm.targets.ngram.evaluation import Evaluation, evaluate
from imm.targets.ngram.model import CONVENTIONS, About, Ngram, Parts
from imm.targets.ngram.saving import load, save
from imm.targets.ngram.smoothing import ZERO_COUNTS, check_zero_counts

__all__ = [
    "CONVENTIONS",
    "ZERO_COUNTS",
    "About",
    "Counter",
    "Counts",
    "Discounts",
    "Evaluation",
    "Ngram",
    "Parts",
    "check_zero_counts",
    "evaluate",
    "load",
    "save",
]
