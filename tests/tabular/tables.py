"""Small tables with an old model that sees the first columns only."""

from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge


@dataclass(frozen=True)
class Table:
    x: np.ndarray
    y: np.ndarray
    old: object
    """A fitted model on columns ``short``."""
    short: tuple[int, ...]
    x_test: np.ndarray
    y_test: np.ndarray
    plenty: tuple[np.ndarray, np.ndarray]
    """Short columns and labels of many other rows."""


def table(seed: int = 0, n: int = 60, features: int = 8, classes: int = 2, short: int = 2, noise: float = 1.0) -> Table:
    """``classes=0`` is regression."""
    rng = np.random.default_rng(seed)
    many = 2000
    x = rng.normal(size=(n + 2 * many, features))
    w = rng.normal(size=(features, max(classes, 1)))
    scores = x @ w
    if classes:
        y = (scores + noise * rng.gumbel(size=scores.shape)).argmax(1)
    else:
        y = scores[:, 0] + noise * rng.normal(size=len(x))
    old = LogisticRegression() if classes else Ridge()
    plenty = x[n : n + many, :short], y[n : n + many]
    return Table(x[:n], y[:n], old.fit(*plenty), tuple(range(short)), x[n + many :], y[n + many :], plenty)
