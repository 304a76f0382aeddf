"""How a small displacement grows from refresh to refresh, and how wrong each estimate of IMM's gradient is."""

from dataclasses import replace

import torch
from torch import Tensor

from imm.experiments.logistic.stability import Problem, batches, correction, exact, slope
from imm.experiments.study import Settings

NUDGE = 1e-5
"""Of a weight, for a central difference."""


def derivatives(given: Problem, method: str, ratio: float) -> tuple[Tensor, Tensor]:
    """How the gradient estimate changes with the weights, and with those of the last refresh, at zero weights.

    Returns:
        Two matrices a run, ``[runs, 4, 4]``; their sum is that of a correction without delay.
    """

    def estimate(weights: Tensor, stale: Tensor) -> Tensor:
        above = given.predict(stale if method == "imm-serialized" else weights)
        wanted = (1 - ratio) * given.label + ratio * given.target * above / given.induce(stale)
        return slope(given, weights, wanted)

    runs = len(given.features)
    zero, found = given.features.new_zeros(runs, 4, 1), []
    for which in (0, 1):
        columns = []
        for nudge in NUDGE * torch.eye(4).to(zero):
            ends = [[zero, zero], [zero, zero]]
            ends[0][which], ends[1][which] = zero + nudge[:, None], zero - nudge[:, None]
            columns.append((estimate(*ends[0]) - estimate(*ends[1])) / (2 * NUDGE))
        found.append(torch.cat(columns, -1))
    return found[0], found[1]


def growth(given: Problem, method: str, ratio: float, rate: float, refresh_every: int) -> Tensor:
    """The factor by which the largest displacement grows in r steps near zero weights, ``[runs]``; unstable above 1.

    With ``now`` and ``then`` from :func:`derivatives`, the displacement from refresh to refresh is multiplied by
    ``(1 - η now)^r - η Σ_j (1 - η now)^j then``. To first order streaming is ``imm-current`` whose old weights are a
    running mean of the weights, ``old ← (1 - 1/r) old + (1/r) weights``: a map of both.
    """
    now, then = derivatives(given, method, ratio)
    one = torch.eye(4).to(now).expand_as(now)
    if method == "imm-streaming":
        beta = 1 / refresh_every
        weights = torch.cat([one - rate * (now + beta * then), -rate * (1 - beta) * then], -1)
        step = torch.cat([weights, torch.cat([beta * one, (1 - beta) * one], -1)], 1)
        return _radius(step) ** refresh_every
    kept, total = one, torch.zeros_like(one)
    for _ in range(refresh_every):
        kept, total = kept - rate * now @ kept, total + kept
    return _radius(kept - rate * total @ then)


def _radius(matrix: Tensor) -> Tensor:
    found: Tensor = torch.linalg.eigvals(matrix).abs().amax(-1)
    return found


def gradient_error(
    given: Problem, method: str, refresh_every: int, settings: Settings, case: Settings
) -> dict[str, Tensor]:
    """The estimates of many streams of batches at one point, beside the exact gradient of IMM; ``[runs]`` each.

    All streams follow the path of the correction without delay, to its step ``at``, the last before the refresh.

    Returns:
        ``bias`` and ``spread`` of the estimate, and how much of the bias is along what was gained since the refresh
        (``pull``: positive holds back, negative pushes on), in lengths of the exact gradient.
    """
    last, runs, streams = settings["at"], len(given.features), settings["streams"]
    path = _path(given, settings, case)
    repeated = ("features", "label", "target", "w", "level")
    many = replace(given, **{key: getattr(given, key).repeat(streams, 1, 1) for key in repeated})
    draw = batches(many, case["batch"], settings["seed"])
    refreshed = 0 if method == "imm-streaming" else last + 1 - refresh_every
    factor = correction(many, method, refresh_every, case["batch"]) if method != "imm" else None
    for step in range(refreshed, last + 1):
        rows, weights = draw(), path[step].repeat(streams, 1, 1)
        factors = factor(weights, rows) if factor else None
    estimate = exact(many, weights, rows) if factors is None else slope(many, weights, rows * many.target * factors)
    estimate = estimate.view(streams, runs, 4)
    true = exact(given, path[last], given.features.new_ones(*given.features.shape[:2], 1)).squeeze(-1)
    length = true.norm(dim=-1)
    variance = estimate.var(0).sum(-1)
    error = estimate.mean(0) - true
    gained = (path[last] - path[last + 1 - refresh_every]).squeeze(-1)
    return {
        # The mean over streams is itself uncertain: what that adds to the square is taken off.
        "bias": (error.square().sum(-1) - variance / streams).clamp(min=0).sqrt() / length,
        "spread": variance.sqrt() / length,
        "pull": (error * gained).sum(-1) / gained.norm(dim=-1).clamp(min=1e-12) / length,
    }


def _path(given: Problem, settings: Settings, case: Settings) -> list[Tensor]:
    """The weights at each step, under a correction without delay and all rows a step."""
    factor = correction(given, "imm-serialized", 1, given.features.shape[1])
    path = [given.features.new_zeros(len(given.features), 4, 1)]
    for _ in range(settings["at"]):
        wanted = (1 - case["ratio"]) * given.label + case["ratio"] * given.target * factor(path[-1], path[-1])
        path.append(path[-1] - case["rate"] * slope(given, path[-1], wanted))
    return path
