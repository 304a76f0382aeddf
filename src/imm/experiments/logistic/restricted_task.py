"""Fig. log-reg-restricted-task: with more IMM, the induced model does the restricted task better.

``IMM(Q)`` is reported a row (the paper's sum over n), on the training rows as the objective sees it (``train``)
and, beyond the paper, for fresh rows with the true induced model (``population``).
"""

from collections.abc import Sequence

from imm.experiments.logistic.settings import WORLD
from imm.experiments.sampling import generator
from imm.experiments.study import Figure, Row, Settings, Study
from imm.experiments.summaries import spread

NAME = "logistic-restricted"


def pieces(settings: Settings) -> list[Row]:
    """Each ratio."""
    return [{"method": "imm" if ratio else "none", "ratio": ratio} for ratio in settings["ratios"]]


def run(settings: Settings, piece: Row) -> Sequence[Row]:
    """The IMM risk of the models trained at one ratio."""
    from imm.experiments.logistic import runs as logistic

    source = generator(settings, NAME)
    data = logistic.draw(settings, settings["runs"], settings["n"], source)
    fresh = logistic.draw(settings, 1, settings["fresh"], source)
    weights = logistic.train(settings, data, piece["method"], piece["ratio"])
    risks = {
        "train": logistic.risk(weights, data, data, logistic.kernel(settings, data.x[..., 0])),
        # x2, x3 are independent of x1: the true induced model gives every fresh extended context the same weight.
        "population": logistic.risk(weights, fresh, fresh, None),
    }
    return [{**piece, "split": split, **spread(values)} for split, values in risks.items()]


STUDY = Study(
    name=NAME,
    title="The IMM risk over λ/(1+λ) (Fig. log-reg-restricted-task)",
    settings={
        **WORLD,
        # "for n = 10 and 30 Monte-Carlo runs"
        "n": 10,
        "runs": 30,
        # "We stop at λ/(1+λ) = 0.9"
        "ratios": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
        "fresh": 400,
    },
    quick={"ratios": [0.0, 0.5, 0.9], "steps": 1000},
    pieces=pieces,
    run=run,
    figure=Figure(x="ratio", x_label="λ/(1+λ)", y_label="IMM(Q) a row, nats", series="split"),
)
