"""Trees' objective: its gradients, its pairs, and what the libraries make of it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import softmax

from imm import functional
from imm.tabular.contexts import find_pairs
from imm.tabular.engines.base import Problem
from imm.tabular.engines.boosting import Ground, Objective, draw, pair_rows
from imm.tabular.engines.linear import Linear

ENGINES = {
    "lightgbm": ("imm.tabular.engines.lightgbm", "LightGBM"),
    "xgboost": ("imm.tabular.engines.xgboost", "XGBoost"),
}


def problem(n=40, n_classes=2, seed=0, n_neighbors=6):
    """Rows with one short and two extended features; the label depends on all, the target on the short one."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    short = np.array([True, False, False])
    weight = rng.uniform(0.5, 2, size=n)
    pairs = find_pairs(x[:, short], weight, n_neighbors, 1.0, False, None)
    if n_classes:
        y = rng.integers(n_classes, size=n)
        target = rng.dirichlet(np.ones(n_classes), size=len(pairs.row))
    else:
        y, target = rng.normal(size=n), rng.normal(size=(len(pairs.row), 1))
    return Problem(x, y, weight, n_classes, short, pairs, target)


def with_old(given):
    """The same, its short column being the old model's word."""
    return replace(given, x=given.x[:, ::-1], short=given.short[::-1], n_old=1)


def value(given, drawn, lam, z):
    """The objective, with the paper's functions."""
    n, weight = len(given.x), torch.from_numpy(given.weight)
    data, pairs = z[:n], z[n:]
    share = torch.from_numpy(given.pairs.share) * weight.sum() * lam
    if not given.n_classes:
        induced = torch.stack(
            [
                (torch.from_numpy(drawn.weight[i:j])[:, None] * pairs[i:j]).sum(0)
                for i, j in zip(drawn.start, drawn.start[1:], strict=False)
            ]
        )
        gap = ((induced - torch.from_numpy(given.target)) ** 2)[:, 0]
        return 0.5 * (weight * (data[:, 0] - torch.from_numpy(given.y)) ** 2).sum() + 0.5 * (share * gap).sum()

    def log_q(z):
        return torch.log_softmax(torch.cat([torch.zeros_like(z), z], 1) if z.shape[1] == 1 else z, -1)

    total = -(weight * log_q(data)[torch.arange(n), torch.from_numpy(given.y)]).sum()
    for t, (i, j) in enumerate(zip(drawn.start, drawn.start[1:], strict=False)):
        induced = functional.induce(log_q(pairs[i:j])[None], torch.from_numpy(drawn.weight[i:j])[None])
        total = total + share[t] * functional.matching_loss(induced, torch.from_numpy(given.target[t])[None])
    return total


@pytest.mark.parametrize("n_classes", [0, 2, 4])
def test_the_gradient_is_that_of_the_papers_functions(n_classes):
    given = problem(n_classes=n_classes)
    drawn = draw(given, 4, np.random.default_rng(0))
    scores = np.random.default_rng(1).normal(size=(40 + len(drawn.extended), given.n_outputs))
    found, curvature = Objective(given, drawn, 1.7)(scores)
    z = torch.from_numpy(scores).requires_grad_()
    value(given, drawn, 1.7, z).backward()
    np.testing.assert_allclose(found, z.grad.numpy(), rtol=1e-6, atol=1e-9)
    assert (curvature > 0).all()


@pytest.mark.parametrize("n_classes", [0, 2, 4])
def test_a_newton_step_by_the_curvature_never_raises_the_risk_of_the_pairs(n_classes):
    """It is that of a bound from above, which the gradient touches: of half the step for several logits."""
    given = problem(n_classes=n_classes)
    drawn = draw(given, 4, np.random.default_rng(0))
    scores = np.random.default_rng(1).normal(size=(40 + len(drawn.extended), given.n_outputs))
    gradient, curvature = Objective(given, drawn, 1.0)(scores)
    step = np.zeros_like(scores)
    step[40:] = 0.5 * gradient[40:] / np.maximum(curvature[40:], 0.25 * gradient[40:].std())
    before, after = (value(given, drawn, 1.0, torch.from_numpy(z)).item() for z in (scores, scores - step))
    assert after < before


