"""Our study: the first 5, 10 and 25% of the Penn Treebank, with the bigram of all of it.

Where IMM should help most, and the paper did not look: an accurate restricted model from much data, little data for the
full one.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from imm.experiments.lstm import QUICK, TRAINING
from imm.experiments.study import Figure, Row, Settings, Study


def pieces(settings: Settings) -> list[Row]:
    """The bigram alone, and each method on each part of the text, restarted."""
    runs = [
        {"method": method, "fraction": fraction, "strength": strength, "restart": restart}
        for restart in range(settings["runs"])
        for fraction in settings["fractions"]
        for method, strength in settings["strengths"].items()
    ]
    alone = {"method": "kneser-ney", "strength": 0.0, "restart": 0}
    return [*({**alone, "fraction": fraction} for fraction in settings["fractions"]), *runs]


def run(settings: Settings, piece: Row, kept: Path) -> Sequence[Row]:
    """One run; that without IMM is also mixed with the bigram."""
    from imm.experiments.lstm import bigram_alone, texts, train

    def rows(method: str, found: Mapping[str, float]) -> list[Row]:
        return [{**piece, "method": method, "split": split, "value": found[split]} for split in ("valid", "test")]

    if piece["method"] == "kneser-ney":
        return rows("kneser-ney", bigram_alone(texts(piece["fraction"], False, settings["judged"])))
    trained = train(settings, {**piece, "recount": False}, kept)
    found = rows(piece["method"], trained.perplexity())
    if piece["method"] == "none":
        found += rows("interpolation", trained.interpolated())
    return found


def summarise(rows: Sequence[Row]) -> list[Row]:
    """The mean over restarts, and percentiles if there are several."""
    cells: dict[tuple[str, float, str], list[Row]] = {}
    for row in rows:
        cells.setdefault((row["split"], row["fraction"], row["method"]), []).append(row)
    summary = []
    for (split, fraction, method), mine in cells.items():
        values = [row["value"] for row in mine]
        spread: Row = {"mean": float(np.mean(values)), "runs": len(values)}
        if len(values) > 1:
            spread |= {"p10": float(np.percentile(values, 10)), "p90": float(np.percentile(values, 90))}
        cell = {"split": split, "percent": 100 * fraction, "method": method}
        summary.append({**cell, **spread, "strength": mine[0]["strength"]})
    return summary


STUDY = Study(
    name="lstm-data",
    title="Perplexity on little text with the bigram of all of it (ours)",
    settings={
        **TRAINING,
        "seed": 0,
        "runs": 1,
        "fractions": [0.05, 0.1, 0.25],
        # the best of lstm-strength
        "strengths": {"none": 0.0, "reverse-kd": 2.0, "imm-sampled": 1.0, "imm-streaming": 4.0},
    },
    quick={
        **QUICK,
        "fractions": [0.01],
        "runs": 1,
        "strengths": {"none": 0.0, "imm-streaming": 1.0},
    },
    pieces=pieces,
    run=run,
    summarise=summarise,
    figure=Figure(
        x="percent",
        x_label="% of the text",
        y_label="perplexity",
        panel="split",
        log_x=True,
        note="the mean of all restarts; one unless --runs asks for more",
    ),
    continues=True,
    reads_data=True,
)
