"""Targets: P̂(· | short), the restricted model's probabilities."""

from imm.targets.base import Target, Weakened
from imm.targets.classifier import Classifier
from imm.targets.ngram import Ngram
from imm.targets.pomdp import PomdpPolicy
from imm.targets.scores import Scores
from imm.targets.table import Table

__all__ = ["Classifier", "Ngram", "PomdpPolicy", "Scores", "Table", "Target", "Weakened"]
