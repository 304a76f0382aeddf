"""Our study: every method at several strengths, on little text with the bigram of more, and with its own.

The paper: "We tried a few values of λ and tested on held-out data". Here each method has the same number of tries, on
validation text only; what is found is meant for ``lstm-perplexity`` and ``lstm-data``.
"""

from collections.abc import Sequence
from pathlib import Path

from imm.experiments.lstm import QUICK, TRAINING
from imm.experiments.study import Figure, Row, Settings, Study

GAMMAS = (0.05, 0.1, 0.2, 0.4, 0.8)
LAM_METHODS = ("reverse-kd", "imm-sampled", "imm-serialized", "imm-streaming")


def strengths(lams: Sequence[float]) -> dict[str, list[float]]:
    """Equally many tries for each method."""
    return {"none": [0.0], "kn-noising": list(GAMMAS), **{method: list(lams) for method in LAM_METHODS}}


def pieces(settings: Settings) -> list[Row]:
    """Each method at each of its strengths, in each situation."""
    return [
        {"situation": situation, "fraction": fraction, "recount": recount, "method": method, "strength": strength}
        for situation, (fraction, recount, tries) in settings["situations"].items()
        for method, strengths in tries.items()
        for strength in strengths
    ]


def run(settings: Settings, piece: Row, kept: Path) -> Sequence[Row]:
    """One method at one strength: its validation perplexity."""
    from imm.experiments.lstm import train

    cell = {key: value for key, value in piece.items() if key != "recount"}
    valid = train(settings, {**piece, "restart": 0}, kept).perplexity()["valid"]
    return [{**cell, "split": "valid", "mean": valid, "runs": 1}]


STUDY = Study(
    name="lstm-strength",
    title="How strongly to use the bigram: validation perplexity at each λ or γ (ours)",
    settings={
        **TRAINING,
        "seed": 0,
        "situations": {
            "10% of PTB, bigram of all": [0.1, False, strengths((0.2, 0.5, 1.0, 2.0, 4.0))],
            "10% of PTB, its own bigram": [0.1, True, strengths((0.1, 0.2, 0.5, 1.0, 2.0))],
        },
    },
    quick={
        **QUICK,
        "situations": {"1% of PTB, bigram of all": [0.01, False, {"none": [0.0], "imm-streaming": [0.5, 2.0]}]},
    },
    pieces=pieces,
    run=run,
    figure=Figure(
        x="strength",
        x_label="λ (γ for noising)",
        y_label="validation perplexity",
        panel="situation",
        note="one run each",
    ),
    continues=True,
)
