"""Table results_bert: a BERT fine-tuned on four tasks of GLUE, with the words' loss and IMM beside the task's."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from imm.experiments.glue.settings import MINILM
from imm.experiments.study import Row, Settings, Study
from imm.experiments.summaries import percentiles
from imm.extras import install


def pieces(settings: Settings) -> list[Row]:
    """Each arm on each task, restarted; the last named is run first, so that restarts are whole one after the other."""
    return [
        {"task": task, "method": method, "restart": restart}
        for restart in reversed(range(settings["runs"]))
        for task in settings["rows"]
        for method in settings["methods"]
    ]


def run(settings: Settings, piece: Row, kept: Path) -> Sequence[Row]:
    """One run."""
    if find_spec("transformers") is None:
        raise ModuleNotFoundError(f"this study needs transformers: {install('transformers')}")
    from imm.experiments.glue.runs import fine_tune

    return [{**piece, "model": settings["model"], "value": fine_tune(settings, piece, kept)["value"]}]


def summarise(rows: Sequence[Row]) -> list[Row]:
    """Mean and deviation over restarts, and the gain on the task alone, restart by restart."""
    cells: dict[tuple[str, str, str], dict[int, float]] = {}
    for row in rows:
        cells.setdefault((row["task"], row["method"], row["model"]), {})[row["restart"]] = row["value"]
    summary = []
    for (task, method, model), mine in cells.items():
        values = [mine[restart] for restart in sorted(mine)]
        cell: Row = {"task": task, "method": method, "model": model, "mean": float(np.mean(values)), "runs": len(mine)}
        cell["restarts"] = values
        alone = cells[task, "none", model]
        gains = [value - alone[restart] for restart, value in mine.items()]
        if method != "none":
            cell["gain"] = float(np.mean(gains))
        if len(mine) > 1:
            cell |= percentiles(values)
            cell["deviation"] = float(np.std(values, ddof=1))
            if method != "none":
                cell["gain_error"] = float(np.std(gains, ddof=1) / np.sqrt(len(gains)))
        summary.append(cell)
    return summary


# Table results_bert, of BERT-base on all rows
PAPER = tuple(
    {"task": task, "method": method, "model": "bert-base-uncased", "mean": mean, "deviation": deviation}
    for task, figures in {
        "CoLA": ((52.1, 4.0), (55.0, 3.0), (60.0, 1.0)),
        "MRPC": ((88.9, 2.0), (89.0, 1.0), (90.0, 1.0)),
        "QNLI": ((90.5, 2.0), (91.0, 2.0), (93.5, 1.0)),
        "RTE": ((66.0, 3.0), (68.0, 2.0), (71.0, 1.0)),
    }.items()
    for method, (mean, deviation) in zip(("none", "mlm", "imm-sampled"), figures, strict=True)
)

"""Weights that come as a package; any other name is a folder, or one of the hub's that was downloaded before."""


def with_model(settings: Settings, name: str) -> Settings:
    """Other weights: the paper has bert-base-uncased, and whoever has it names it; then the rest is the paper's too.

    What it does not print, length and learning rate, is usual for BERT. See ``docs/results/glue.md``.
    """
    if name == MINILM:
        return settings
    unchanged = {key: value for key, value in AS_PAPER.items() if settings[key] == STUDY.settings[key]}  # by --quick
    return {**settings, "model": name, **unchanged}


def with_rows(settings: Settings, rows: int) -> Settings:
    """As many rows of each task, or all, if it has fewer."""
    if rows < 1:
        raise ValueError(f"rows must be 1 or more, got {rows}")
    return {**settings, "rows": dict.fromkeys(settings["rows"], rows)}


NEW_HEAD = 0.02
"""The weight of the words' loss with the new head of MiniLM: 0.1 already keeps the task from being learned."""

AS_PAPER = {"words_weight": 1.0, "positions": 0, "length": 128, "learning_rate": 2e-5}

STUDY = Study(
    name="bert-glue",
    title="Four tasks of GLUE with masked words and IMM beside (Table results_bert; with other weights and few rows, "
    "only the differences between arms compare with the paper's)",
    settings={
        "model": MINILM,
        "methods": ["none", "mlm", "imm-sampled"],
        # rows to train on, drawn anew in each restart, and how many of dev are judged at most: for two processors
        "rows": {"CoLA": 2400, "MRPC": 960, "RTE": 960, "QNLI": 960},
        "judged": 2000,
        "length": 48,
        "epochs": 3,
        "batch_size": 16,
        "learning_rate": 1e-4,
        "warmup": 10,
        # of the words' loss, and of IMM, which is a part of it: 1 with a head that was trained with its encoder, as in
        # the paper
        "words_weight": NEW_HEAD,
        "lam": 0.2,
        # "For the BERT experiments, we used k=5."
        "n_contexts": 5,
        # the paper matches every word
        "positions": 1,
        # "the Kneser–Ney bigram constructed from the Wikipedia data": of WikiText-2, all paragraphs
        "ngram_lines": None,
        # weights without a head for masked words are trained to have one, on the first paragraphs of WikiText-2
        "head": {
            "steps": 1200,
            "batch_size": 16,
            "length": 48,
            "masked": 0.3,
            "learning_rate": 1e-3,
            "encoder_rate": 1e-4,
            "seed": 0,
            "save_steps": 40,
        },
        "seed": 0,
        "runs": 2,
    },
    quick={
        "rows": {"CoLA": 32, "RTE": 16},
        "judged": 32,
        "length": 32,
        "epochs": 1,
        "ngram_lines": 500,
        "head": {
            "steps": 4,
            "batch_size": 4,
            "length": 32,
            "masked": 0.3,
            "learning_rate": 1e-3,
            "encoder_rate": 1e-4,
            "seed": 0,
            "save_steps": 2,
        },
        "runs": 1,
    },
    pieces=pieces,
    run=run,
    summarise=summarise,
    paper=PAPER,
    options={"model": with_model, "rows": with_rows},
    continues=True,
    reads_data=True,
)
