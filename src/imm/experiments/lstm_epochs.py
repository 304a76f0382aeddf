"""Our study: Table results_lstm again with more epochs, for the methods that the paper compares. Does a lead last?"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from imm.experiments import lstm_perplexity
from imm.experiments.lstm import QUICK, TRAINING
from imm.experiments.lstm_perplexity import QUICK_BEST, TRY
from imm.experiments.study import Figure, Row, Settings, Study


def run(settings: Settings, piece: Row, kept: Path) -> Sequence[Row]:
    """One run: what ``lstm-perplexity`` has of it, and valid after each epoch."""
    trained = lstm_perplexity.train_piece(settings, piece, kept)
    cell = {**piece, "width": settings["width"], "split": "valid"}
    epochs = [{**cell, "epoch": epoch, "value": value} for epoch, value in enumerate(trained.epochs(), 1)]
    return [*lstm_perplexity.rows_of(trained, settings, piece), *epochs]


def summarise(rows: Sequence[Row]) -> list[Row]:
    """As ``lstm-perplexity``; then, at each method's best try, the mean over restarts after each epoch.

    ``against_none`` is how far it is above that without IMM, in percent.
    """
    summary = lstm_perplexity.summarise([row for row in rows if "epoch" not in row])
    best = {row["method"]: [row[key] for key in TRY] for row in summary}
    curves: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        if "epoch" in row and [row[key] for key in TRY] == best[row["method"]]:
            curves.setdefault((row["method"], row["epoch"]), []).append(row["value"])
    means = {cell: float(np.mean(values)) for cell, values in curves.items()}
    for (method, epoch), mean in means.items():
        cell = {"split": "valid", "method": method, "epoch": epoch, "mean": mean, "runs": len(curves[method, epoch])}
        summary.append({**cell, "against_none": 100 * (mean / means["none", epoch] - 1)})
    return summary


BEST = {"none": [0.0, False, 0.2], "kn-noising": [0.1, False, 0.2], "imm-streaming": [1.0, True, 0.2]}
"""The best of ``tries`` on valid."""

STUDY = Study(
    name="lstm-epochs",
    title="Perplexity on the Penn Treebank after ten epochs, the best restart by validation (Table results_lstm)",
    settings={
        **TRAINING,
        "schedule": {"1.0": [10, 5, 0.2]},
        "fraction": 1.0,
        "seed": 0,
        "runs": 2,
        "tries": {
            "none": [[0.0, False, 0.2]],
            "kn-noising": [[0.1, False, 0.2]],
            "imm-streaming": [[1.0, True, 0.2], [2.0, True, 0.2]],
        },
        "restarted": BEST,
    },
    quick={
        **QUICK,
        "fraction": 0.01,
        "runs": 1,
        "tries": {method: [best] for method, best in QUICK_BEST.items()},
        "restarted": QUICK_BEST,
    },
    pieces=lstm_perplexity.pieces,
    run=run,
    summarise=summarise,
    paper=lstm_perplexity.PAPER,
    figure=Figure(
        x="epoch",
        x_label="epoch",
        y="against_none",
        y_label="valid perplexity against none, %",
        note="the mean of restarts, at the best try",
    ),
    continues=True,
    reads_data=True,
)
