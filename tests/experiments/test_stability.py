"""Corrections with the old and the current Q, beside imm.matching; and why one of them is unstable."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from imm.experiments.logistic import stability, stability_local
from imm.experiments.logistic.settings import WORLD
from imm.inducers import Kernel, Multiset
from imm.matching import Exact, Serialized, Streaming

SETTINGS = {**WORLD, "runs": 2, "n": 12, "steps": 15, "record": 5}
CASE = {"levels": 3, "batch": 4, "rate": 1.0, "ratio": 0.7}
METHODS = ("imm-serialized", "imm-current", "imm-streaming")


def data(levels=3, runs=2, n=12):
    return stability.problem({**SETTINGS, "runs": runs, "n": n}, "test", levels)


def short_of(given, run):
    """The short context of each row: the number of its level, or the first feature."""
    return given.level[run].argmax(1) if given.level is not None else given.features[run, :, 1]


def forward(given, run, weights):
    """The full model as a matching calls it, of one run."""
    x, own = given.features[run], short_of(given, run)

    def predict(short, index):
        row = (short[:, None] == own).long().argmax(1)  # one that has this short context
        logits = x[row, :2] @ weights[:2] + x[index, 2:] @ weights[2:]
        return logsigmoid(torch.stack([logits, -logits], 1))

    return predict


def reference(given, run, method, refresh_every, settings, case):
    """One run, with the package's own matchings and autograd; the current Q over a stale Q̂† by its tangent."""
    value, target, label = short_of(given, run), given.target[run], given.label[run, :, 0]
    inducer = Multiset(value) if given.level is not None else Kernel(value, alpha=1.0)
    weights = torch.zeros(4, dtype=torch.float64, requires_grad=True)

    def predict(short, index):
        return forward(given, run, weights)(short, index)

    serialized = Serialized(target, inducer, predict, refresh_every)
    draw = stability.batches(given, case["batch"], settings["seed"])
    if method == "imm-streaming":
        streaming = Streaming(target, inducer, (refresh_every - 1) * case["batch"] / 3, math.inf)
    for step in range(settings["steps"]):
        rows = draw()[run, :, 0].nonzero().squeeze(1)
        mine = predict(value[rows], rows)
        if method == "imm-streaming":
            matching = streaming(mine, value[rows], rows)
        elif method == "imm-serialized":
            matching = serialized(mine, value[rows], rows)
        else:
            if step % refresh_every == 0:
                serialized.refresh()
            induced = serialized.induced[serialized._group[rows]]
            matching = -(target[rows] * mine.exp() / induced).sum(1).mean()
        logits = given.features[run, rows] @ weights
        loss = (1 - case["ratio"]) * binary_cross_entropy_with_logits(logits, label[rows]) + case["ratio"] * matching
        (gradient,) = torch.autograd.grad(loss, weights)
        weights = (weights - case["rate"] * gradient).detach().requires_grad_()
    return weights.detach()


@pytest.mark.parametrize("refresh_every", [1, 4])
@pytest.mark.parametrize(
    ("levels", "batch", "method"), [(3, 4, m) for m in METHODS] + [(None, 12, m) for m in METHODS[:2]]
)
def test_training_equals_one_run_at_a_time_with_the_package(levels, batch, method, refresh_every):
    given, case = data(levels), {**CASE, "levels": levels, "batch": batch}
    factor = stability.correction(given, method, refresh_every, batch)
    objective, weights = stability.descend(given, factor, SETTINGS, case)
    assert objective.shape == (4, 2)
    for run in range(2):
        expected = reference(given, run, method, refresh_every, SETTINGS, case)
        torch.testing.assert_close(weights[run, :, 0], expected, rtol=1e-5, atol=1e-5)  # its table is float32


