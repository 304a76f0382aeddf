"""Experiments: one module for each table or figure of the paper."""

from imm.experiments import (
    bert_glue,
    cartpole_velocities,
    counterexample,
    grid_heatmap,
    grid_quality,
    grid_reward,
    grid_rivals,
    grid_strength,
    lm_low_data,
    logistic_accuracy,
    logistic_alpha,
    logistic_fixed_lambda,
    logistic_lambda,
    logistic_planes,
    logistic_quality,
    logistic_restricted,
    logistic_serialized,
    lstm_bigram,
    lstm_perplexity,
    lstm_regimes,
    serialized_stability,
    tabular_rivals,
)
from imm.experiments.runner import reproduce
from imm.experiments.study import Figure, Map, Planes, Row, Scorecard, Settings, Study
from imm.files import write_whole

STUDIES = (
    counterexample.STUDY,
    logistic_accuracy.STUDY,
    logistic_restricted.STUDY,
    logistic_lambda.STUDY,
    logistic_quality.STUDY,
    logistic_serialized.STUDY,
    logistic_fixed_lambda.STUDY,
    logistic_alpha.STUDY,
    logistic_planes.STUDY,
    serialized_stability.STUDY,
    lstm_perplexity.STUDY,
    lstm_bigram.STUDY,
    lstm_regimes.STUDY,
    bert_glue.STUDY,
    lm_low_data.STUDY,
    grid_heatmap.STUDY,
    grid_reward.STUDY,
    grid_quality.STUDY,
    grid_strength.STUDY,
    grid_rivals.STUDY,
    tabular_rivals.STUDY,
    cartpole_velocities.STUDY,
)
"""What ``imm reproduce --list`` names, in that order; ``imm demo`` runs one more, :mod:`imm.experiments.demo`."""

__all__ = ["STUDIES", "Figure", "Map", "Planes", "Row", "Scorecard", "Settings", "Study", "reproduce", "write_whole"]
