"""The logistic regression of the paper (Appendix log-reg), all Monte-Carlo runs of a size as one computation.

Features are uniform over a cube, the label is which side of a plane they are on, the short context is the
first feature. The gradients are written out by hand: with two classes and a linear model the crosstalk form
(Appendix serialized-IMM) needs a few passes over ``[runs, n, n]`` numbers a step, and no autograd graph.
``tests/experiments`` compares them with :mod:`imm.functional` and autograd.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from imm import functional
from imm.experiments.study import Row, Settings

CACHED_PAIRS = 250_000
"""How many pairs of rows are worked on at once: their three arrays stay in the processor's cache."""


@dataclass(frozen=True)
class Data:
    """``runs`` data sets of ``n`` rows.

    Attributes:
        x: features, ``[runs, n, 3]``.
        y: labels, ``[runs, n]``, 0 or 1.
        target: P̂(1 | x1), ``[runs, n]``.
    """

    x: Tensor
    y: Tensor
    target: Tensor


def generator(settings: Settings, *key: int | str) -> torch.Generator:
    """A stream of random numbers of its own for each key: studies share no data, methods of a cell do."""
    words = [zlib.crc32(part.encode()) if isinstance(part, str) else part for part in key]
    state = np.random.SeedSequence([settings["seed"], *words]).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0]) >> 1)


def draw(settings: Settings, runs: int, n: int, source: torch.Generator) -> Data:
    """Fresh features with their labels and the Bayes-optimal restricted model."""
    low, high = settings["cube"]
    x = low + (high - low) * torch.rand(runs, n, 3, generator=source)
    *normal, offset = settings["plane"]
    y = (x @ torch.tensor(normal) + offset > 0).to(x.dtype)
    return Data(x, y, bayes(settings, x[..., 0]))


def bayes(settings: Settings, x1: Tensor) -> Tensor:
    """``P̄(1 | x1)``: the part of the cube's slice at ``x1`` that is above the plane.

    ``b x2 + c x3`` is a sum of two uniforms, so its distribution function is a difference of squares.
    """
    low, high = settings["cube"]
    a, b, c, d = settings["plane"]
    # On the unit square, with widths b and c: above the plane is  width_b u + width_c v > k.
    width_b, width_c = b * (high - low), c * (high - low)
    k = -(a * x1 + d + (b + c) * low)
    ramp = [(k - shift).clamp(min=0).square() for shift in (0.0, width_b, width_c, width_b + width_c)]
    below = (ramp[0] - ramp[1] - ramp[2] + ramp[3]) / (2 * width_b * width_c)
    above: Tensor = (1 - below).clamp(0, 1)  # the squares round
    return above


def kernel(settings: Settings, x1: Tensor) -> Tensor:
    """The normalised Laplace weights ``w_{t,t'}`` of every pair of rows, ``[runs, n, n]``   (Eq. induced-Q-logreg)."""
    return torch.softmax(-settings["alpha"] * (x1[:, :, None] - x1[:, None, :]).abs(), -1)


