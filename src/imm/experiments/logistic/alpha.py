"""The kernel's α by cross-validation, on data sets of several sizes.

The paper: "With cross-validation, we determine α = 1 to be a good choice", from "a few experiments on held-out data".
Neither the values tried nor the sizes are printed. Beside the held-out rows, fresh points say what each α was worth.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from imm.experiments.logistic.settings import WORLD
from imm.experiments.study import Figure, Row, Settings, Study

if TYPE_CHECKING:
    from torch import Tensor

    from imm.experiments.logistic.runs import Data

NAME = "logistic-alpha"
RISK, HELD_OUT, TEST = "cross-validated risk, nats", "cross-validated accuracy, %", "test accuracy, %"
BEST = "best α by cross-validation"
CHOSEN = "α that cross-validation chooses, % of data sets"
OWN = "test accuracy with each data set's own α, less α = 1"


def cross_validated(settings: Settings, data: "Data", ratio: float) -> "tuple[Tensor, Tensor]":
    """Held-out cross-entropy a row and accuracy in percent, ``[runs]`` each; fold f holds out rows f, f + folds, ….

    The kernel, too, has only the rows that are not held out.
    """
    import torch

    from imm.experiments.logistic import runs as logistic

    runs, n, _ = data.x.shape
    risk, right = torch.empty(runs, n), torch.empty(runs, n)
    for fold in range(settings["folds"]):
        out = torch.arange(n) % settings["folds"] == fold
        kept = logistic.Data(data.x[:, ~out], data.y[:, ~out], data.target[:, ~out])
        weights = logistic.train(settings, kept, "imm", ratio)[..., None]
        logits = (weights[:, :1] + data.x[:, out] @ weights[:, 1:]).squeeze(-1)
        label = data.y[:, out]
        risk[:, out] = torch.nn.functional.binary_cross_entropy_with_logits(logits, label, reduction="none")
        right[:, out] = 100.0 * ((logits > 0) == (label > 0.5))
    return risk.mean(1), right.mean(1)


def pieces(settings: Settings) -> list[Row]:
    """Each size."""
    return [{"method": "imm", "n": n} for n in settings["sizes"]]


def run(settings: Settings, piece: Row) -> Sequence[Row]:
    """Every α on the same data sets, what each of them chooses for itself, and what that choice is worth."""
    import torch

    from imm.experiments.logistic import runs as logistic
    from imm.experiments.sampling import generator
    from imm.experiments.summaries import spread
    from imm.strength import Linear

    n, alphas = piece["n"], settings["alphas"]
    source = generator(settings, NAME, n)
    data = logistic.draw(settings, settings["runs"], n, source)
    test = logistic.draw(settings, settings["runs"], settings["test_points"], source)
    ratio = Linear(*settings["schedule"]).ratio(n)
    each = []
    for alpha in alphas:
        with_alpha = {**settings, "alpha": alpha}
        trained = logistic.train(with_alpha, data, "imm", ratio)
        each.append((*cross_validated(with_alpha, data, ratio), 100 * logistic.accuracy(trained, test)))
    risk, held_out, accuracy = (torch.stack(values) for values in zip(*each, strict=True))  # [alphas, runs]
    at_one = accuracy[alphas.index(settings["alpha"])]
    rows = []
    for quantity, values in ((RISK, risk), (HELD_OUT, held_out), (TEST, accuracy)):
        cells = [{**piece, "quantity": quantity, "alpha": alpha} for alpha in alphas]
        rows += [{**cell, **spread(mine)} for cell, mine in zip(cells, values, strict=True)]
    for row, mine in zip(rows[-len(alphas) :], accuracy, strict=True):
        row |= _gain(mine - at_one)
    chosen = risk.argmin(0)
    shares = [float(100 * (chosen == i).double().mean()) for i in range(len(alphas))]
    rows += [{**piece, "quantity": CHOSEN, "alpha": a, "value": s} for a, s in zip(alphas, shares, strict=True)]
    own = _gain(accuracy.gather(0, chosen[None])[0] - at_one)
    return [*rows, {**piece, "quantity": OWN, "alpha": None, "value": own["gain"], "gain_error": own["gain_error"]}]


def _gain(difference: "Tensor") -> Row:
    """The mean over data sets, and its standard error."""
    return {"gain": float(difference.mean()), "gain_error": float(difference.std() / len(difference) ** 0.5)}


def with_best(rows: Sequence[Row]) -> list[Row]:
    """Adds the α of least cross-validated risk: on the average of each size, and of all sizes together."""
    risks = {(row["n"], row["alpha"]): row["mean"] for row in rows if row["quantity"] == RISK}
    sizes, alphas = ({key[i]: None for key in risks} for i in (0, 1))
    together = {n: (n,) for n in sizes} | {"all": tuple(sizes)}
    found = {n: min(alphas, key=lambda a: sum(risks[size, a] for size in among)) for n, among in together.items()}
    return [*rows, *({"method": "imm", "n": n, "quantity": BEST, "alpha": None, "value": a} for n, a in found.items())]


STUDY = Study(
    name=NAME,
    title="The kernel's α by cross-validation (Appendix log-reg)",
    settings={
        **WORLD,
        "alphas": [0.1, 0.3, 1.0, 3.0, 10.0, 30.0],
        "sizes": [5, 10, 20, 50],
        "folds": 5,
        # "λ/(1+λ) = -0.0111 n + 0.818"
        "schedule": [-0.0111, 0.818],
        "runs": 200,
    },
    quick={"alphas": [0.1, 1.0, 10.0], "sizes": [5, 10], "runs": 50, "steps": 500},
    pieces=pieces,
    run=run,
    summarise=with_best,
    paper=[{"method": "imm", "n": "all", "quantity": BEST, "value": 1.0}],
    figure=Figure(
        x="alpha", x_label="α of the kernel", y_label="mean over data sets", series="n", panel="quantity", log_x=True
    ),
)
