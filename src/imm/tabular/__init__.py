"""Tables: a new model that sees all features, trained with the help of an old one that sees fewer."""

from imm.tabular.classifier import IMMClassifier
from imm.tabular.regressor import IMMRegressor

__all__ = ["IMMClassifier", "IMMRegressor"]
