"""Our study: what sampled IMM needs: positions, contexts of each, every how many batches, and at what learning rate.

On the first twentieth of the text, with the bigram of all of it.
"""

from collections.abc import Sequence
from pathlib import Path

from imm.experiments.lstm import QUICK, TRAINING
from imm.experiments.study import Row, Settings, Study

VARIED = ("every", "positions", "n_contexts", "strength", "learning_rate", "clip")


def pieces(settings: Settings) -> list[Row]:
    """Each try."""
    return [dict(zip(VARIED, tried, strict=True)) for tried in settings["tries"]]


def run(settings: Settings, piece: Row, kept: Path) -> Sequence[Row]:
    """One try: its validation perplexity."""
    from imm.experiments.lstm import train

    cell = {"method": "imm-sampled", "strength": piece["strength"], "fraction": settings["fraction"]}
    trained = train({**settings, **piece}, {**cell, "recount": False, "restart": 0}, kept)
    return [{"method": "imm-sampled", **piece, "split": "valid", "value": trained.perplexity()["valid"]}]


STUDY = Study(
    name="lstm-positions",
    title="What sampled IMM needs: positions, contexts, a learning rate (ours)",
    settings={
        **TRAINING,
        "seed": 0,
        "fraction": 0.05,
        "tries": [
            [5, 160, 10, 1.0, 1.0, 5.0],
            [5, 160, 10, 2.0, 1.0, 5.0],
            [1, 32, 10, 2.0, 1.0, 5.0],
            [1, 32, 10, 4.0, 1.0, 5.0],
            [1, 32, 10, 4.0, 0.25, 20.0],
            [1, 32, 10, 4.0, 0.5, 5.0],
            [1, 160, 3, 4.0, 0.5, 5.0],
        ],
    },
    quick={**QUICK, "fraction": 0.01, "tries": [[2, 8, 2, 0.5, 1.0, 5.0], [1, 16, 2, 0.5, 0.5, 5.0]]},
    pieces=pieces,
    run=run,
    continues=True,
    reads_data=True,
)
