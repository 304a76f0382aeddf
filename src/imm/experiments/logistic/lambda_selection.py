"""Fig. lambda-selection: accuracy over λ/(1+λ), two learning rates, and the schedule fitted to the best ratios.

The paper averages 30 runs at each point; here there are more, as the best ratio of a flat curve is mostly noise
with 30. The three qualities of Appendix quality are swept too, at the better learning rate: Fig. logreg-quality
needs a schedule for each.
"""

from collections.abc import Sequence

from imm.experiments.logistic.settings import QUALITIES, WORLD
from imm.experiments.study import Figure, Row, Settings, Study

NAME = "logistic-lambda"


def pieces(settings: Settings) -> list[Row]:
    """Each size, learning rate, quality and ratio."""
    sweeps = [(f"learning rate {rate}", rate, "high", settings["sizes"]) for rate in settings["rates"]]
    sweeps += [
        (f"{quality} quality, learning rate {settings['rate']}", settings["rate"], quality, settings["lower_sizes"])
        for quality in ("medium", "low")
    ]
    return [
        {"method": "imm" if ratio else "none", "sweep": name, "rate": rate, "quality": quality, "n": n, "ratio": ratio}
        for name, rate, quality, sizes in sweeps
        for n in sizes
        for ratio in settings["ratios"]
    ]


def run(settings: Settings, piece: Row) -> Sequence[Row]:
    """One point of a curve."""
    from imm.experiments.logistic import runs as logistic

    chosen = {**settings, "rate": piece["rate"]}
    weaken = QUALITIES[piece["quality"]]
    return [{**piece, **logistic.cell(chosen, NAME, piece["n"], piece["method"], piece["ratio"], weaken)}]


def with_schedules(rows: Sequence[Row]) -> list[Row]:
    """Adds the best ratio of each curve, and the line through those of a sweep."""
    from imm.strength import Linear

    found: list[Row] = []
    for sweep in dict.fromkeys(row["sweep"] for row in rows):
        mine = [row for row in rows if row["sweep"] == sweep]
        cell = {"method": "imm", **{key: mine[0][key] for key in ("sweep", "rate", "quality")}}
        sizes = sorted({row["n"] for row in mine})
        best = [max((row for row in mine if row["n"] == n), key=lambda row: row["mean"])["ratio"] for n in sizes]
        found += [{**cell, "quantity": "best ratio", "n": n, "value": r} for n, r in zip(sizes, best, strict=True)]
        if len(sizes) > 1:
            line = Linear.fitted(sizes, best)
            found.append({**cell, "quantity": "schedule: slope", "n": None, "value": line.slope})
            found.append({**cell, "quantity": "schedule: intercept", "n": None, "value": line.intercept})
    return [*rows, *found]


_PAPER_CELL = {"method": "imm", "rate": 1.0, "quality": "high"}

STUDY = Study(
    name=NAME,
    title="Accuracy over λ/(1+λ) and the schedule fitted to it (Fig. lambda-selection)",
    settings={
        **WORLD,
        # "for learning rates 0.1 as well as 1.0"
        "rates": [0.1, 1.0],
        # "for dataset sizes, n of 2, 10 and 20"
        "sizes": [2, 10, 20],
        "ratios": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
        # For medium and low quality, which the paper does not sweep; 50 holds the line at the far end of its figure.
        "lower_sizes": [2, 10, 20, 50],
        # The paper: "Every point is an average of 30 runs".
        "runs": 300,
    },
    quick={"sizes": [2, 10], "ratios": [0.0, 0.3, 0.6, 0.9], "lower_sizes": [], "runs": 100, "steps": 1000},
    pieces=pieces,
    run=run,
    summarise=with_schedules,
    paper=[
        {**_PAPER_CELL, "quantity": "best ratio", "n": 2, "value": 0.8},
        {**_PAPER_CELL, "quantity": "best ratio", "n": 10, "value": 0.7},
        {**_PAPER_CELL, "quantity": "best ratio", "n": 20, "value": 0.6},
        {**_PAPER_CELL, "quantity": "schedule: slope", "n": None, "value": -0.0111},
        {**_PAPER_CELL, "quantity": "schedule: intercept", "n": None, "value": 0.818},
    ],
    figure=Figure(x="ratio", x_label="λ/(1+λ)", y_label="test accuracy, %", series="n", panel="sweep"),
)