def test_without_pairs_it_is_the_loss_alone():
    given = problem()
    scores = np.random.default_rng(1).normal(size=(40, 1))
    gradient, curvature = Objective(given, None, 0.0)(scores)
    q = 1 / (1 + np.exp(-scores[:, 0]))
    np.testing.assert_allclose(gradient[:, 0], given.weight * (q - given.y))
    np.testing.assert_allclose(curvature[:, 0], given.weight * q * (1 - q))


def test_one_context_is_reverse_kd():
    given = problem()
    drawn = draw(given, 1, np.random.default_rng(0))
    scores = np.random.default_rng(1).normal(size=(40 + len(drawn.extended), 1))
    gradient, _ = Objective(given, drawn, 1.0)(scores)
    q = 1 / (1 + np.exp(-scores[40:, 0]))
    share = given.pairs.share * given.weight.sum()
    np.testing.assert_allclose(gradient[40:, 0], share * (q - given.target[:, 1]), atol=1e-12)


def test_few_contexts_are_all_taken_and_many_are_drawn_by_weight():
    given = problem(n_neighbors=6)
    every = draw(given, 6, np.random.default_rng(0))
    np.testing.assert_array_equal(every.extended, given.pairs.extended)
    np.testing.assert_allclose(every.weight, given.pairs.weight)
    times = np.zeros(6)
    rng = np.random.default_rng(0)
    for _ in range(2000):
        some = draw(given, 2, rng)
        assert (np.diff(some.start) == 2).all()
        first = some.extended[:2]
        times += (given.pairs.extended[:6][:, None] == first).sum(1)
    np.testing.assert_allclose(times / times.sum(), given.pairs.weight[:6], atol=0.03)


def test_a_pairs_row_is_of_two_rows():
    given = problem()
    drawn = draw(given, 4, np.random.default_rng(0))
    rows = pair_rows(given, drawn)
    np.testing.assert_array_equal(rows[:, 1:], given.x[drawn.extended][:, 1:])
    np.testing.assert_array_equal(rows[:, 0], given.x[given.pairs.row[drawn.context], 0])