def random_weights(runs=2, seed=0):
    return 2 * torch.randn(runs, 4, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("method", METHODS)
def test_right_after_a_refresh_each_gradient_averages_to_the_exact_one(method):
    """Over the batches of a pass; streaming over all rows at once, as its running model has only seen those."""
    given, weights = data(), random_weights()
    batch = 12 if method == "imm-streaming" else 4
    draw = stability.batches(given, batch, 0)
    factor = stability.correction(given, method, 100, batch)
    passes = [draw() for _ in range(12 // batch)]
    mean = sum(stability.slope(given, weights, rows * given.target * factor(weights, rows)) for rows in passes)
    mean = mean / len(passes)
    for run in range(2):
        parameter = weights[run, :, 0].clone().requires_grad_()
        code = given.level[run].argmax(1)
        exact = Exact(given.target[run], Multiset(code), forward(given, run, parameter))(None, code, torch.arange(12))
        torch.testing.assert_close(mean[run, :, 0], torch.autograd.grad(exact, parameter)[0])
    whole = torch.ones(2, 12, 1, dtype=torch.float64)
    torch.testing.assert_close(mean, stability.exact(given, weights, whole))


def test_the_old_model_descends_a_bound_above_the_risk_and_the_current_one_a_bound_below():
    """Jensen, as the corrections of a short context average to one; and the tangent of -log."""
    given = data(runs=50)
    old, new = random_weights(50), random_weights(50, seed=1)
    before, induced = given.predict(old), given.induce(old)
    factor = before / induced
    torch.testing.assert_close(given.w @ factor, torch.ones_like(factor))

    def risk(weights):
        return -(given.target * given.induce(weights).log()).sum(-1).mean(-1)

    def above(weights):
        return -(given.target * factor * given.predict(weights).log()).sum(-1).mean(-1)

    def below(weights):
        return -(given.target * given.induce(weights) / induced).sum(-1).mean(-1)

    assert (above(new) - above(old) >= risk(new) - risk(old)).all()
    assert (below(new) - below(old) <= risk(new) - risk(old)).all()


def test_the_current_model_has_corrections_that_do_not_average_to_one():
    given, weights = data(), random_weights()
    rows = torch.ones(2, 12, 1, dtype=torch.float64)
    for method in ("imm-serialized", "imm-current"):
        factor = stability.correction(given, method, 100, 12)
        factor(weights, rows)
        mean = given.w @ factor(weights + 1, rows)
        assert torch.allclose(mean, torch.ones_like(mean)) == (method == "imm-serialized")


@pytest.mark.parametrize("method", METHODS[:2])
def test_growth_is_that_of_the_cycle_from_refresh_to_refresh(method):
    """At so small a rate that a cycle hardly leaves the point where it begins."""
    given, rate, r = data(n=30), 1e-4, 40
    rows = torch.ones(2, 30, 1, dtype=torch.float64)

    def cycle(weights):
        factor = stability.correction(given, method, r, 30)
        for _ in range(r):
            wanted = 0.3 * given.label + 0.7 * given.target * factor(weights, rows)
            weights = weights - rate * stability.slope(given, weights, wanted)
        return weights

    columns = [
        (cycle(d.expand(2, 4)[..., None]) - cycle(-d.expand(2, 4)[..., None])) / 2e-5
        for d in 1e-5 * torch.eye(4).double()
    ]
    radius = torch.linalg.eigvals(torch.cat(columns, -1)).abs().amax(-1)
    torch.testing.assert_close(stability_local.growth(given, method, 0.7, rate, r) - 1, radius - 1, rtol=2e-2, atol=0)


def test_streaming_is_stable_at_every_memory_where_the_gradient_itself_is():
    """Where κ is all the curvature: for η κ < 4 r - 2; and for η κ < 1 if Q̂ lacks the batch's own predictions."""
    for memory in (1, 2, 5, 40, 1000):
        beta = 1 / memory
        for product, stable in ((1.99, True), (0.99 * (4 * memory - 2), True), (1.01 * (4 * memory - 2), False)):
            step = np.array([[1 - product * beta, -product * (1 - beta)], [beta, 1 - beta]])
            assert (abs(np.linalg.eigvals(step)).max() < 1) == stable
        for product in (0.99, 1.01):
            late = np.array([[1, -product], [beta, 1 - beta]])
            assert (abs(np.linalg.eigvals(late)).max() < 1) == (product < 1)


def test_below_a_lambda_of_one_no_refresh_period_is_too_long_near_zero():
    """There IMM's curvature along the constant is λ times that of the cross-entropy."""
    given = data(levels=5, n=40, runs=20)
    assert (stability_local.growth(given, "imm-current", 0.45, 1.0, 1000) < 1).all()
    assert (stability_local.growth(given, "imm-current", 0.55, 1.0, 1000) > 1).all()


def test_gradient_errors_have_the_signs_that_the_bounds_say():
    settings = {**SETTINGS, "at": 19, "streams": 2}
    case = {**CASE, "batch": 12}
    found = {m: stability_local.gradient_error(data(), m, 10, settings, case) for m in ("imm", *METHODS)}
    assert float(found["imm"]["bias"].max()) < 1e-9
    assert (found["imm-serialized"]["pull"] > 0).all()
    assert (found["imm-current"]["pull"] < 0).all()
    assert float(found["imm-current"]["spread"].max()) < 1e-9  # all rows: nothing is drawn
