"""The setting of all logistic studies; ``docs/results/logistic.md`` says what is known and what is a guess."""

from imm.experiments.study import Settings

WORLD: Settings = {
    # "features are sampled uniformly over a cube" -- which cube is not printed: a guess.
    "cube": [0.0, 1.0],
    # "a linear discriminant g(x) = a x1 + b x2 + c x3 + d" -- not printed: a guess.
    "plane": [1.0, 2.0, 2.0, -2.5],
    # "With cross-validation, we determine α = 1 to be a good choice."
    "alpha": 1.0,
    # "a learning rate of 1.0 was found to give the best results, we choose it for all the reported experiments"
    "rate": 1.0,
    # Not printed: a guess.
    "steps": 3000,
    # Not printed; the percentiles of the printed table are multiples of 1/300.
    "test_points": 300,
    "seed": 0,
}

QUALITIES = {"high": 0.0, "medium": 0.2, "low": 0.5}
"""How much of a coin flip is mixed into the Bayes-optimal restricted model (Appendix quality)."""
