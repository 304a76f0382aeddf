"""Table results_lstm: perplexity on the Penn Treebank, of the widest model that is trained here."""

from collections.abc import Sequence

from imm.experiments.lstm import regimes as lstm_regimes
from imm.experiments.lstm.regimes import METHODS, QUICK
from imm.experiments.lstm.runs import TRAINING
from imm.experiments.study import Figure, Row, Study

# Table results_lstm: "we report the best value across as many restarts"
PAPER = tuple(
    {"split": split, "width": 1500, "percent": 100, "method": method, "value": value}
    for method, valid, test in (("none", 81.6, 77.5), ("kn-noising", 76.7, 73.9), ("imm-sampled", 76.0, 73.3))
    for split, value in (("valid", valid), ("test", test))
)


def summarise(rows: Sequence[Row]) -> list[Row]:
    """Returns what :func:`lstm_regimes.summarise` does; Kneser-Ney and the first stage are left to that study."""
    return [row for row in lstm_regimes.summarise(rows) if row["method"] != "kneser-ney"]


STUDY = Study(
    name="lstm-perplexity",
    title="Perplexity on the Penn Treebank (Table results_lstm)",
    settings={**TRAINING, "methods": list(METHODS), "cells": []},
    quick=QUICK,
    pieces=lstm_regimes.pieces,
    run=lstm_regimes.run,
    summarise=summarise,
    paper=PAPER,
    figure=Figure(x="method", x_label="perplexity", y_label="", panel="split", note="the same restart for each method"),
    continues=True,
    reads_data=True,
    lists=lstm_regimes.LISTS,
    pieces_of="lstm",
)
