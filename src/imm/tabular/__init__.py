"""Tables: a new model that sees all features, trained with the help of an old one that sees fewer."""

from imm.tabular.choosing import Choice
from imm.tabular.classifier import IMMClassifier
from imm.tabular.induced import Diagnosis
from imm.tabular.linear import Linear
from imm.tabular.network import Network
from imm.tabular.reading import read_table
from imm.tabular.regressor import IMMRegressor
from imm.tabular.saved import Saved
from imm.tabular.saving import load

__all__ = [
    "Choice",
    "Diagnosis",
    "IMMClassifier",
    "IMMRegressor",
    "Linear",
    "Network",
    "Saved",
    "load",
    "read_table",
]
