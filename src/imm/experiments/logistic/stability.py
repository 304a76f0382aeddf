"""Which Q the correction of serialized IMM is made of: the logistic example, all runs at once, in double precision.

The estimates of IMM's gradient differ in the numerator and the denominator of the correction alone:
``Q†/Q̂†`` (Alg. serialized-imm), ``Q/Q̂†`` (which the paper advises against) and ``Q/Q̂`` with a running ``Q̂``
(:class:`imm.matching.Streaming`). ``tests/experiments/test_stability.py`` compares them with :mod:`imm.matching`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from imm.experiments.logistic import runs as logistic
from imm.experiments.sampling import generator
from imm.experiments.study import Settings

BATCHES = 1 << 32
"""Added to the seed of the data, for the order of the rows."""


@dataclass(frozen=True)
class Problem:
    """``runs`` data sets of ``n`` rows; the classes are 1 and 0, in this order.

    Attributes:
        features: the constant and three features, ``[runs, n, 4]``.
        label: one-hot, ``[runs, n, 2]``.
        target: P̂, ``[runs, n, 2]``.
        w: weight of the extended context of row t' for the short context of row t, ``[runs, n, n]``.
        level: which short context a row has, one-hot ``[runs, n, levels]``; None if they do not repeat.
    """

    features: Tensor
    label: Tensor
    target: Tensor
    w: Tensor
    level: Tensor | None

    def logits(self, weights: Tensor) -> Tensor:
        """For weights ``[runs, 4, 1]``, of both classes: half the log-odds and its negative, ``[runs, n, 2]``."""
        half = self.features @ weights / 2
        return torch.cat([half, -half], -1)

    def predict(self, weights: Tensor) -> Tensor:
        """``Q`` at each row, ``[runs, n, 2]``."""
        return torch.softmax(self.logits(weights), -1)

    def induce(self, weights: Tensor) -> Tensor:
        """``Q̂`` at the short context of each row, ``[runs, n, 2]``   (Eq. induced-Q-logreg)."""
        if self.level is not None:
            return self.w @ self.predict(weights)  # rows of the same level share their short context
        z = self.features[..., :2] @ weights[:, :2] + (self.features[..., 2:] @ weights[:, 2:]).mT
        return torch.stack([(self.w * torch.sigmoid(sign * z)).sum(-1) for sign in (1, -1)], -1)

    def objective(self, weights: Tensor, ratio: float) -> Tensor:
        """``(1 - ratio) · CE + ratio · IMM``, ``[runs]``; not finite where training has blown up."""
        log_q = torch.log_softmax(self.logits(weights), -1)
        cross_entropy = -(self.label * log_q).sum(-1).mean(-1)
        risk = -torch.special.xlogy(self.target, self.induce(weights)).sum(-1).mean(-1)
        total: Tensor = (1 - ratio) * cross_entropy + ratio * risk
        return total


def problem(settings: Settings, key: str, levels: int | None) -> Problem:
    """The data of the logistic studies; with ``levels``, x1 is rounded to so many values, so that it repeats."""
    drawn = logistic.draw(settings, settings["runs"], settings["n"], generator(settings, key))
    x, (low, high) = drawn.x.double(), settings["cube"]
    if levels is None:
        level, w = None, logistic.kernel(settings, x[..., 0])
    else:
        code = ((x[..., 0] - low) / (high - low) * levels).long().clamp(max=levels - 1)
        x = torch.cat([(low + (high - low) * (code + 0.5) / levels)[..., None], x[..., 1:]], -1)
        level = torch.nn.functional.one_hot(code, levels).to(x)
        w = level @ level.mT / (level @ level.sum(1)[..., None])
    *normal, offset = settings["plane"]
    above = (x @ x.new_tensor(normal) + offset > 0).to(x)
    target = logistic.bayes(settings, x[..., 0])
    features = torch.cat([torch.ones_like(x[..., :1]), x], -1)
    return Problem(features, torch.stack([above, 1 - above], -1), torch.stack([target, 1 - target], -1), w, level)


Correction = Callable[[Tensor, Tensor], Tensor]
"""From weights ``[runs, 4, 1]`` and what each row counts in the batch ``[runs, n, 1]``, the factor ``[runs, n, 2]``."""


def correction(given: Problem, method: str, refresh_every: int, batch: int) -> Correction:
    """The factor of Eq. serialized-IMM-gradient; it is told of every step once, in order.

    Args:
        given: the data.
        method: ``imm-serialized`` (``Q†/Q̂†``), ``imm-current`` (``Q/Q̂†``) or ``imm-streaming`` (``Q/Q̂``).
        refresh_every: r, in steps; streaming's memory is as many steps of an average short context.
        batch: rows a step.
    """
    if method == "imm-streaming":
        return _streaming(given, (refresh_every - 1) * batch)
    step, stale, induced = 0, given.label, given.label

    def factor(weights: Tensor, _: Tensor) -> Tensor:
        nonlocal step, stale, induced
        if step % refresh_every == 0:
            stale, induced = given.predict(weights), given.induce(weights)
        step += 1
        return (stale if method == "imm-serialized" else given.predict(weights)) / induced

    return factor


def _streaming(given: Problem, memory: float) -> Correction:
    assert given.level is not None
    level = given.level
    memory /= level.shape[-1]
    seen = level.new_zeros(len(level), level.shape[-1], 1)
    running = level.new_full((len(level), level.shape[-1], 2), 0.5)

    def factor(weights: Tensor, rows: Tensor) -> Tensor:
        nonlocal seen, running
        q = given.predict(weights)
        present = level * (rows > 0)
        m = present.sum(1)[..., None]
        kept = seen.clamp(max=memory)
        mixed = (kept * running + present.mT @ q) / (kept + m)
        running = torch.where(m > 0, mixed, running)
        seen = torch.where(m > 0, kept + m, seen)
        return q / (level @ running)

    return factor


def slope(given: Problem, weights: Tensor, direction: Tensor) -> Tensor:
    """The gradient of ``-(1/n) Σ_t Σ_y direction_t(y) log Q(y|x_t)``, ``[runs, 4, 1]``."""
    by_logit = direction.sum(-1, keepdim=True) * given.predict(weights)[..., :1] - direction[..., :1]
    return given.features.mT @ by_logit / given.features.shape[1]


def exact(given: Problem, weights: Tensor, rows: Tensor) -> Tensor:
    """The gradient of IMM at the short contexts of the batch, each with all its extended contexts (levels only)."""
    shared = given.w @ rows  # rows of a level, averaged: each extended context serves every row of the batch
    return slope(given, weights, shared * given.target * given.predict(weights) / given.induce(weights))


def batches(given: Problem, batch: int, seed: int) -> Callable[[], Tensor]:
    """What each row counts in the next step, ``[runs, n, 1]``: passes over all rows, in a new order each time."""
    runs, n, _ = given.features.shape
    source = torch.Generator().manual_seed(BATCHES + seed)
    waiting: list[Tensor] = []

    def draw() -> Tensor:
        if not waiting:
            order = torch.rand(runs, n, generator=source).argsort(1)
            waiting.extend(order.split(batch, 1))
        return given.features.new_zeros(runs, n).scatter_(1, waiting.pop(), n / batch)[..., None]

    return draw if batch < n else lambda: given.features.new_ones(runs, n, 1)


def descend(given: Problem, factor: Correction, settings: Settings, case: Settings) -> tuple[Tensor, Tensor]:
    """Gradient descent from zero on ``(1 - ratio) · CE + ratio · IMM``, the gradient of IMM by the corrections.

    Returns:
        The objective ``[1 + steps / record, runs]``, at the start and every ``record`` steps, and the last weights.
    """
    draw, ratio = batches(given, case["batch"], settings["seed"]), case["ratio"]
    weights = given.features.new_zeros(len(given.features), 4, 1)
    seen = [given.objective(weights, ratio)]
    for step in range(1, settings["steps"] + 1):
        rows = draw()
        wanted = (1 - ratio) * given.label + ratio * given.target * factor(weights, rows)
        weights = weights - case["rate"] * slope(given, weights, rows * wanted)
        if step % settings["record"] == 0:
            seen.append(given.objective(weights, ratio))
    return torch.stack(seen), weights
