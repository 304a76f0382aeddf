"""Our study: other ways to use the restricted policy beside IMM, each at the strengths that ``grid-strength`` found.

As there, the restricted policy says half and half where it is indifferent; ``imm, published`` is the curve of
``grid-reward``, with a target that says up.
"""

from imm.experiments.grid import runs as grid
from imm.experiments.grid.strength import line
from imm.experiments.study import Figure, Study

STUDY = Study(
    name="grid-rivals",
    title="Total reward of 22 steps over epochs, four ways to use the restricted policy (ours)",
    settings={
        **grid.WORLD,
        "epochs": grid.EPOCHS,
        "runs": 300,
        # Of each way the best of six strengths up to 175 epochs, and the best of six beyond (grid-strength).
        "curves": {
            "none": grid.curve("none"),
            "imm, published": grid.curve("imm", grid.PUBLISHED),
            "imm": line("imm", [[175, 1.0], [500, 4.0]]),
            "reverse-kd": line("reverse-kd", [[175, 0.5], [500, 1 / 9]]),
            "interpolation": line("interpolation", [[175, 0.2], [500, 0.0]]),
            "warm-start": line("warm-start", [[175, 80], [500, 80]]),
        },
    },
    quick={"epochs": [10, 50, 100, 200], "runs": 50},
    pieces=grid.trainings,
    run=grid.run,
    summarise=grid.sorted_rows,
    figure=Figure(x="epochs", x_label="epochs", y_label="total reward"),
)
