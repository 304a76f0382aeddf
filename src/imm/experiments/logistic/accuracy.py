"""Fig. logreg: test accuracy over the size of the data, with the paper's λ schedule.

Also the statement beside it, that the gain is "equivalent to access to an average of 30% extra data": for each
size n, the size at which training without IMM reaches IMM's accuracy, found on the curve without IMM.
"""

from collections.abc import Sequence

from imm.experiments.logistic.settings import WORLD
from imm.experiments.study import Figure, Row, Settings, Study

NAME = "logistic-accuracy"
METHODS = ("none", "interpolation", "noising", "imm")
BEYOND = "accuracy without IMM beyond the figure, %"


def pieces(settings: Settings) -> list[Row]:
    """Each method at each size, and beyond the figure's sizes the curve without IMM."""
    beyond = [{"method": "none", "quantity": BEYOND, "n": n} for n in settings["beyond"]]
    return beyond + [{"method": method, "n": n} for n in settings["sizes"] for method in METHODS]


def run(settings: Settings, piece: Row) -> Sequence[Row]:
    """One method at one size."""
    from imm.experiments.logistic import runs as logistic
    from imm.strength import Linear

    ratio = Linear(*settings["schedule"]).ratio(piece["n"]) if piece["method"] != "none" else 0.0
    figures = logistic.cell(settings, NAME, piece["n"], piece["method"], ratio)
    if piece.get("quantity") == BEYOND:
        return [{**piece, "value": figures["mean"]}]
    return [{**piece, "ratio": ratio, **figures}]


def with_extra_data(rows: Sequence[Row]) -> list[Row]:
    """Adds how much more data without IMM gives IMM's accuracy, in percent: at each size, and the average."""
    import numpy as np

    without = sorted((row["n"], row.get("mean", row.get("value"))) for row in rows if row["method"] == "none")
    sizes, means = np.array(without).T
    means = np.maximum.accumulate(means)
    found = [
        {"method": "imm", "quantity": "extra data, %", "n": row["n"], "value": 100 * (equal / row["n"] - 1)}
        for row in rows
        if row["method"] == "imm" and row["mean"] <= means[-1]
        for equal in [float(np.interp(row["mean"], means, sizes))]
    ]
    average = float(np.mean([row["value"] for row in found])) if found else None
    return [*rows, *found, {"method": "imm", "quantity": "extra data, %", "n": "average", "value": average}]


STUDY = Study(
    name=NAME,
    title="Test accuracy over data size, λ by the paper's schedule (Fig. logreg)",
    settings={
        **WORLD,
        # "We sweep a range of n from 2 to 50"
        "sizes": [2, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50],
        "beyond": [60, 80, 100],
        # "10th to 90th percentiles of 300 runs"
        "runs": 300,
        # "λ/(1+λ) = -0.0111 n + 0.818"
        "schedule": [-0.0111, 0.818],
    },
    quick={"sizes": [2, 5, 10, 20], "beyond": [40], "runs": 100, "steps": 1000},
    pieces=pieces,
    run=run,
    summarise=with_extra_data,
    paper=[{"method": "imm", "quantity": "extra data, %", "n": "average", "value": 30}],
    figure=Figure(x="n", x_label="data size n", y_label="test accuracy, %"),
)
