"""Our study: other ways to use the restricted policy beside IMM, each at the strengths that ``grid-strength`` found.

Where the restricted policy is indifferent (x at the centre, up or down) the published target says up; ``imm, shared
tie`` says half and half.
"""

from imm.experiments import grid
from imm.experiments.grid_strength import line
from imm.experiments.study import Figure, Study

STUDY = Study(
    name="grid-rivals",
    title="Total reward of 22 steps over epochs, five ways to use the restricted policy (ours)",
    settings={
        **grid.WORLD,
        "epochs": grid.EPOCHS,
        "runs": 300,
        # Of each way the best of six strengths up to 175 epochs, and the best of six beyond (grid-strength).
        "curves": {
            "none": grid.curve("none"),
            "imm": line("imm", [[175, 0.25], [500, 1 / 9]]),
            "imm, shared tie": line("imm, shared tie", [[175, 0.25], [500, 0.25]]),
            "reverse-kd": line("reverse-kd", [[175, 0.25], [500, 1 / 9]]),
            "interpolation": line("interpolation", [[175, 0.2], [500, 0.1]]),
            "warm-start": line("warm-start", [[175, 10], [500, 5]]),
        },
    },
    quick={"epochs": [10, 50, 100, 200], "runs": 50},
    pieces=grid.trainings,
    run=grid.run,
    summarise=grid.sorted_rows,
    figure=Figure(x="epochs", x_label="epochs", y_label="total reward"),
)
