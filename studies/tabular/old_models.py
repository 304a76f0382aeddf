"""The old models of ``tabular-rivals``: good, weak, shifted, wrong."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from imm.experiments.study import Settings
from imm.tabular.rivals.training_rows import OldRows
from studies.tabular.tables import Draw

Array = NDArray[Any]


def old_model(settings: Settings, kind: str, made: Draw) -> tuple[Array, OldRows]:
    """Its probabilities at every row of the data set, ``[rows, 2]``, and the rows it was fitted on.

    Logistic regression with scikit-learn's penalty on standardised short features.

    - good: on all rows of the pool.
    - weak: on the first few of them.
    - shifted: on the half of them with the largest values of one extended feature.
    - wrong: on all of them, every label turned round.
    """
    rows, y = made.pool, made.y
    if kind == "weak":
        rows = rows[: settings["weak"]]
    elif kind == "shifted":
        rows = rows[np.argsort(-made.x[rows, made.shift], kind="stable")[: len(rows) // 2]]
    elif kind == "wrong":
        y = 1 - y
    short = made.x[:, made.short]
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(short[rows], y[rows])
    proba: Array = model.predict_proba(short)
    return proba, OldRows(short[rows], y[rows])