def train(settings: Settings, data: Data, method: str, ratio: float) -> Tensor:
    """Full-batch gradient descent on ``(1 - ratio) · CE + ratio · second loss`` from zero.

    Returns:
        ``[runs, 4]``: the bias and three weights.
    """
    at_once = max(1, CACHED_PAIRS // data.x.shape[1] ** 2)
    parts = zip(data.x.split(at_once), data.y.split(at_once), data.target.split(at_once), strict=True)
    return torch.cat([_descend(settings, Data(*part), method, ratio) for part in parts])


def _descend(settings: Settings, data: Data, method: str, ratio: float) -> Tensor:
    features = torch.cat([torch.ones_like(data.x[..., :1]), data.x], -1)
    runs, n, width = features.shape
    slope = _slopes(settings, data, method, ratio)
    weights = features.new_zeros(runs, width, 1)
    for step in range(settings["steps"]):
        weights -= settings["rate"] / n * slope(features, weights, step)
    return weights.squeeze(-1)


Slope = Callable[[Tensor, Tensor, int], Tensor]
"""From features ``[runs, n, 4]``, weights ``[runs, 4, 1]`` and the step, n times the gradient, ``[runs, 4, 1]``."""


def _slopes(settings: Settings, data: Data, method: str, ratio: float) -> Slope:
    if method == "none":
        return _towards(data.y)
    if method == "noising":
        return _towards((1 - ratio) * data.y + ratio * data.target)
    primary = _towards(data.y)
    second = {"imm": _exact, "imm-serialized": _serialized}[method](settings, data)
    return lambda features, weights, step: (
        (1 - ratio) * primary(features, weights, step) + ratio * second(features, weights, step)
    )


def _towards(label: Tensor) -> Slope:
    """Cross-entropy with labels that may be soft: those of the data, or noised in expectation   (Eq. noising)."""
    return lambda features, weights, _: features.mT @ (torch.sigmoid(features @ weights) - label[..., None])


def _exact(settings: Settings, data: Data) -> Slope:
    """IMM with every pair (short of t, extended of t')   (Eq. IMM-exact-logreg)."""
    w = kernel(settings, data.x[..., 0])
    p = data.target[..., None]

    def slope(features: Tensor, weights: Tensor, _: int) -> Tensor:
        short = features[..., :2] @ weights[:, :2]
        extended = features[..., 2:] @ weights[:, 2:]
        q = (short + extended.mT).sigmoid_()  # [runs, t, t']
        share = w * q
        induced = share.sum(-1, keepdim=True)
        # -P̂(1)/Q̂(1) + P̂(0)/Q̂(0): what the loss of t gains by a little more Q̂(1).
        pull = (1 - p) / (1 - induced) - p / induced
        share.addcmul_(share, q, value=-1)  # w q (1 - q)
        by_short = pull * share.sum(-1, keepdim=True)
        by_extended = share.mT @ pull
        return torch.cat([features[..., :2].mT @ by_short, features[..., 2:].mT @ by_extended], 1)

    return slope


def _serialized(settings: Settings, data: Data) -> Slope:
    """IMM's gradient from the primary pass, correction refreshed every n steps   (Eq. serialized-IMM-gradient)."""
    w = kernel(settings, data.x[..., 0])
    p = data.target[..., None]
    n = data.x.shape[1]
    one = zero = p  # P̂ times the correction for y = 1 and y = 0; set at step 0

    def slope(features: Tensor, weights: Tensor, step: int) -> Tensor:
        nonlocal one, zero
        q = torch.sigmoid(features @ weights)
        if step % n == 0:
            pairs = (features[..., :2] @ weights[:, :2] + (features[..., 2:] @ weights[:, 2:]).mT).sigmoid_()
            induced = (w * pairs).sum(-1, keepdim=True)
            one, zero = p * q / induced, (1 - p) * (1 - q) / (1 - induced)
        return features.mT @ (zero * q - one * (1 - q))

    return slope


def accuracy(weights: Tensor, test: Data, ratio: float = 0.0) -> Tensor:
    """The share of test points predicted right, ``[runs]``; with ``ratio`` the prediction is interpolated with P̄."""
    logits = test.x @ weights[:, 1:, None] + weights[:, :1, None]
    q = torch.sigmoid(logits.squeeze(-1))
    predicted = (1 - ratio) * q + ratio * test.target
    return ((predicted > 0.5) == (test.y > 0.5)).double().mean(-1)


def risk(weights: Tensor, short: Data, extended: Data, w: Tensor | None) -> Tensor:
    """``IMM(Q)`` a row, ``[runs]``: short contexts from one data set, extended ones from another.

    Args:
        weights: ``[runs, 4]``.
        short: where the first feature and the target are taken from; a single run serves all.
        extended: where the other features are taken from.
        w: weights of the extended contexts for each short one, ``[runs, n, n]``; equal if None.
    """
    by_short = weights[:, :1] + weights[:, 1:2] * short.x[..., 0]
    by_extended = (extended.x[..., 1:] @ weights[:, 2:, None]).squeeze(-1)
    logits = by_short[:, :, None] + by_extended[:, None, :]
    pairs = torch.stack([-logits, logits], -1)
    target = torch.stack([1 - short.target, short.target], -1).expand(len(weights), -1, -1)
    log_induced = functional.induce(torch.nn.functional.logsigmoid(pairs), w)
    return torch.stack([functional.matching_loss(*run) for run in zip(log_induced, target, strict=True)])


def spread(values: Tensor) -> Row:
    """Mean and 10th and 90th percentiles over runs."""
    p10, p90 = np.percentile(values.numpy(), [10, 90])
    return {"mean": float(values.mean()), "p10": float(p10), "p90": float(p90), "runs": len(values)}


def cell(settings: Settings, name: str, n: int, method: str, ratio: float, weaken: float = 0.0) -> Row:
    """Test accuracy, in percent, of one method at one size; all methods of a size see the same data sets.

    Args:
        settings: of the study.
        name: the study's, which decides the data.
        n: rows for training.
        method: ``none``, ``interpolation``, ``noising``, ``imm`` or ``imm-serialized``.
        ratio: λ/(1+λ), or the restricted model's share in an interpolation.
        weaken: how much of a coin flip is mixed into the target (Appendix quality).
    """
    source = generator(settings, name, n)
    data = draw(settings, settings["runs"], n, source)
    test = draw(settings, settings["runs"], settings["test_points"], source)
    if weaken:
        data = Data(data.x, data.y, (1 - weaken) * data.target + weaken / 2)
    weights = train(settings, data, "none" if method == "interpolation" else method, ratio)
    mixed = accuracy(weights, test, ratio if method == "interpolation" else 0.0)
    return spread(100 * mixed)
