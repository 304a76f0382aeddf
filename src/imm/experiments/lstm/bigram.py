"""Table simple_experiment: the bigram task, done by Kneser-Ney and by the bigram that an LSTM induces."""

from collections.abc import Sequence

from imm.experiments.lstm import perplexity as lstm_perplexity
from imm.experiments.lstm import regimes as lstm_regimes
from imm.experiments.study import Figure, Row, Study

# Table simple_experiment
PAPER = tuple(
    {"percent": 100, "width": width, "method": method, "split": split, "value": value}
    for method, width, values in (
        ("none", 1500, (260.16, 339.24, 309.56)),
        ("imm-sampled", 1500, (237.55, 302.30, 278.48)),
        ("kneser-ney", None, (92.19, 199.28, 185.71)),
    )
    for split, value in zip(("train", "valid", "test"), values, strict=True)
)


def summarise(rows: Sequence[Row]) -> list[Row]:
    """Returns the perplexity of each bigram on each part of the text, the mean over seeds."""
    summary = []
    for row in lstm_regimes.summarise(rows):
        if row["method"] == "none" and row["restart"]:
            continue  # the paper's has none
        width = None if row["method"] == "kneser-ney" else row["width"]
        cell = {"percent": row["percent"], "width": width, "method": row["method"]}
        if row["split"] == "valid":
            summary.append({**cell, "split": "train", "value": row["train_induced"]})
        summary.append({**cell, "split": row["split"], "value": row["induced"]})
    return [row for i, row in enumerate(summary) if row not in summary[:i]]  # cells may have a bigram in common


STUDY = Study(
    name="lstm-bigram",
    title="The bigram task: Kneser-Ney, and the bigram that an LSTM induces (Table simple_experiment)",
    settings=lstm_perplexity.STUDY.settings,
    quick=lstm_perplexity.STUDY.quick,
    pieces=lstm_regimes.pieces,
    run=lstm_regimes.run,
    summarise=summarise,
    paper=PAPER,
    figure=Figure(x="method", x_label="perplexity", y_label="", y="value", panel="split", note="the mean over seeds"),
    continues=True,
    reads_data=True,
    lists=lstm_regimes.LISTS,
    pieces_of="lstm",
)
