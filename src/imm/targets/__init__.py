"""Targets: P̂(· | short), the restricted model's probabilities."""

from imm.targets.base import Target, Weakened
from imm.targets.classifier import Classifier
from imm.targets.scores import Scores
from imm.targets.table import Table

__all__ = ["Classifier", "Scores", "Table", "Target", "Weakened"]