@pytest.mark.parametrize("name", ENGINES)
class TestLibrary:
    @pytest.fixture
    def engine(self, name):
        module, kind = ENGINES[name]
        return getattr(pytest.importorskip(module, reason=f"{name} is not installed"), kind)

    @pytest.mark.parametrize("n_classes", [0, 2, 3])
    def test_it_learns_the_data_and_the_target(self, engine, n_classes):
        given = problem(200, n_classes)
        fits = {lam: engine(n_trees=30).prepare(given).solve(1.0, lam) for lam in (0.0, 5.0)}
        drawn = draw(given, 100, np.random.default_rng(0))
        rows = pair_rows(given, drawn)
        only_data = Problem(given.x, given.y, given.weight, n_classes, given.short)

        def matched(fit):
            z = torch.from_numpy(np.concatenate([fit.scores(given.x), fit.scores(rows)]).astype(np.float64))
            return value(given, drawn, 1.0, z).item() - value(given, drawn, 0.0, z).item()

        def loss(fit):
            return np.abs(Objective(only_data, None, 0.0)(fit.scores(given.x))[0]).mean()

        assert matched(fits[5.0]) < matched(fits[0.0])
        assert loss(fits[0.0]) < loss(engine(n_trees=1).prepare(given).solve(1.0, 0.0))

    def test_the_unit_of_a_regression_does_not_matter(self, engine):
        given = problem(100, 0)
        small = replace(given, y=1e-6 * given.y, target=1e-6 * given.target)
        found, again = (engine(n_trees=20).prepare(each).solve(1.0, 1.0).scores(given.x) for each in (given, small))
        np.testing.assert_allclose(1e6 * again, found, rtol=1e-3, atol=1e-4)

    def test_a_tiny_lam_hardly_changes_the_model(self, engine):
        given = problem(100)
        without, tiny = (engine(n_trees=20, redraw_every=5).prepare(given).solve(1.0, lam) for lam in (0.0, 1e-9))
        np.testing.assert_allclose(tiny.scores(given.x), without.scores(given.x), atol=1e-4)

    def test_the_same_seed_gives_the_same_trees(self, engine):
        given = problem(100)
        first, again, other = (
            engine(n_trees=20, n_contexts=2, redraw_every=5).prepare(given, seed).solve(1.0, 2.0) for seed in (0, 0, 1)
        )
        np.testing.assert_array_equal(first.scores(given.x), again.scores(given.x))
        assert not np.array_equal(first.scores(given.x), other.scores(given.x))

    @pytest.mark.parametrize("n_outputs", [1, 3])
    def test_trees_grow_on_over_other_rows(self, engine, n_outputs):
        # LightGBM's own way to go on over other rows, of another number and with words as columns, wrote out of bounds.
        rng, trees, booster = np.random.default_rng(0), engine(min_curvature=1e-3), None
        for n in (250, 900, 300, 700):
            x = np.hstack([rng.normal(size=(n, 4)), np.eye(4)[rng.integers(4, size=n)]])
            label, seen = x[:, [0]] * x[:, 4 : 4 + n_outputs], []

            def gradients(raw, label=label, seen=seen):
                seen.append(raw.copy())
                return raw - label, np.ones_like(raw)

            before, booster = booster, trees.grow(booster, Ground(x, n), gradients, 5, n_outputs, 1.0)
            begun = np.zeros_like(label) if before is None else trees.raw(before, x).reshape(label.shape)
            np.testing.assert_allclose(seen[0], begun, atol=1e-6)
            errors = [np.square(raw - label).sum() for raw in [*seen, trees.raw(booster, x).reshape(label.shape)]]
            assert np.all(np.diff(errors) < 0)

    @pytest.mark.parametrize("lam", [0.0, 2.0])
    @pytest.mark.parametrize("n_classes", [0, 2, 3])
    def test_trees_begin_from_the_best_that_is_linear_in_a_kept_word(self, engine, n_classes, lam):
        given = with_old(problem(60, n_classes))
        word = given.x[:, 2:]
        best = Linear().prepare(replace(given, x=word, short=np.array([True]))).solve(3.0, lam)
        begun = engine(n_trees=2, learning_rate=1e-12, redraw_every=1).prepare(given).solve(3.0, lam)
        np.testing.assert_allclose(begun.scores(given.x), best.scores(word), atol=1e-4)
        grown = engine(n_trees=10).prepare(given).solve(3.0, lam)
        assert np.abs(grown.scores(given.x) - best.scores(word)).max() > 0.1
        other = given.x.copy()
        other[:, 2] = given.x[::-1, 2]
        added = [(grown.scores(x) / grown.scale - grown.begin.scores(x)) for x in (given.x, other)]
        np.testing.assert_allclose(*added, atol=1e-5)  # no tree splits on the word

    @pytest.mark.parametrize("n_classes", [0, 2, 3])
    def test_trees_begin_from_a_share_of_an_old_model_that_is_linear(self, engine, n_classes):
        given = problem(60, n_classes)
        old = given.x[:, :1] * np.linspace(1, 2, given.n_outputs) + 0.3  # penalised as n = 60 allows
        spread = np.hstack([np.zeros((60, 1)), old]) if n_classes == 2 else old
        answers = softmax(spread, axis=1) if n_classes else old
        given = replace(given, target=answers[given.pairs.row])
        begun = engine(n_trees=2, learning_rate=1e-12, redraw_every=1).prepare(given).solve(3.0, 4.0).scores(given.x)
        if n_classes == 3:  # logits are known up to a constant
            old, begun = (z - z.mean(1, keepdims=True) for z in (old, begun))
        expected = 0.8 * old + 0.2 * given.constant()
        assert np.abs(begun - expected).mean() < 0.1 * np.abs(expected - given.constant()).mean()

    def test_trees_do_not_begin_from_more_than_they_saw(self, engine):
        given = problem(60)
        sure = np.eye(2)[(given.x[given.pairs.row, 0] > 0).astype(int)]  # an old model of hard answers
        begin = engine().prepare(replace(given, target=sure)).begin(1.0, 1.0)
        assert np.abs(begin.scores(given.x)).max() < 6
        seen, beyond = begin.scores(given.x), begin.scores(100 * given.x)
        assert [beyond.min(), beyond.max()] == pytest.approx([seen.min(), seen.max()])

    def test_rows_that_are_all_the_same_have_no_trees(self, engine):
        given = problem(30)
        given = replace(given, x=np.zeros_like(given.x))
        fit = engine(n_trees=5).prepare(given).solve(1.0, 0.0)
        restored = engine().restore(fit.arrays(), 3, 2)
        for each in (fit, restored):
            np.testing.assert_allclose(each.scores(given.x), np.tile(given.constant(), (30, 1)), atol=1e-5)

    @pytest.mark.parametrize("n_classes", [0, 2, 3])
    def test_trees_begin_from_a_constant_without_matching_or_with_all_columns_short(self, engine, n_classes):
        given = problem(60, n_classes)
        alike = replace(given, short=np.ones(3, dtype=bool))
        for each, lam in ((given, 0.0), (alike, 2.0)):
            begun = engine(n_trees=1, learning_rate=1e-12).prepare(each).solve(1.0, lam).scores(given.x)
            np.testing.assert_allclose(begun, np.tile(given.constant(), (60, 1)), atol=1e-4)

    @pytest.mark.parametrize("n_old", [0, 1])
    @pytest.mark.parametrize("n_classes", [0, 2, 3])
    def test_what_is_stored_predicts_the_same(self, engine, n_classes, n_old):
        given = with_old(problem(100, n_classes)) if n_old else problem(100, n_classes)
        fit = engine(n_trees=10).prepare(given).solve(1.0, 1.0)
        restored = engine().restore(fit.arrays(), 3, given.n_outputs)
        np.testing.assert_allclose(restored.scores(given.x), fit.scores(given.x), rtol=1e-6, atol=1e-7)

    def test_without_imm_it_is_the_librarys_own_objective(self, engine, name):
        given = problem(200)
        ours = engine(n_trees=10, min_curvature=1e-3).prepare(given).solve(1.0, 0.0).scores(given.x)[:, 0]
        theirs = own_objective(name, given)
        np.testing.assert_allclose(ours, theirs, atol=1e-3)


def own_objective(name, given):
    start = np.log(given.weight @ given.y / (given.weight @ (1 - given.y)))
    if name == "lightgbm":
        import lightgbm

        settings = {"objective": "binary", "num_leaves": 8, "min_data_in_leaf": 1, "lambda_l2": 1.0, "verbosity": -1}
        settings |= {"num_threads": 1, "feature_pre_filter": False, "force_row_wise": True, "deterministic": True}
        rows = lightgbm.Dataset(given.x, given.y, weight=given.weight, params=settings)
        return lightgbm.train(settings, rows, 10).predict(given.x, raw_score=True)
    import xgboost

    settings = {"objective": "binary:logistic", "max_leaves": 8, "max_depth": 0, "grow_policy": "lossguide"}
    settings |= {"eta": 0.1, "lambda": 1.0, "min_child_weight": 1e-3, "base_score": 1 / (1 + np.exp(-start))}
    rows = xgboost.QuantileDMatrix(given.x, given.y, weight=given.weight)
    return xgboost.train(settings | {"nthread": 1}, rows, 10).predict(rows, output_margin=True)
