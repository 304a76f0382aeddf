"""The hand-written, batched gradients against imm.functional and autograd."""

import numpy as np
import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from imm import functional
from imm.experiments.logistic import runs as logistic
from imm.experiments.logistic.settings import WORLD
from imm.experiments.sampling import generator
from imm.experiments.summaries import spread
from imm.inducers import Kernel
from imm.matching import Exact, Serialized

SETTINGS = {**WORLD, "steps": 40}


def double(data: logistic.Data) -> logistic.Data:
    return logistic.Data(data.x.double(), data.y.double(), data.target.double())


def data_sets(n: int = 6, runs: int = 3, seed: int = 0) -> logistic.Data:
    return double(logistic.draw(SETTINGS, runs, n, generator({"seed": seed}, "test", n)))


def reference_train(data: logistic.Data, run: int, method: str, ratio: float) -> torch.Tensor:
    """One run, with the package's own matchings and autograd."""
    x, y, p = data.x[run], data.y[run], data.target[run]
    weights = torch.zeros(4, dtype=x.dtype, requires_grad=True)
    target, short, rows = torch.stack([1 - p, p], 1), x[:, 0], torch.arange(len(x))
    kernel = Kernel(short, alpha=SETTINGS["alpha"])

    def log_q(short, index):
        logits = weights[0] + weights[1] * short + x[index, 1:] @ weights[2:]
        return logsigmoid(torch.stack([-logits, logits], 1))

    exact = Exact(target, kernel, log_q)
    serialized = Serialized(target, kernel, log_q, refresh_every=len(x))

    for _ in range(SETTINGS["steps"]):
        weights.grad = None
        loss = (1 - ratio) * binary_cross_entropy_with_logits(weights[0] + x @ weights[1:], y)
        if method == "imm":
            loss = loss + ratio * exact(None, short, rows)
        elif method == "noising":
            loss = loss + ratio * functional.matching_loss(log_q(short, rows), target)
        elif method == "imm-serialized":
            loss = loss + ratio * serialized(log_q(short, rows), short, rows)
        loss.backward()
        with torch.no_grad():
            weights -= SETTINGS["rate"] * weights.grad
    return weights.detach()


@pytest.mark.parametrize(
    ("method", "ratio"), [("none", 0.0), ("noising", 0.6), ("imm", 0.6), ("imm", 0.9), ("imm-serialized", 0.7)]
)
def test_batched_training_equals_one_run_at_a_time_with_the_package(method, ratio):
    data = data_sets()
    batched = logistic.train(SETTINGS, data, method, ratio)
    for run in range(len(data.x)):
        torch.testing.assert_close(batched[run], reference_train(data, run, method, ratio), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", ["noising", "imm", "imm-serialized"])
def test_ratio_zero_is_no_second_loss(method):
    data = data_sets()
    torch.testing.assert_close(logistic.train(SETTINGS, data, method, 0.0), logistic.train(SETTINGS, data, "none", 0.0))


@pytest.mark.parametrize(
    ("cube", "plane"), [([0.0, 1.0], [1.5, 1.0, 1.0, -1.75]), ([-1.0, 2.0], [0.5, 2.0, 1.0, -0.3])]
)
def test_bayes_is_the_share_of_the_slice_above_the_plane(cube, plane):
    settings = {**WORLD, "cube": cube, "plane": plane}
    x1 = torch.linspace(*cube, 7)
    low, high = cube
    rest = low + (high - low) * torch.rand(200_000, 2, generator=torch.Generator().manual_seed(0))
    a, b, c, d = plane
    share = (a * x1[:, None] + rest @ torch.tensor([b, c]) + d > 0).float().mean(1)
    torch.testing.assert_close(logistic.bayes(settings, x1), share, atol=5e-3, rtol=0)


def test_risk_is_the_exact_matching_loss_on_training_rows():
    data = data_sets()
    weights = logistic.train(SETTINGS, data, "imm", 0.5)
    risks = logistic.risk(weights, data, data, logistic.kernel(SETTINGS, data.x[..., 0]))
    for run in range(len(data.x)):
        x, p = data.x[run], data.target[run]

        def log_q(short, index, x=x, w=weights[run]):
            logits = w[0] + w[1] * short + x[index, 1:] @ w[2:]
            return logsigmoid(torch.stack([-logits, logits], 1))

        exact = Exact(torch.stack([1 - p, p], 1), Kernel(x[:, 0], alpha=1.0), log_q)
        torch.testing.assert_close(risks[run], exact(None, x[:, 0], torch.arange(len(x))))


def test_interpolation_of_one_predicts_with_the_restricted_model_alone():
    test = data_sets(n=500)
    own = logistic.accuracy(torch.randn(3, 4, dtype=torch.float64), test, ratio=1.0)
    torch.testing.assert_close(own, ((test.target > 0.5) == (test.y > 0.5)).double().mean(-1))


def test_methods_of_a_cell_see_the_same_data_and_studies_do_not():
    settings = {**SETTINGS, "runs": 5}
    first = logistic.cell(settings, "a", 5, "none", 0.0)
    assert logistic.cell(settings, "a", 5, "interpolation", 0.0) == first
    assert logistic.cell(settings, "b", 5, "none", 0.0) != first
    assert logistic.cell({**settings, "seed": 1}, "a", 5, "none", 0.0) != first


def test_spread_is_mean_and_percentiles():
    assert spread(torch.arange(101.0)) == {"mean": 50.0, "p10": 10.0, "p90": 90.0, "runs": 101}
    assert np.isfinite(spread(torch.ones(1))["p90"])
