"""Our study: what streaming IMM needs. Its memory varied, in predictions (K) and in batches (τ).

On the first twentieth of the text, with the bigram of all of it, at the same λ for all.
"""

from collections.abc import Sequence
from pathlib import Path

from imm.experiments.lstm import QUICK, TRAINING
from imm.experiments.study import Row, Settings, Study

FOREVER = 1e9


def pieces(settings: Settings) -> list[Row]:
    """Each variant."""
    return [{"variant": variant} for variant in settings["variants"]]


def run(settings: Settings, piece: Row, kept: Path) -> Sequence[Row]:
    """One variant: its validation perplexity."""
    from imm.experiments.lstm import train

    changes = settings["variants"][piece["variant"]]
    cell = {"method": "imm-streaming", "strength": settings["strength"], "fraction": settings["fraction"]}
    trained = train({**settings, **changes}, {**cell, "recount": False, "restart": 0}, kept)
    return [{**piece, "method": "imm-streaming", "split": "valid", "value": trained.perplexity()["valid"]}]


STUDY = Study(
    name="lstm-variants",
    title="What streaming IMM needs: memory in predictions and in batches (ours)",
    settings={
        **TRAINING,
        "seed": 0,
        "fraction": 0.05,
        # the best of lstm-strength for streaming
        "strength": 4.0,
        "variants": {
            "the batch's own groups": {"memory": 0.0, "lifetime": FOREVER},
            "K = 50": {"memory": 50.0, "lifetime": FOREVER},
            "K = 1000": {"memory": 1000.0, "lifetime": FOREVER},
            "K = 1000, τ = 10": {"lifetime": 10.0},
            "K = 1000, τ = 30": {},
            "K = 1000, τ = 100": {"lifetime": 100.0},
        },
    },
    quick={**QUICK, "fraction": 0.01, "variants": {"K = 50": {"memory": 50.0, "lifetime": FOREVER}, "τ = 30": {}}},
    pieces=pieces,
    run=run,
    continues=True,
    reads_data=True,
)
