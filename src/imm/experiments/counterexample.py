"""Prop. counterexample: noising does not recover the true model even from infinite data; IMM does.

The distribution, Q† and g are those of the proof (Appendix noising-failure). Beyond the proof, which shows
that g can be negative, the minimisers of the two idealized objectives (Eqs. noising and KL + KL-induced) are
found numerically from random starts, and their distance from P is reported.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from imm.experiments.study import Row, Settings, Study

if TYPE_CHECKING:
    from torch import Tensor

JOINT = [[[0.396, 0.003], [0.1, 0.05]], [[0.004, 0.297], [0.1, 0.05]]]
"""``P(y, short, extended)`` of the proof, short = x_{-1} and extended = x_{-2}."""


def noising_gap(joint: "Tensor", log_q: "Tensor") -> "Tensor":
    """``g(Q) = Σ π(x) Σ_y P̄(y|short) log P(y|x)/Q(y|x)``   (Eq. noising-expression); ``log_q`` [y, short, extended]."""
    context = joint.sum(0)
    restricted = joint.sum(2) / joint.sum((0, 2))
    log_p = (joint / context).log()
    return (context * restricted[:, :, None] * (log_p - log_q)).sum()


def minimiser(joint: "Tensor", method: str, lam: float, seed: int) -> "Tensor":
    """``Q(y|x)`` that minimises ``KL(P||Q) + λ · g`` (noising) or ``+ λ · KL(P̄||Q̄)`` (imm), [y, short, extended]."""
    import torch

    from imm import functional

    context = joint.sum(0)
    p = joint / context
    start = torch.randn(joint.shape, dtype=joint.dtype, generator=torch.Generator().manual_seed(seed))
    logits = start.requires_grad_()
    optimizer = torch.optim.LBFGS(
        [logits], max_iter=500, tolerance_grad=1e-12, tolerance_change=0, line_search_fn="strong_wolfe"
    )

    def loss() -> "Tensor":
        optimizer.zero_grad()
        log_q = torch.log_softmax(logits, 0)
        cross_entropy = (joint * (p.log() - log_q)).sum()
        if method == "noising":
            second = noising_gap(joint, log_q)
        else:
            log_induced = functional.induce(log_q.permute(1, 2, 0), context)  # [short, extended, y]
            restricted = (joint.sum(2) / context.sum(1)).T
            second = functional.divergence(log_induced, restricted, sample_weight=context.sum(1))
        total = functional.objective(cross_entropy, second, lam)
        total.backward()
        return total

    optimizer.step(loss)
    return torch.softmax(logits.detach(), 0)


def pieces(settings: Settings) -> list[Row]:
    """The proof's number, then each objective at each λ."""
    return [{"quantity": "g at Q†"}] + [
        {"method": method, "lam": lam} for lam in settings["lams"] for method in ("noising", "imm")
    ]


def run(settings: Settings, piece: Row) -> Sequence[Row]:
    """The value of g, or how far a minimiser is from P."""
    import torch

    joint = torch.tensor(JOINT, dtype=torch.float64)
    if "quantity" in piece:
        half = torch.full(joint.shape, 0.5, dtype=joint.dtype)
        return [
            {"method": "noising", "quantity": "g at Q†", "lam": None, "value": noising_gap(joint, half.log()).item()}
        ]
    p = joint / joint.sum(0)
    found = [minimiser(joint, piece["method"], piece["lam"], settings["seed"] + s) for s in range(settings["starts"])]
    worst = max((q - p).abs().max().item() for q in found)
    return [{"method": piece["method"], "quantity": "largest error of Q*", "lam": piece["lam"], "value": worst}]


STUDY = Study(
    name="counterexample",
    title="Noising is inconsistent, IMM is not (Prop. counterexample)",
    settings={"lams": [0.2, 1.0, 1.5], "starts": 5, "seed": 0},
    quick={"starts": 2},
    pieces=pieces,
    run=run,
    paper=[{"method": "noising", "quantity": "g at Q†", "lam": None, "value": -1.1}],
)
