"""What else can be done with an old model: each method a function, all tuned by the same cross-validation."""

from imm.tabular.rivals.methods import BEGINS, METHODS, NEED_OLD, Method, Predictor, losses_of
from imm.tabular.rivals.old_data import WEIGHTS, WITH_OLD_DATA
from imm.tabular.rivals.training_rows import Table

__all__ = [
    "BEGINS",
    "METHODS",
    "NEED_OLD",
    "WEIGHTS",
    "WITH_OLD_DATA",
    "Method",
    "Predictor",
    "Table",
    "losses_of",
]
