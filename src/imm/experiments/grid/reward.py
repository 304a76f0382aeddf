"""Fig. rl: total reward over the number of epochs, with and without IMM.

The figures beside ours are the means of the published runs, 30 each, which the paper's figure draws.
"""

from imm.experiments.grid import runs as grid
from imm.experiments.study import Figure, Study

# Means of the published runs; λ/(1+λ) = 0.2 up to 175 epochs, 0.1 from 200 on.
_NONE = [1.28, 1.23, 2.48, 7.47, 12.61, 15.34, 15.78, 16.71, 17.29, 17.54, 18.30, 18.48, 18.39, 18.92, 18.72]
_IMM = [1.67, 2.31, 8.80, 14.78, 17.27, 18.16, 18.72, 18.55, 18.90, 18.68, 19.12, 19.45, 19.33, 19.30, 19.36]

STUDY = Study(
    name="grid-reward",
    title="Total reward of 22 steps over epochs, with and without IMM (Fig. rl)",
    settings={
        **grid.WORLD,
        "epochs": grid.EPOCHS,
        # "We perform 30 Monte Carlo runs at each number of epochs"
        "runs": 300,
        "curves": {
            "none": grid.curve("none"),
            "imm": grid.curve("imm", grid.PUBLISHED),
            "imm, λ = 0.25": grid.curve("imm", grid.PAPER),
        },
    },
    quick={"epochs": [10, 50, 100, 200], "runs": 50},
    pieces=grid.trainings,
    run=grid.run,
    summarise=grid.sorted_rows,
    paper=[
        {"method": method, "epochs": epochs, "mean": mean}
        for method, means in (("none", _NONE), ("imm", _IMM))
        for epochs, mean in zip(grid.EPOCHS, means, strict=True)
    ],
    figure=Figure(x="epochs", x_label="epochs", y_label="total reward", beside=True),
)
