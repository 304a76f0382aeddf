"""Table noising-caveat-constant-lambda: with λ fixed, noising derails with more data and IMM does not."""

from collections.abc import Sequence

from imm.experiments.logistic.settings import WORLD
from imm.experiments.study import Figure, Row, Settings, Study

NAME = "logistic-fixed-lambda"
METHODS = ("none", "noising", "imm")

# n: (mean, below, above) for none, noising, IMM. Printed as "mean +below/-above".
PRINTED = {
    5: ((73.14, 16.17, 14.53), (76.85, 18.58, 13.15), (79.96, 14.99, 12.38)),
    10: ((84.17, 13.51, 10.86), (84.37, 7.40, 7.63), (88.65, 9.65, 7.68)),
    15: ((89.86, 8.86, 6.80), (86.17, 6.17, 5.53), (92.52, 6.19, 4.81)),
    20: ((92.35, 7.35, 5.32), (86.99, 5.69, 5.37), (94.30, 4.63, 3.70)),
    30: ((94.94, 3.97, 3.43), (88.68, 4.35, 4.32), (95.69, 3.39, 2.64)),
    40: ((96.33, 3.00, 2.33), (89.70, 3.73, 3.97), (96.59, 2.59, 2.08)),
    50: ((97.14, 2.47, 2.20), (90.78, 3.78, 3.55), (97.34, 2.34, 1.99)),
}


def pieces(settings: Settings) -> list[Row]:
    """Each method at each size."""
    return [{"method": method, "n": n} for n in settings["sizes"] for method in METHODS]


def run(settings: Settings, piece: Row) -> Sequence[Row]:
    """One method at one size."""
    from imm.experiments.logistic import runs as logistic
    from imm.strength import lam_to_ratio

    ratio = lam_to_ratio(settings["lam"])
    return [{**piece, **logistic.cell(settings, NAME, piece["n"], piece["method"], ratio)}]


STUDY = Study(
    name=NAME,
    title="Accuracy with λ = 1.5 at every size (Table noising-caveat-constant-lambda)",
    settings={
        **WORLD,
        "sizes": list(PRINTED),
        # "when λ = 1.5 is fixed in the logistic regression example"
        "lam": 1.5,
        "runs": 300,
    },
    quick={"sizes": [5, 10, 20], "runs": 100, "steps": 1000},
    pieces=pieces,
    run=run,
    paper=[
        {"method": method, "n": n, "mean": mean, "p10": round(mean - below, 2), "p90": round(mean + above, 2)}
        for n, cells in PRINTED.items()
        for method, (mean, below, above) in zip(METHODS, cells, strict=True)
    ],
    figure=Figure(x="n", x_label="data size n", y_label="test accuracy, %"),
)
