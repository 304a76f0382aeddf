"""Modified Kneser-Ney n-grams from token arrays, with the whole next-word distribution for batches of contexts."""

from imm.ngram.counting import Counter, Counts
from imm.ngram.discounts import Discounts
from imm.ngram.evaluation import Evaluation, evaluate
from imm.ngram.model import CONVENTIONS, About, Ngram, Parts
from imm.ngram.persistence import load, save
from imm.ngram.smoothing import ZERO_COUNTS, check_zero_counts

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
