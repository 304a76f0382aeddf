"""Table simple_experiment: the bigram task, done by Kneser-Ney and by the bigram that an LSTM induces."""

from collections.abc import Sequence
from pathlib import Path

from imm.experiments.lstm import QUICK, TRAINING
from imm.experiments.lstm_perplexity import BEST, QUICK_BEST, named
from imm.experiments.study import Figure, Row, Settings, Study

SPLITS = ("train", "valid", "test")


def pieces(settings: Settings) -> list[Row]:
    """Kneser-Ney's own figures, and one run of each method."""
    runs = [{"method": method, **named(best)} for method, best in settings["best"].items()]
    return [{"method": "kneser-ney"}, *runs]


def run(settings: Settings, piece: Row, kept: Path) -> Sequence[Row]:
    """One method on the three parts of the text."""
    from imm.experiments.lstm import bigram_alone, texts, train

    fraction = settings["fraction"]
    if piece["method"] == "kneser-ney":
        head, found = {"fraction": fraction}, bigram_alone(texts(fraction, True, settings["judged"]))
    else:
        head = {"width": settings["width"]}
        found = train(settings, {**piece, "fraction": fraction, "recount": True, "restart": 0}, kept).induced()
    return [{"method": piece["method"], **head, "split": split, "value": value} for split, value in found.items()]


# Table simple_experiment
PAPER = tuple(
    {"method": method, "split": split, **cell, "value": value}
    for method, cell, values in (
        ("none", {"width": 1500}, (260.16, 339.24, 309.56)),
        ("imm-sampled", {"width": 1500}, (237.55, 302.30, 278.48)),
        ("kneser-ney", {"fraction": 1.0}, (92.19, 199.28, 185.71)),
    )
    for split, value in zip(SPLITS, values, strict=True)
)

STUDY = Study(
    name="lstm-bigram",
    title="The bigram task: Kneser-Ney, and the bigram that an LSTM induces (Table simple_experiment)",
    settings={
        **TRAINING,
        "fraction": 1.0,
        "seed": 0,
        "best": {method: best for method, best in BEST.items() if method != "kn-noising"},
    },
    quick={**QUICK, "fraction": 0.01, "best": QUICK_BEST},
    pieces=pieces,
    run=run,
    paper=PAPER,
    figure=Figure(x="method", x_label="perplexity", y_label="", y="value", panel="split", note="one run each"),
    continues=True,
    reads_data=True,
)
