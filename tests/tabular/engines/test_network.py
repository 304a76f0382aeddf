"""Networks as full models."""

import numpy as np
import pytest
import torch
from torch import nn

from imm.tabular import IMMClassifier, IMMRegressor, Network
from imm.tabular.contexts import find_pairs
from imm.tabular.engines.network import Draw
from imm.tabular.selection import LAMS
from tests.tabular.tables import table

SMALL = Network(hidden=(8,), epochs=20, learning_rate=0.02)


def linear(n_features, n_outputs):
    return nn.Linear(n_features, n_outputs)


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_it_learns_and_repeats_itself(classes):
    t = table(n=200, classes=classes, noise=0.3)
    kind = IMMClassifier if classes else IMMRegressor
    model = kind(SMALL, short_features=t.short, restricted_model=t.old, lam=0.3)
    first = model.fit(t.x, t.y).predict(t.x_test)
    before = torch.random.get_rng_state()
    np.testing.assert_array_equal(first, model.fit(t.x, t.y).predict(t.x_test))
    assert torch.equal(before, torch.random.get_rng_state())
    assert model.score(t.x_test, t.y_test) > (0.7 if classes else 0.6)


@pytest.mark.parametrize("lam", [0.0, 2.0])
def test_a_linear_module_finds_the_linear_model(lam):
    t = table(n=100)
    engine = Network(module=linear, epochs=200, batch_size=100, learning_rate=0.05, n_contexts=8)
    settings = {"short_features": t.short, "restricted_model": t.old, "lam": lam, "n_neighbors": 8}
    network = IMMClassifier(engine, l2=2.0, **settings).fit(t.x, t.y)
    # Two vectors of weights, w and -w, have half the penalty of the one vector 2 w.
    exact = IMMClassifier("linear", l2=1.0, **settings).fit(t.x, t.y)
    np.testing.assert_allclose(network.predict_proba(t.x), exact.predict_proba(t.x), atol=0.02)


def test_a_factory_may_be_the_model():
    t = table(n=30)
    model = IMMClassifier(linear, lam=0.0).fit(t.x, t.y)
    assert model.predict_proba(t.x).shape == (30, 2)
    with pytest.raises(ValueError, match=r"the module must give \[30, 2\], got shape \(30, 1\)"):
        IMMClassifier(lambda d, k: nn.Linear(d, 1), lam=0.0).fit(t.x, t.y)


def test_lam_is_chosen_for_networks_too():
    t = table(n=40)
    engine = Network(hidden=(4,), epochs=5, l2s=(1.0,))
    model = IMMClassifier(engine, short_features=t.short, restricted_model=t.old).fit(t.x, t.y)
    assert model.choice_.lams == LAMS
    assert 0 <= model.lam_ <= LAMS[-1]


def test_draws_have_the_weights(seed):
    x = np.random.default_rng(seed).normal(size=(12, 2))
    pairs = find_pairs(x, np.ones(12), 6)
    draw = Draw(pairs, 4)
    context = torch.arange(12).repeat_interleave(2000)
    extended, mass = draw(context, torch.Generator().manual_seed(seed))
    assert (mass == 0.25).all()
    for t in range(12):
        drawn = np.bincount(extended[context == t].ravel(), minlength=12) / 8000
        expected = np.zeros(12)
        where = slice(pairs.start[t], pairs.start[t + 1])
        expected[pairs.extended[where]] = pairs.weight[where]
        np.testing.assert_allclose(drawn, expected, atol=0.03)
