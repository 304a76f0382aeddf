"""Our study: a small GPT-2 on 1, 5 and 25% of WikiText-2, with the bigram of all of it."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from imm.experiments.study import Figure, Row, Settings, Study
from imm.experiments.summaries import percentiles
from imm.extras import install


def pieces(settings: Settings) -> list[Row]:
    """Each method on each part of the text at each strength that is tried, restarted; and the bigram alone."""
    runs = [
        {"method": method, "fraction": float(fraction), "strength": strength, "restart": restart}
        for restart in range(settings["runs"])
        for fraction in settings["epochs"]
        for method, strengths in settings["strengths"].items()
        for strength in strengths
    ]
    alone = [{"method": "kneser-ney", "fraction": float(fraction), "restart": 0} for fraction in settings["epochs"]]
    return [*alone, *runs]


def run(settings: Settings, piece: Row, kept: Path) -> Sequence[Row]:
    """One run; that without the bigram is also mixed with it."""
    if find_spec("transformers") is None:
        raise ModuleNotFoundError(f"this study needs transformers: {install('transformers')}")
    from studies.little_text.runs import bigram_alone, train

    if piece["method"] == "kneser-ney":
        alone = {**piece, "strength": 0.0}
        return [{**alone, "split": split, "value": bigram_alone(settings, split, kept)} for split in ("valid", "test")]
    trained = train(settings, piece, kept)
    rows = []
    for split in ("valid", "test"):
        for share, value in trained[split].items():
            mixed = {"method": "interpolation", "strength": float(share)} if float(share) else {}
            rows.append({**piece, **mixed, "split": split, "value": value})
    return rows


def summarise(rows: Sequence[Row]) -> list[Row]:
    """The mean over restarts, at the strength that is best on valid."""
    cells: dict[tuple[float, str], dict[float, dict[str, list[float]]]] = {}
    for row in rows:
        tries = cells.setdefault((row["fraction"], row["method"]), {})
        tries.setdefault(row["strength"], {}).setdefault(row["split"], []).append(row["value"])
    summary = []
    for split in ("valid", "test"):
        for (fraction, method), tries in cells.items():
            strength = min(tries, key=lambda each: float(np.mean(tries[each]["valid"])))
            values = tries[strength][split]
            cell: Row = {"split": split, "percent": 100 * fraction, "method": method, "mean": float(np.mean(values))}
            cell |= {"runs": len(values), "strength": strength, "tries": len(tries)}
            if len(values) > 1:
                cell |= percentiles(values)
            summary.append(cell)
    return summary


STUDY = Study(
    name="lm-low-data",
    title="Perplexity per word of a small GPT-2 on little text, with the bigram of all of it (ours)",
    settings={
        "tokens": 4000,
        "context": 64,
        "width": 128,
        "layers": 2,
        "heads": 4,
        "dropout": 0.1,
        "batch_size": 16,
        "learning_rate": 2e-3,
        # the first words of valid and test: valid is read after each epoch
        "judged": 60_000,
        # fraction of the text: epochs; the best by valid is kept
        "epochs": {"0.01": 20, "0.05": 8, "0.25": 3},
        # four tries for each method that has a strength; a share of λ/(1+λ) is as strong as λ
        "strengths": {"none": [0.0], "reverse-kd": [0.3, 1.0, 3.0, 10.0], "imm-streaming": [0.3, 1.0, 3.0, 10.0]},
        "shares": [0.25, 0.5, 0.75, 0.9],
        "memory": 1000.0,
        "lifetime": 30.0,
        "seed": 0,
        "runs": 1,
    },
    quick={
        "tokens": 1000,
        "width": 32,
        "judged": 2000,
        "epochs": {"0.002": 2},
        "strengths": {"none": [0.0], "reverse-kd": [0.3], "imm-streaming": [1.0]},
        "shares": [0.2],
    },
    pieces=pieces,
    run=run,
    summarise=summarise,
    figure=Figure(
        x="percent",
        x_label="% of the text",
        y_label="perplexity per word",
        panel="split",
        log_x=True,
        log_y=True,
        note="the mean of all restarts; one unless --runs asks for more",
    ),
    continues=True,
    reads_data=True,
)
