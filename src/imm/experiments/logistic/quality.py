"""Fig. logreg-quality: a worse restricted model still helps, if λ is chosen for it.

"To tune λ more carefully" (Appendix quality) is done by a schedule for each quality, fitted by
``logistic-lambda`` on data of its own.
"""

from collections.abc import Sequence

from imm.experiments.logistic.settings import QUALITIES, WORLD
from imm.experiments.study import Figure, Row, Settings, Study

NAME = "logistic-quality"


def pieces(settings: Settings) -> list[Row]:
    """Each quality, and no IMM, at each size."""
    arms: list[Row] = [{"method": "none", "quality": "none"}]
    arms += [{"method": "imm", "quality": quality} for quality in QUALITIES]
    return [{**arm, "n": n} for n in settings["sizes"] for arm in arms]


def run(settings: Settings, piece: Row) -> Sequence[Row]:
    """One quality at one size."""
    from imm.experiments.logistic import runs as logistic
    from imm.strength import Linear

    if piece["method"] == "none":
        return [{**piece, "ratio": 0.0, **logistic.cell(settings, NAME, piece["n"], "none", 0.0)}]
    ratio = Linear(*settings["schedules"][piece["quality"]]).ratio(piece["n"])
    weaken = QUALITIES[piece["quality"]]
    return [{**piece, "ratio": ratio, **logistic.cell(settings, NAME, piece["n"], "imm", ratio, weaken)}]


STUDY = Study(
    name=NAME,
    title="Accuracy with restricted models of three qualities (Fig. logreg-quality)",
    settings={
        **WORLD,
        "sizes": [2, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50],
        # "At every dataset size, we perform 300 runs"
        "runs": 300,
        # high: the paper's. The others are not printed: fitted by logistic-lambda (slope, intercept).
        "schedules": {"high": [-0.0111, 0.818], "medium": [-0.00866, 0.802], "low": [-0.0153, 0.813]},
    },
    quick={"sizes": [2, 5, 10, 20], "runs": 100, "steps": 1000},
    pieces=pieces,
    run=run,
    figure=Figure(x="n", x_label="data size n", y_label="test accuracy, %", series="quality"),
)
