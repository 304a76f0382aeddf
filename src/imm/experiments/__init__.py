"""Experiments: the tables and figures of the paper, a folder for each world."""

from imm.experiments import counterexample
from imm.experiments.glue import study as bert_glue
from imm.experiments.grid import heatmap, quality, reward, rivals, strength
from imm.experiments.logistic import (
    accuracy,
    alpha,
    fixed_lambda,
    lambda_selection,
    planes,
    restricted_task,
    serialized,
    serialized_stability,
)
from imm.experiments.logistic import quality as logistic_quality
from imm.experiments.lstm import bigram, perplexity, regimes
from imm.experiments.runner import reproduce
from imm.experiments.study import Figure, Map, Planes, Row, Scorecard, Settings, Study
from imm.files import write_whole

STUDIES = (
    counterexample.STUDY,
    accuracy.STUDY,
    restricted_task.STUDY,
    lambda_selection.STUDY,
    logistic_quality.STUDY,
    serialized.STUDY,
    fixed_lambda.STUDY,
    alpha.STUDY,
    planes.STUDY,
    serialized_stability.STUDY,
    perplexity.STUDY,
    bigram.STUDY,
    regimes.STUDY,
    bert_glue.STUDY,
    heatmap.STUDY,
    reward.STUDY,
    quality.STUDY,
    strength.STUDY,
    rivals.STUDY,
)
"""What ``imm reproduce --list`` names, in that order; ``imm demo`` runs one more, :mod:`imm.experiments.demo`."""

__all__ = ["STUDIES", "Figure", "Map", "Planes", "Row", "Scorecard", "Settings", "Study", "reproduce", "write_whole"]
