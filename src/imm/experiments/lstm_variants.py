"""Our study: what streaming IMM needs. Its memory varied, and sampled IMM on every batch beside it.

On the first tenth of the text, with the bigram of all of it, at the same λ for all: it does not compare methods.
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

    method, changes = settings["variants"][piece["variant"]]
    cell = {"method": method, "strength": settings["strength"], "fraction": settings["fraction"]}
    trained = train({**settings, **changes}, {**cell, "recount": False, "restart": 0}, kept)
    return [{**piece, "method": method, "split": "valid", "value": trained.perplexity()["valid"]}]


STUDY = Study(
    name="lstm-variants",
    title="What streaming IMM needs: memory in predictions and in batches (ours)",
    settings={
        **TRAINING,
        "seed": 0,
        "fraction": 0.1,
        "strength": 2.0,
        "variants": {
            "reverse KD": ["reverse-kd", {}],
            "the batch's own groups (K = 0)": ["imm-streaming", {"memory": 0.0, "lifetime": FOREVER}],
            "K = 10": ["imm-streaming", {"memory": 10.0, "lifetime": FOREVER}],
            "K = 50": ["imm-streaming", {"memory": 50.0, "lifetime": FOREVER}],
            "K = 1000": ["imm-streaming", {"memory": 1000.0, "lifetime": FOREVER}],
            "τ = 10": ["imm-streaming", {"memory": 1000.0, "lifetime": 10.0}],
            "τ = 30": ["imm-streaming", {"memory": 1000.0, "lifetime": 30.0}],
            "τ = 100": ["imm-streaming", {"memory": 1000.0, "lifetime": 100.0}],
            "sampled, j = 5": ["imm-sampled", {"every": 5}],
            "sampled, j = 1": ["imm-sampled", {"every": 1}],
            "serialized": ["imm-serialized", {}],
        },
    },
    quick={
        **QUICK,
        "fraction": 0.01,
        "variants": {
            "reverse KD": ["reverse-kd", {}],
            "τ = 30": ["imm-streaming", {"memory": 1000.0, "lifetime": 30.0}],
        },
    },
    pieces=pieces,
    run=run,
    continues=True,
)
