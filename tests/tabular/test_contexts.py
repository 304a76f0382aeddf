"""Which rows go with a short context, against plain loops."""

import numpy as np
import pytest

from imm.tabular.contexts import find_pairs
from imm.tabular.distinct_rows import distinct
from tests import reference


def weights_of(pairs, t, n):
    found = np.zeros(n)
    where = slice(pairs.start[t], pairs.start[t + 1])
    np.add.at(found, pairs.extended[where], pairs.weight[where])
    return found


@pytest.mark.parametrize("n_neighbors", [None, 4])
def test_groups_and_neighbours_by_plain_loops(n_neighbors, seed):
    rng = np.random.default_rng(seed)
    short = np.vstack([np.repeat([[0.0, 1.0]], 7, 0), rng.normal(size=(20, 2))])
    weight = rng.integers(1, 4, 27).astype(float)
    pairs = find_pairs(short, weight, n_neighbors)
    mean = np.average(short, axis=0, weights=weight)
    scaled = (short - mean) / np.sqrt(np.average((short - mean) ** 2, axis=0, weights=weight))
    kernel = reference.kernel_weights(scaled.tolist(), scaled.tolist(), [1.0, 1.0], "laplace", (), weight.tolist())
    distance = np.abs(scaled[:, None] - scaled).sum(-1)
    assert sorted(pairs.code[:7]) == [pairs.code[0]] * 7
    assert len(pairs.row) == 21
    for t, row in enumerate(pairs.row):
        expected = np.array(kernel[row])
        if n_neighbors is not None:
            nearest = distance[row] == 0 if row < 7 else distance[row] <= np.sort(distance[row])[n_neighbors - 1]
            if row >= 7 and nearest[:7].any():  # seven equally near: which of them is taken is not said
                continue
            expected = np.where(nearest, expected, 0) / expected[nearest].sum()
        np.testing.assert_allclose(weights_of(pairs, t, 27), expected, atol=1e-12)
        assert pairs.share[t] == pytest.approx(weight[pairs.code == t].sum() / weight.sum())


def test_other_short_contexts_are_answered_in_their_place(seed):
    rng = np.random.default_rng(seed)
    short = np.sign(rng.normal(size=(40, 2)))
    weight = np.ones(40)
    pairs = find_pairs(short, weight, 5)
    asked = find_pairs(short, weight, 5, asked=np.vstack([short[pairs.row][::-1], [[0.5, 0.5]]]))
    for t in range(len(pairs.row)):
        np.testing.assert_allclose(weights_of(asked, len(pairs.row) - 1 - t, 40), weights_of(pairs, t, 40), rtol=1e-12)
    assert (weights_of(asked, len(pairs.row), 40) > 0).sum() == 5


def test_some_rows_of_a_large_table():
    short = np.random.default_rng(0).normal(size=(30, 2))
    rows = np.arange(0, 30, 3)
    pairs = find_pairs(short[rows], np.ones(10), 3).among(rows, 30)
    assert set(pairs.extended) <= set(rows)
    assert (pairs.code >= 0).sum() == 10
    np.testing.assert_array_equal(short[pairs.row][pairs.code[rows]], short[rows])


def test_equal_rows_are_found_whatever_their_order(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 3, (50, 2)).astype(float), rng.integers(0, 2, 50)
    x[x == 0] = -0.0
    same = distinct(x, y)
    order = rng.permutation(50)
    again = distinct(np.abs(x[order]) * np.sign(x[order] + 1e-9), y[order])
    np.testing.assert_array_equal(x[same.first] + 0.0, x[order][again.first] + 0.0)
    np.testing.assert_array_equal(x[same.first][same.code], x)
    assert len(same.first) == len(np.unique(np.column_stack([x, y]), axis=0))


def test_two_rows_with_the_same_hash_are_kept_apart(monkeypatch):
    monkeypatch.setattr(
        "imm.tabular.distinct_rows._hash", lambda columns, key: np.zeros(len(columns[0]), dtype=np.uint64)
    )
    assert len(distinct(np.array([[1.0], [2.0], [1.0]])).first) == 2
