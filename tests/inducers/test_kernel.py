import functools
import math

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode

from imm import inducers
from tests import reference

N = 40
Kernel = functools.partial(inducers.Kernel, alpha=1.0)


@pytest.fixture
def data(generator):
    """Two continuous features and two categorical ones."""
    reals = torch.randn(N, 2, generator=generator, dtype=torch.float64)
    return torch.cat([reals, torch.randint(3, (N, 2), generator=generator)], 1)


SETTINGS = [
    {"alpha": 1.0},
    {"alpha": [0.5, 2.0, 1.0, 3.0]},
    {"alpha": [0.5, 2.0, 1.0, 3.0], "categorical": [2, 3]},
    {"alpha": [0.5, 2.0, math.inf, 0.7], "categorical": [3]},
    {"alpha": [0.5, 0.0, math.inf, 0.7], "categorical": [2, 3]},
]
kinds = pytest.mark.parametrize("kind", ["laplace", "gaussian"])
settings = pytest.mark.parametrize("setting", SETTINGS)


def dense(index, weights):
    """``[n, N]``: each row's weight, wherever it stands."""
    return torch.zeros(len(index), N, dtype=weights.dtype).scatter_add(1, index, weights)


@kinds
@settings
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_weights_are_the_references(data, kind, setting, weighted, dtype, generator):
    sample_weight = torch.randint(1, 4, (N,), generator=generator).double() if weighted else None
    alpha = setting["alpha"] if isinstance(setting["alpha"], list) else [setting["alpha"]] * 4
    # One decimal, so that float32 and float64 see the same ties.
    values = (data * 8).round() / 8
    expected = reference.kernel_weights(
        values[:7].tolist(),
        values.tolist(),
        alpha,
        kind,
        setting.get("categorical", ()),
        None if sample_weight is None else sample_weight.tolist(),
    )
    contexts = Kernel(values.to(dtype), kind=kind, sample_weight=sample_weight, **setting).every(values[:7].to(dtype))
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(
        contexts.weights.double(), torch.tensor(expected, dtype=torch.float64), rtol=tolerance, atol=tolerance
    )


@kinds
@settings
def test_all_neighbours_are_the_dense_kernel(data, kind, setting):
    every = Kernel(data, kind=kind, **setting).every(data)
    nearest = Kernel(data, kind=kind, n_neighbors=N, **setting).every(data)
    torch.testing.assert_close(dense(nearest.index, nearest.weights), every.weights)


@kinds
@settings
def test_few_neighbours_are_the_nearest_by_brute_force(data, kind, setting):
    """The nearest rows have the largest weights: the sum of the five largest tells, whatever the ties."""
    every = Kernel(data, kind=kind, **setting).every(data)
    nearest = Kernel(data, kind=kind, n_neighbors=5, **setting).every(data)
    found = every.weights.gather(1, nearest.index).sum(1)
    torch.testing.assert_close(found, every.weights.topk(5).values.sum(1))
    torch.testing.assert_close(nearest.weights, every.weights.gather(1, nearest.index) / found[:, None])


def test_slack_finds_rows_that_are_not_much_farther(data):
    values = torch.randn(2000, 4, generator=torch.Generator().manual_seed(0))
    nearest = Kernel(values, n_neighbors=5).every(values[:200]).index
    near = Kernel(values, n_neighbors=5, slack=1.0).every(values[:200]).index
    far = [(values[:200, None] - values[index]).abs().sum(-1).amax(-1) for index in (nearest, near)]
    assert (far[1] <= 2 * far[0] + 1e-6).all()
    assert not torch.equal(nearest, near)


def test_an_infinite_alpha_asks_for_equality_however_small_the_difference():
    data = torch.tensor([[0.0, 10.0], [1e-4, 0.0]], dtype=torch.float64)
    for n_neighbors in (None, 1):
        kernel = Kernel(data, alpha=[math.inf, 1.0], n_neighbors=n_neighbors)
        contexts = kernel.every(data[:1] * torch.tensor([1.0, 0.0]))
        assert contexts.index[contexts.weights > 0].tolist() == [0]


def test_an_unseen_category_is_as_far_from_all():
    data = torch.tensor([[0.0, 0.0], [1.0, 5.0]])
    for n_neighbors in (None, 2):
        contexts = Kernel(data, categorical=[0], n_neighbors=n_neighbors).every(torch.tensor([[2.0, 5.0]]))
        weights = torch.zeros(1, 2).scatter(1, contexts.index, contexts.weights)
        torch.testing.assert_close(weights, torch.softmax(torch.tensor([[-5.0, 0.0]]), -1))


def test_sample_weight_two_is_the_row_twice(data):
    weight = torch.ones(N)
    weight[3] = 2
    twice = Kernel(torch.cat([data, data[3:4]])).every(data).weights
    twice[:, 3] += twice[:, N]
    torch.testing.assert_close(Kernel(data, sample_weight=weight).every(data).weights, twice[:, :N])


def test_sample_weight_zero_leaves_the_row_out(data):
    weight = torch.ones(N)
    weight[:10] = 0
    weights = Kernel(data, sample_weight=weight).every(data).weights
    assert (weights[:, :10] == 0).all()
    torch.testing.assert_close(weights[:, 10:], Kernel(data[10:]).every(data).weights)


@kinds
@pytest.mark.parametrize("n_neighbors", [None, 2])
def test_a_far_short_context_does_not_underflow(kind, n_neighbors):
    contexts = Kernel(torch.tensor([0.0, 0.5, 9.0]), kind=kind, n_neighbors=n_neighbors).every(torch.tensor([1e4]))
    assert contexts.weights.isfinite().all()
    nearest = contexts.index[0, contexts.weights[0].argmax()]
    assert nearest == 2


