"""Our study: how the gain of IMM depends on the regime, that is on the text and on the size of the model.

"Clearly, our approach is only valuable if this [is] the case" (Appendix lm-motivation): if the restricted model is
better at the restricted task than the full model's induced one. The study measures both before it trains with IMM.

What counts was written down before the test text was read: docs/results/lstm.md.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from imm.experiments.lstm.runs import TRAINING, Cell, bigram_alone, gain
from imm.experiments.study import Figure, Row, Settings, Study
from imm.experiments.summaries import percentiles

SPLITS = ("valid", "test")
LISTS = ("cells", "methods", "strengths")
"""The settings that only say which pieces there are."""
METHODS = ("none", "kn-noising", "reverse-kd", "imm-streaming", "imm-sampled")


def pieces(settings: Settings) -> list[Row]:
    """Returns each method in each cell with each seed, the first cell last: the runner begins with the last."""
    lists = ("runs", "methods", "strengths")
    return [
        {**{key: value for key, value in cell.items() if key not in lists}, "method": method, "run": run}
        | {"tries": (settings["strengths"] | cell.get("strengths", {}))[method]}
        for cell in settings["cells"]
        for run in range(cell["runs"])
        for method in cell.get("methods", settings["methods"])
    ][::-1]


def run(settings: Settings, piece: Row, kept: Path) -> Sequence[Row]:
    """Trains one method in one cell with one seed; returns its figures, and those of what it is compared with."""
    cell = Cell(settings, piece, kept)
    method, seed = piece["method"], piece["run"]
    plain, trained = cell.plain(seed), cell.trained(method, seed)
    none = trained if method == "none" else Cell(settings, {**piece, "tries": [0.0]}, kept).trained("none", seed)
    restarted = {"method": method, "restart": True, "strength": cell.strength(method)}
    rows = _rows(piece, restarted, trained.perplexities(), trained.induced())
    for row in rows:
        if method != "none":
            row["gain"], row["gain_error"] = gain(trained, none, row["split"])
        elif seed == 0:
            row["tried"] = {f"dropout {rate:g}": value for rate, value in cell.dropout_tries().items()}
        if method != "none" and seed == 0:
            row["tried"] = {f"{each:g}": value for each, value in cell.strength_tries(method).items()}
    if method != "none":
        return rows
    alone = bigram_alone(cell.text)
    bigram = {"method": "kneser-ney", "restart": False, "strength": 0.0}
    first = {"method": "none", "restart": False, "strength": 0.0}
    mixed = {f"{split} mixed": alone[split] for split in SPLITS}
    return [
        *_rows(piece, bigram, alone, alone | mixed),
        *_rows(piece, first, plain.perplexities(), plain.induced()),
        *rows,
    ]


def _cell(piece: Row) -> Row:
    return {"percent": piece["percent"], "ngram_percent": piece["ngram_percent"], "width": piece["width"]}


def _rows(piece: Row, what: Row, values: Row, induced: Row) -> list[Row]:
    """Returns a row for each part of the text; the bigram that a bigram induces is itself."""
    return [
        {**_cell(piece), **what, "run": piece["run"], "split": split}
        | {"value": values[split], "induced": induced[split], "train_induced": induced["train"]}
        | {"mixed": induced[f"{split} mixed"]}
        for split in SPLITS
    ]


def summarise(rows: Sequence[Row]) -> list[Row]:
    """Returns the mean over seeds of each method in each cell, and its gain over plain training.

    ``gain`` is the fall of the log-perplexity against plain training with the same restart and seed, in nats a word.
    Its error is that of the mean over seeds where there are three, else that over the lines of the text.
    ``before`` is ``log(induced / Kneser-Ney)`` of plain training: how much better the restricted model does its task;
    ``room`` is ``log(induced / mixed)``: what it takes off the induced one's perplexity where both are mixed.
    """
    cells: dict[tuple[object, ...], list[Row]] = {}
    for row in sorted(rows, key=_place):
        key = tuple(row[name] for name in ("percent", "ngram_percent", "width", "method", "restart", "split"))
        cells.setdefault(key, []).append(row)
    alone = {key[:3] + key[5:]: found[0]["value"] for key, found in cells.items() if key[3] == "kneser-ney"}
    plain = {key[:3] + key[5:]: found for key, found in cells.items() if key[3] == "none" and not key[4]}
    summary = []
    for key, found in cells.items():
        first, place = found[0], key[:3] + key[5:]
        names = ("percent", "ngram_percent", "width", "method", "restart", "split")
        row = {name: first[name] for name in names} | {"mean": _mean(found, "value"), "runs": len(found)}
        values = sorted(each["value"] for each in found)
        row |= percentiles(values) if found[1:] else {}
        row["values"] = [each["value"] for each in found]
        row |= {"induced": _mean(found, "induced"), "train_induced": _mean(found, "train_induced")}
        row["strength"] = first["strength"]
        if place in plain:
            induced = _mean(plain[place], "induced")
            row |= {
                "before": math.log(induced / alone[place]),
                "room": math.log(induced / _mean(plain[place], "mixed")),
            }
        if "gain" in first:
            gains = [each["gain"] for each in found]
            spread = float(np.std(gains, ddof=1)) / math.sqrt(len(gains)) if len(gains) > 2 else 0.0
            row |= {"gain": float(np.mean(gains)), "gain_error": spread or first["gain_error"]}
        if "tried" in first:
            row["tried"] = first["tried"]
        summary.append(row)
    return summary


def _place(row: Row) -> tuple[float, ...]:
    """Where a row stands in the result."""
    order = ("kneser-ney", *METHODS)
    return -row["ngram_percent"], row["percent"], row["width"], order.index(row["method"]), row["restart"]


def _mean(rows: Sequence[Row], key: str) -> float:
    return float(np.mean([row[key] for row in rows]))


def cell(percent: float, width: int, epochs: Sequence[int], dropout: Sequence[float], **more: object) -> Row:
    """Returns a cell as a record: by default with one seed and a bigram of the same text."""
    shape = {"percent": percent, "ngram_percent": percent, "width": width, "epochs": [*epochs], "dropout": [*dropout]}
    return {**shape, "runs": 1, **more}


CELLS = [
    cell(10, 200, (20, 8), (0.35, 0.5, 0.65), runs=3),
    cell(5, 200, (24, 8), (0.35, 0.5, 0.65), runs=3),
    cell(25, 200, (16, 8), (0.2, 0.35, 0.5)),
    cell(10, 650, (20, 8), (0.5, 0.65)),
]
"""In the order in which they are wanted."""

QUICK: Settings = {
    "batch_size": 4,
    "judged": 3000,
    "cells": [cell(1, 16, (3, 2), (0.2,), strengths={"none": [0.0], "kn-noising": [0.1], "imm-streaming": [1.0]})],
    "methods": ["none", "kn-noising", "imm-streaming"],
}
"""What ``--quick`` changes: a hundredth of the text, for the plumbing and not for the figures."""

# The wide models of the paper, Tables results_lstm and simple_experiment: log(309.56 / 185.71) and log(77.5 / 73.3).
PAPER = (
    {
        **{"percent": 100, "ngram_percent": 100, "width": 1500, "method": "imm-sampled", "restart": True},
        **{"split": "test", "value": 73.3, "before": math.log(309.56 / 185.71), "gain": math.log(77.5 / 73.3)},
    },
)

STUDY = Study(
    name="lstm-regimes",
    title="What IMM gains, over what the restricted model knows better before (ours, after Table simple_experiment)",
    settings={
        **TRAINING,
        "methods": list(METHODS),
        "cells": CELLS,
    },
    quick=QUICK,
    pieces=pieces,
    run=run,
    summarise=summarise,
    paper=PAPER,
    figure=Figure(
        x="before",
        x_label="log(induced / Kneser-Ney) of plain training, nats",
        y="gain",
        y_label="gain over plain training, nats a word",
        panel="split",
        note="each point is a part of the text and a width, with its standard error; the cross is the paper's",
        beside=True,
        points=True,
    ),
    continues=True,
    reads_data=True,
    lists=LISTS,
    pieces_of="lstm",
)
