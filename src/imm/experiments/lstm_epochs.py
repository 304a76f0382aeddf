"""Our study: the whole Penn Treebank for more epochs than ``lstm-perplexity`` has. Does a lead last?"""

from collections.abc import Sequence
from pathlib import Path

from imm.experiments.lstm import QUICK, TRAINING
from imm.experiments.lstm_perplexity import named
from imm.experiments.study import Figure, Row, Settings, Study


def pieces(settings: Settings) -> list[Row]:
    """Each method once."""
    return [{"method": method, **named(each)} for method, each in settings["tries"].items()]


def run(settings: Settings, piece: Row, kept: Path) -> Sequence[Row]:
    """One run: valid after each epoch, and test at the best of them."""
    from imm.experiments.lstm import train

    trained = train(settings, {**piece, "fraction": settings["fraction"], "recount": True, "restart": 0}, kept)
    epochs = enumerate(trained.epochs(), 1)
    valid = [{**piece, "split": "valid", "epoch": epoch, "mean": value, "runs": 1} for epoch, value in epochs]
    best = {"epoch": trained.result["best_epoch"], "value": trained.perplexity()["test"]}
    return [*valid, {**piece, "split": "test", **best}]


STUDY = Study(
    name="lstm-epochs",
    title="Perplexity on the Penn Treebank over ten epochs (ours)",
    settings={
        **TRAINING,
        "schedule": {"1.0": [10, 5, 0.2]},
        "fraction": 1.0,
        "seed": 0,
        "tries": {
            "none": [0.0, False, 0.2],
            "kn-noising": [0.1, False, 0.2],
            "imm-streaming": [2.0, True, 0.2],
        },
    },
    quick={**QUICK, "fraction": 0.01, "tries": {"none": [0.0, False, 0.2], "imm-streaming": [0.5, True, 0.2]}},
    pieces=pieces,
    run=run,
    figure=Figure(x="epoch", x_label="epoch", y_label="valid perplexity", note="one run each"),
    continues=True,
    reads_data=True,
)