def test_one_feature_may_come_as_a_vector(data):
    a, b = Kernel(data[:, 0]).every(data[:, 0]), Kernel(data[:, :1]).every(data[:, :1])
    assert torch.equal(a.weights, b.weights)


@pytest.mark.parametrize("n_neighbors", [None, 2])
def test_large_integers_are_kept_apart(n_neighbors):
    ids = torch.tensor([2**24, 2**24 + 1])
    contexts = Kernel(ids, alpha=math.inf, n_neighbors=n_neighbors).every(ids)
    assert contexts.index[contexts.weights > 0].tolist() == [0, 1]


class Largest(TorchFunctionMode):
    """How many elements the largest tensor has that is made meanwhile."""

    size = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        if isinstance(found, torch.Tensor):
            self.size = max(self.size, found.numel())
        return found


@kinds
def test_memory_does_not_grow_with_the_features(kind, generator):
    data = torch.randn(30, 20, generator=generator)
    kernel = Kernel(data, kind=kind, categorical=[3])
    with Largest() as largest:
        kernel.every(data)
    assert largest.size == 30 * 30


@pytest.mark.parametrize("n_neighbors", [None, 3])
def test_everything_is_on_the_datas_device(data, n_neighbors):
    """What is made elsewhere than there would be made on ``meta`` and could not be computed with."""
    weight = torch.ones(N)
    with torch.device("meta"):
        kernel = Kernel(data, alpha=[1.0] * 4, categorical=[2], sample_weight=weight, n_neighbors=n_neighbors)
        contexts = kernel.every(data)
    assert {x.device for x in (kernel.alpha, kernel.categorical, contexts.index, contexts.weights)} == {data.device}


def test_arrays_and_lists_are_taken(data):
    expected = Kernel(data, sample_weight=torch.ones(N)).every(data).weights
    array = data.numpy()
    array.flags.writeable = False  # as those of a data frame may be
    for given in (array, data.tolist()):
        assert torch.equal(Kernel(given, sample_weight=np.ones(N)).every(given).weights, expected)


@pytest.mark.parametrize("given", [["a"], None, [[1.0], [1.0, 2.0]], np.array([["a", "b"]] * 3, dtype=object)])
def test_another_type_is_refused(data, given):
    for call in (Kernel, Kernel(data).every):
        with pytest.raises(TypeError, match="short must be a tensor, an array or a list of numbers, got ") as refused:
            call(given)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: Kernel(x, kind="cosine"), "kind must be 'laplace' or 'gaussian', got 'cosine'"),
        (lambda x: Kernel(x, alpha=-1.0), "alpha must not be negative, got -1.0"),
        (lambda x: Kernel(x, alpha=math.nan), "got nan"),
        (lambda x: Kernel(x, alpha=[1.0, 2.0]), r"alpha must be one number or 4, got \[1.0, 2.0\]"),
        (lambda x: Kernel(x, categorical=[4]), r"features 0 to 3, got \[4\]"),
        (lambda x: Kernel(x, sample_weight=torch.ones(3)), r"sample_weight must be \[40\], got shape \(3,\)"),
        (lambda x: Kernel(x, sample_weight=-torch.ones(N)), "got -1.0"),
        (lambda x: Kernel(x, n_neighbors=0), "n_neighbors must be a whole number of at least 1, got 0"),
        (lambda x: Kernel(x, n_neighbors=3, slack=-1.0), "slack must be finite and not negative, got -1.0"),
        (lambda x: Kernel(x, n_neighbors=41), "n_neighbors is 41, but there are only 40 rows"),
        (lambda x: Kernel(x * math.nan), "short must be finite, got nan"),
        (lambda _: Kernel([0, 2**53 + 1]), "below 2\\^53 to be told apart, got 9007199254740993"),
        (lambda x: Kernel(x[:0]), r"not empty, got shape \(0, 4\)"),
        (lambda x: Kernel(x).every(x[:, :2]), r"must have 4 features, got shape \(40, 2\)"),
        (lambda x: Kernel(x).every(x * math.inf), "must be finite"),
    ],
)
def test_bad_input_is_refused(data, call, message):
    with pytest.raises(ValueError, match=message) as refused:
        call(data)
    assert "\n" not in str(refused.value)


class TestAuto:
    def test_columns_of_other_units_count_alike(self, generator):
        """An income in thousands and in cents gives the same contexts."""
        short = torch.randn(200, 2, generator=generator, dtype=torch.float64)
        plain = inducers.Kernel(short).every(short[:5]).weights
        scale = torch.tensor([1e5, 1e-3], dtype=torch.float64)
        torch.testing.assert_close(inducers.Kernel(short * scale).every(short[:5] * scale).weights, plain)

    @pytest.mark.parametrize(("n", "d"), [(50, 1), (500, 3), (2000, 5), (9000, 2)])
    @kinds
    def test_the_median_context_has_as_many_neighbours_as_balance_bias_and_variance(self, generator, n, d, kind):
        kernel = inducers.Kernel(torch.randn(n, d, generator=generator), kind=kind)
        assert kernel.effective_neighbors.shape == (n,)
        assert kernel.effective_neighbors.median().item() == pytest.approx(n ** (4 / (d + 4)), rel=0.25)

    def test_categories_and_constant_columns_have_no_scale(self, generator):
        short = torch.stack([torch.randn(60, generator=generator), torch.arange(60.0) % 2, torch.full((60,), 7.0)], 1)
        kernel = inducers.Kernel(short, categorical=[1])
        assert kernel.alpha[1] == kernel.alpha[2]
        assert kernel.alpha.isfinite().all()

    def test_another_word_is_refused(self):
        with pytest.raises(ValueError, match="alpha must be a number, 1 numbers or 'auto', got 'best'"):
            inducers.Kernel([0.0, 1.0], alpha="best")
