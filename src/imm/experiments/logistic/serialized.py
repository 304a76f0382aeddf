"""Fig. computation: serialized IMM, whose gradient comes from the primary pass, beside sampled IMM and noising."""

from collections.abc import Sequence

from imm.experiments.logistic.settings import WORLD
from imm.experiments.study import Figure, Row, Settings, Study

NAME = "logistic-serialized"
METHODS = ("noising", "imm-serialized", "imm")


def pieces(settings: Settings) -> list[Row]:
    """Each method at each size."""
    return [{"method": method, "n": n} for n in settings["sizes"] for method in METHODS]


def run(settings: Settings, piece: Row) -> Sequence[Row]:
    """One method at one size."""
    from imm.experiments.logistic import runs as logistic

    return [{**piece, **logistic.cell(settings, NAME, piece["n"], piece["method"], settings["ratio"])}]


STUDY = Study(
    name=NAME,
    title="Serialized beside sampled IMM and noising (Fig. computation)",
    settings={
        **WORLD,
        "sizes": [2, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50],
        # "a fixed λ=0.7 was used for these results": the ratio λ/(1+λ), as everywhere in the logistic study.
        # "we can do this every n iterations": the correction is refreshed every n steps.
        "ratio": 0.7,
        "runs": 300,
    },
    quick={"sizes": [2, 5, 10, 20], "runs": 100, "steps": 1000},
    pieces=pieces,
    run=run,
    figure=Figure(x="n", x_label="data size n", y_label="test accuracy, %"),
)
