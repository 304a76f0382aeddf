"""Fig. rl-quality: a softmax over the POMDP's utilities in place of the best action; the hotter, the worse.

λ is that of the published runs for all three, and falls from 200 epochs on; it was not tuned for each quality.
"""

from collections.abc import Sequence

from imm.experiments.grid import runs as grid
from imm.experiments.study import Figure, Row, Study


def by_quality(rows: Sequence[Row]) -> list[Row]:
    """A curve's name is its quality; the method is IMM, or none."""
    return [
        {**row, "method": "none" if row["method"] == "none" else "imm", "quality": row["method"]}
        for row in grid.sorted_rows(rows)
    ]


STUDY = Study(
    name="grid-quality",
    title="Total reward with restricted policies of three qualities (Fig. rl-quality)",
    settings={
        **grid.WORLD,
        "epochs": grid.EPOCHS,
        "runs": 300,
        "curves": {
            "none": grid.curve("none"),
            "high": grid.curve("imm", grid.PUBLISHED),
            # "adjust the quality via the temperature of the softmax (small is higher quality)"
            "medium": grid.curve("imm", grid.PUBLISHED, temperature=0.5),
            "low": grid.curve("imm", grid.PUBLISHED, temperature=1.0),
        },
    },
    quick={"epochs": [10, 50, 100, 200], "runs": 50},
    pieces=grid.trainings,
    run=grid.run,
    summarise=by_quality,
    figure=Figure(x="epochs", x_label="epochs", y_label="total reward", series="quality"),
)
