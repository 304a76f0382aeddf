"""Our study: every method at several strengths, on little text with the bigram of more.

The paper: "We tried a few values of λ and tested on held-out data". Here each method has three tries or more, on
validation text only; ``lstm-data`` has the best of each.
"""

from collections.abc import Sequence
from pathlib import Path

from imm.experiments.lstm import QUICK, TRAINING
from imm.experiments.study import Figure, Row, Settings, Study

TRIES = {
    "none": [0.0],
    "kn-noising": [0.1, 0.2, 0.4],
    "reverse-kd": [0.5, 1.0, 2.0, 4.0],
    "imm-sampled": [0.5, 1.0, 2.0, 4.0],
    "imm-streaming": [2.0, 4.0, 8.0],
}
"""λ, or γ of noising: three tries for each method, and one more where the best was at the end."""


def pieces(settings: Settings) -> list[Row]:
    """Each method at each of its strengths."""
    return [
        {"method": method, "strength": strength} for method, tries in settings["tries"].items() for strength in tries
    ]


def run(settings: Settings, piece: Row, kept: Path) -> Sequence[Row]:
    """One method at one strength: its validation perplexity."""
    from imm.experiments.lstm import train

    trained = train(settings, {**piece, "fraction": settings["fraction"], "recount": False, "restart": 0}, kept)
    return [{**piece, "split": "valid", "mean": trained.perplexity()["valid"], "runs": 1}]


STUDY = Study(
    name="lstm-strength",
    title="How strongly to use the bigram of all of PTB on 5% of it: validation perplexity at each λ or γ (ours)",
    settings={**TRAINING, "seed": 0, "fraction": 0.05, "tries": TRIES},
    quick={**QUICK, "fraction": 0.01, "tries": {"none": [0.0], "imm-streaming": [0.5, 2.0]}},
    pieces=pieces,
    run=run,
    figure=Figure(
        x="strength",
        x_label="λ (γ for noising)",
        y_label="validation perplexity",
        note="one run each",
    ),
    continues=True,
    reads_data=True,
)
