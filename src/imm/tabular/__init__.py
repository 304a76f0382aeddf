"""Tables: a new model that sees all features, trained with the help of an old one that sees fewer."""

from imm.tabular.classifier import IMMClassifier
from imm.tabular.engines.linear import Linear
from imm.tabular.engines.network import Network
from imm.tabular.induced import Diagnosis
from imm.tabular.persistence import load
from imm.tabular.regressor import IMMRegressor
from imm.tabular.selection import Choice

__all__ = [
    "Choice",
    "Diagnosis",
    "IMMClassifier",
    "IMMRegressor",
    "Linear",
    "Network",
    "load",
]
