"""Our study: each way to use the restricted policy at six strengths, on runs of its own.

What is found is written into ``grid-rivals``: for each way the best up to 175 epochs, and the best beyond, as the
published runs have two values of λ. Where the restricted policy is indifferent (x at the centre, up or down) it says
half and half here, and not up as in the published runs: all ways gain by that.
"""

from collections.abc import Sequence

from imm.experiments.grid import runs as grid
from imm.experiments.study import Figure, Row, Study

TRIES: dict[str, list[float]] = {
    "imm": [0.25, 0.5, 1.0, 2.0, 4.0, 8.0],
    "reverse-kd": [0.02, 0.05, 1 / 9, 0.25, 0.5, 1.0],
    "interpolation": [0.0, 0.01, 0.05, 0.1, 0.2, 0.3],
    "warm-start": [20, 40, 80, 160, 320, 640],
}
"""λ; λ; the restricted policy's share, where 0 is no help at all; steps of cloning. A first sweep showed where each is
best: the best lies inside what is tried, but for interpolation's natural bound, 0."""


def line(way: str, strengths: Sequence[Sequence[float]]) -> Row:
    """The curve of one way to use the restricted policy; all use the same one."""
    return grid.curve(way, strengths, ties="shares")


def by_strength(rows: Sequence[Row]) -> list[Row]:
    """The mean over the points up to 175 epochs, and over those beyond, for each way and strength."""
    found: dict[tuple[str, float, str], list[Row]] = {}
    for row in rows:
        way, strength = row["method"].split(" @ ")
        part = "up to 175 epochs" if row["epochs"] <= 175 else "from 200 epochs on"
        found.setdefault((way, float(strength), part), []).append(row)
    out = [
        {
            "method": way,
            "part": part,
            "tried": strength,
            **{figure: sum(row[figure] for row in mine) / len(mine) for figure in ("mean", "p10", "p90")},
            "runs": mine[0]["runs"],
        }
        for (way, strength, part), mine in found.items()
    ]
    return sorted(
        out, key=lambda row: (row["part"] != "up to 175 epochs", list(TRIES).index(row["method"]), row["tried"])
    )


STUDY = Study(
    name="grid-strength",
    title="How strongly to use the restricted policy: total reward at each strength (ours)",
    settings={
        **grid.WORLD,
        "seed": 1,
        "epochs": [20, 50, 100, 175, 200, 300, 400, 500],
        "runs": 100,
        "curves": {f"{way} @ {s:.4g}": line(way, [[500, s]]) for way, tries in TRIES.items() for s in tries},
    },
    quick={
        "epochs": [50, 200],
        "runs": 20,
        "curves": {f"{way} @ {s:.4g}": line(way, [[500, s]]) for way in TRIES for s in TRIES[way][1:4:2]},
    },
    pieces=grid.trainings,
    run=grid.run,
    summarise=by_strength,
    figure=Figure(
        x="tried",
        x_label="strength tried",
        y_label="total reward",
        series="part",
        panel="method",
        note="means over the points of each part; bars: mean 10th to 90th percentile",
    ),
)
