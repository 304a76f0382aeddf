"""Fig. logreg-visualization: the cube, the plane that is learned without and with IMM, and what IMM does to it.

The paper: IMM "biases the separating plane to have the right inclination/alignment with the x1-axis". The figure shows
one data set, the one that is nearest to the medians; how far planes lean the wrong way is measured on all of them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from imm.experiments.logistic.settings import WORLD
from imm.experiments.study import Planes, Row, Settings, Study

if TYPE_CHECKING:
    from torch import Tensor

NAME = "logistic-planes"
METHODS = ("none", "noising", "imm")
DRAWN = ("none", "imm")
TERMS = ("constant", "x1", "x2", "x3")
PLANE, POINT, INDUCED = "plane", "point", "share of label 1 at x1"
LEAN, TURN = "inclination to the x1-axis", "direction within x2, x3"


def angles(weights: "Tensor", true: "Tensor") -> "dict[str, Tensor]":
    """How many degrees normals are from the true one: in their angle with the x1-axis, and around this axis.

    Args:
        weights: ``[runs, 4]``, the constant first.
        true: ``[4]``.
    """
    import torch

    def lean(normal: "Tensor") -> "Tensor":
        return torch.atan2(normal[..., 2:].norm(dim=-1), normal[..., 1])

    def turn(normal: "Tensor") -> "Tensor":
        return torch.atan2(normal[..., 3], normal[..., 2])

    away = (turn(weights) - turn(true)).abs()
    around = torch.minimum(away, 2 * torch.pi - away)
    return {LEAN: torch.rad2deg((lean(weights) - lean(true)).abs()), TURN: torch.rad2deg(around)}


def nearest_to_medians(figures: "Sequence[Tensor]") -> int:
    """The run whose figures, ``[runs]`` each, are by rank nearest to the middle."""
    import torch

    ranks = torch.stack([values.argsort().argsort().double() for values in figures])
    return int((ranks - (ranks.shape[1] - 1) / 2).abs().sum(0).argmin())


def induced(weights: "Tensor", x1: "Tensor", settings: Settings) -> "Tensor":
    """The true induced model, ``Q(1 | x1)`` averaged over a fine grid of x2 and x3, ``[len(x1)]``."""
    import torch

    low, high = settings["cube"]
    middle = low + (high - low) * (torch.arange(settings["grid"]) + 0.5) / settings["grid"]
    rest = weights[2] * middle[:, None] + weights[3] * middle
    return torch.sigmoid(weights[0] + weights[1] * x1[:, None, None] + rest).mean((1, 2))


def pieces(_: Settings) -> list[Row]:
    """One: the data set that is drawn is found by comparing all of them."""
    return [{"method": "all"}]


def run(settings: Settings, _: Row) -> Sequence[Row]:
    """The angles of all data sets; points, planes and induced models of one."""
    import torch

    from imm.experiments.logistic import runs as logistic
    from imm.experiments.sampling import generator
    from imm.experiments.summaries import spread
    from imm.strength import Linear

    n = settings["n"]
    data = logistic.draw(settings, settings["runs"], n, generator(settings, NAME))
    ratio = Linear(*settings["schedule"]).ratio(n)
    trained = {method: logistic.train(settings, data, method, ratio) for method in METHODS}
    (low, high), (*normal, offset) = settings["cube"], settings["plane"]
    true = torch.tensor([offset, *normal])
    found = {method: angles(weights, true) for method, weights in trained.items()}
    rows = [
        {"method": method, "quantity": quantity, **spread(values)}
        for quantity in (LEAN, TURN)
        for method in METHODS
        for values in [found[method][quantity]]
    ]
    one = nearest_to_medians([found[method][quantity] for method in DRAWN for quantity in (LEAN, TURN)])
    drawn = {"true": true, **{method: trained[method][one] for method in METHODS}}
    rows += [
        {"method": method, "quantity": PLANE, "term": term, "value": value}
        for method, weights in drawn.items()
        for term, value in zip(TERMS, weights.tolist(), strict=True)
    ]
    for number, (x, y) in enumerate(zip(data.x[one].tolist(), data.y[one].tolist(), strict=True)):
        place = dict(zip(TERMS[1:], x, strict=True))
        rows.append({"method": "data", "quantity": POINT, "point": number, **place, "value": y})
    x1 = torch.linspace(low, high, settings["curve"])
    curves = {"restricted": logistic.bayes(settings, x1)}
    curves |= {method: induced(trained[method][one], x1, settings) for method in METHODS}
    return rows + [
        {"method": method, "quantity": INDUCED, "x1": place, "value": value}
        for method, curve in curves.items()
        for place, value in zip(x1.tolist(), curve.tolist(), strict=True)
    ]


STUDY = Study(
    name=NAME,
    title="The plane without and with IMM, and the induced models (Fig. logreg-visualization)",
    settings={
        **WORLD,
        # Not printed. Here small enough for the planes to differ.
        "n": 10,
        # "λ/(1+λ) = -0.0111 n + 0.818"
        "schedule": [-0.0111, 0.818],
        "runs": 300,
        "curve": 21,
        "grid": 200,
    },
    quick={"runs": 30, "steps": 500},
    pieces=pieces,
    run=run,
    figure=Planes(
        cube=(0.0, 1.0),
        terms=TERMS,
        planes={"true": "true plane", "none": "learned without IMM", "imm": "learned with IMM"},
        curves={"restricted": "the restricted model", "none": "induced, without IMM", "imm": "induced, with IMM"},
        plane=PLANE,
        point=POINT,
        curve=INDUCED,
        angles=(LEAN, TURN),
        at=0.9,
        note="one data set of 10 rows, the nearest to the medians; below right all 300, bars: 10th to 90th percentile",
    ),
)
