"""Which Q belongs into the correction of serialized IMM: that of the last refresh, or the current one.

The paper: "Using the current Q tends to cause instability, likely due to the correction no longer obeying expected
constraints, e.g., mean 1 for every y." Streaming uses the current Q too. ``docs/results/logistic.md`` has the reason
why one is unstable and the other is not.
"""

from collections.abc import Sequence

from imm.experiments.logistic.settings import WORLD
from imm.experiments.study import Figure, Row, Settings, Study
from imm.experiments.summaries import spread

NAME = "serialized-stability"
METHODS = ("imm-serialized", "imm-current", "imm-streaming")


def where(settings: Settings, case: Settings) -> str:
    """One line that names the problem and how it is trained."""
    short = "x1 continuous" if case["levels"] is None else f"x1 in {case['levels']} levels"
    rows = "all rows" if case["batch"] == settings["n"] else f"{case['batch']} rows"
    return f"{short}, {rows} a step, learning rate {case['rate']}, λ/(1+λ) = {case['ratio']}"


def pieces(settings: Settings) -> list[Row]:
    """Each method at each refresh period of each case, then the gradients of each method."""
    # Streaming needs short contexts that repeat.
    trained = [
        {"method": method, "case": number, "r_times_rate": turn}
        for number, case in enumerate(settings["cases"])
        for turn in settings["r_times_rate"]
        for method in METHODS
        if method != "imm-streaming" or case["levels"]
    ]
    compared = [{"method": method, "refresh_every": r} for r in settings["compared"] for method in METHODS]
    return [*trained, {"method": "imm", "refresh_every": 1}, *compared]


def run(settings: Settings, piece: Row) -> Sequence[Row]:
    """How training ends at one refresh period; or the gradient estimates of one method just before a refresh."""
    return _trained(settings, piece) if "case" in piece else _compared(settings, piece)


def _trained(settings: Settings, piece: Row) -> list[Row]:
    import torch

    from imm.experiments.logistic import stability
    from imm.experiments.logistic.stability_local import growth

    case, method = settings["cases"][piece["case"]], piece["method"]
    refresh_every = round(piece["r_times_rate"] / case["rate"])
    given = stability.problem(settings, NAME, case["levels"])
    factor = stability.correction(given, method, refresh_every, case["batch"])
    objective, _ = stability.descend(given, factor, settings, case)
    tail = objective[-max(1, len(objective) // 10) :].mean(0).nan_to_num(nan=torch.inf, posinf=torch.inf)
    median = float(tail.median())
    return [
        {
            "method": method,
            "where": where(settings, case),
            "refresh_every": refresh_every,
            "r_times_rate": piece["r_times_rate"],
            "value": median if median < torch.inf else None,
            "diverged": float(100 * (tail > objective[0]).double().mean()),
            "growth": float(growth(given, method, case["ratio"], case["rate"], refresh_every).median()),
        }
    ]


def _compared(settings: Settings, piece: Row) -> list[Row]:
    from imm.experiments.logistic import stability
    from imm.experiments.logistic.stability_local import gradient_error

    case = settings["gradients"]
    few = {**settings, "runs": settings["few"]}
    given = stability.problem(few, f"{NAME}, gradients", case["levels"])
    found = gradient_error(given, piece["method"], piece["refresh_every"], few, case)
    row = {**piece, "where": f"gradient: {where(settings, case)}", **spread(found["bias"])}
    return [{**row, "spread": float(found["spread"].mean()), "pull": float(found["pull"].mean())}]


def _case(levels: int | None, batch: int, rate: float, ratio: float) -> Row:
    return {"levels": levels, "batch": batch, "rate": rate, "ratio": ratio}


STUDY = Study(
    name=NAME,
    title="Serialized IMM with the old or the current model in its correction (Section Serialized IMM)",
    settings={
        **WORLD,
        "n": 40,
        # The first two are the paper's example, with both its learning rates and "a fixed λ=0.7".
        "cases": [
            _case(None, 40, 0.1, 0.7),
            _case(None, 40, 1.0, 0.7),
            _case(5, 40, 0.1, 0.7),
            _case(5, 40, 1.0, 0.7),
            _case(5, 8, 1.0, 0.7),
            _case(5, 40, 1.0, 0.4),
        ],
        # The refresh period times the learning rate. "we can do this every n iterations": 40 at a rate of 1.
        "r_times_rate": [1, 2, 3, 5, 7, 10, 20, 40],
        "record": 50,
        "runs": 100,
        # The gradients: refresh periods, the step at which they are compared, data sets, and streams of batches.
        "compared": [1, 2, 5, 10, 20, 40],
        "gradients": _case(5, 8, 1.0, 0.7),
        "at": 119,
        "few": 20,
        "streams": 200,
    },
    quick={
        "cases": [_case(None, 40, 1.0, 0.7), _case(5, 40, 1.0, 0.7)],
        "r_times_rate": [2, 10, 40],
        "compared": [10],
        "runs": 30,
        "few": 5,
        "steps": 500,
    },
    pieces=pieces,
    run=run,
    figure=Figure(
        x="r_times_rate",
        x_label="refresh period (of streaming: memory) in steps, times learning rate",
        y_label="data sets where training diverges, %",
        y="diverged",
        y_limits=(-4, 104),
        panel="where",
        log_x=True,
        note="diverges: the objective ends above where it began",
    ),
)
