import numpy as np
import pytest
from scipy import sparse

from imm.control.grid import ACTIONS, Grid, landscape
from imm.control.pomdp import Pomdp, PomdpPolicy, fast_informed_bound, qmdp, read_pomdp, value_iteration
from tests.control.pomdp import reference as reference
from tests.control.pomdp.pomdps import TIGER, corridor


@pytest.fixture
def tiger(tmp_path):
    path = tmp_path / "tiger.POMDP"
    path.write_text(TIGER)
    return read_pomdp(path)


@pytest.fixture
def problem(request, tiger):
    return {"tiger": tiger, "corridor": corridor(0, 0), "blurred corridor": corridor(0.2, 0.1, discount=0.5)}[
        request.param
    ]


PROBLEMS = pytest.mark.parametrize("problem", ["tiger", "corridor", "blurred corridor"], indirect=True)


def paper():
    return Grid(landscape(variance=0.3)).pomdp()


class TestBounds:
    @PROBLEMS
    def test_mdp_above_qmdp_above_fib_above_the_optimum(self, problem):
        v, _ = value_iteration(problem, 1e-9)
        q, fib = qmdp(problem, 1e-9), fast_informed_bound(problem, 1e-9)
        low, high = reference.optimum(problem, problem.start)
        assert high - low < 0.05, "the twin is not sure of the optimum"
        mdp_value, q_value, fib_value = problem.start @ v, q.value(problem.start), fib.value(problem.start)
        assert mdp_value >= q_value - 1e-7
        assert q_value >= fib_value - 1e-7
        assert fib_value >= low - 1e-4
        assert (q.alpha >= fib.alpha - 1e-7).all()
        assert mdp_value > fib_value + 1e-3, "the bounds are not told apart"

    def test_the_tigers_known_values(self, tiger):
        v, _ = value_iteration(tiger, 1e-9)
        np.testing.assert_allclose(v, 200)  # open the right door, always
        assert qmdp(tiger, 1e-9).value(tiger.start) == pytest.approx(189)  # listen once, then see
        low, high = reference.optimum(tiger, tiger.start)
        assert low == pytest.approx(19.3714, abs=1e-3)  # as SARSOP's bounds
        assert high == pytest.approx(19.3714, abs=1e-3)

    def test_who_sees_everything_has_one_value_by_all_three(self):
        world = corridor(0.2, 0)
        seeing = Pomdp(world.transition, np.eye(5), world.reward, 0.9)
        v, q = value_iteration(seeing, 1e-10)
        np.testing.assert_allclose(fast_informed_bound(seeing, 1e-10).alpha, q.alpha, atol=1e-8)
        np.testing.assert_allclose(q.alpha.max(0), v)
        assert reference.optimum(seeing, np.eye(5)[0])[0] == pytest.approx(v[0], abs=1e-6)

    def test_from_above_every_sweep_is_a_bound(self):
        world = corridor(0.2, 0.1)
        rough = fast_informed_bound(world, tolerance=0.5, start=world.reward.max() / 0.1)
        fine = fast_informed_bound(world, tolerance=1e-10)
        assert rough.sweeps < fine.sweeps
        assert (rough.alpha >= fine.alpha - 1e-8).all()

    @PROBLEMS
    def test_sweeps_are_the_plain_loops(self, problem):
        """From a start of 3, as many as there were, and not only where they end."""
        for solver, sweep in ((fast_informed_bound, reference.fib_sweep), (qmdp, reference.qmdp_sweep)):
            rough = solver(problem, tolerance=0.2, start=3.0)
            alpha = np.full(rough.alpha.shape, 3.0).tolist()
            for _ in range(rough.sweeps):
                alpha = sweep(problem, alpha)
            np.testing.assert_allclose(rough.alpha, alpha)

    def test_an_observation_that_a_state_never_gives(self):
        """Its row of the joint table is left out; a negative alpha must not then be beaten by an empty row's zero."""
        world = corridor(0.2, 0.1)
        down = Pomdp(world.transition, world.observation, world.reward - 5, 0.9)
        alpha = fast_informed_bound(down, 1e-9).alpha
        np.testing.assert_allclose(alpha, fast_informed_bound(world, 1e-9).alpha - 50, atol=1e-6)

    def test_too_few_sweeps_say_so(self):
        with pytest.raises(ValueError, match="3 sweeps are not enough: entries still change by"):
            qmdp(corridor(0, 0), max_sweeps=3)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"tolerance": 0.0}, "tolerance must be above 0, got 0.0"),
            ({"start": np.nan}, "start must be finite, got nan"),
            ({"start": np.inf}, "start must be finite, got inf"),
            ({"max_sweeps": 0, "tolerance": 1e9}, "max_sweeps must be a whole number of at least 1, got 0"),
        ],
    )
    def test_bad_arguments_are_one_line(self, given, message):
        with pytest.raises(ValueError, match=message):
            qmdp(corridor(0, 0), **given)

    @pytest.mark.parametrize(
        ("belief", "message"),
        [
            ([0.5, 0.5, 0.5, 0, 0], "belief must be probabilities; it sums to 1.5"),
            ([[0.5, 0.5]], r"belief must be \[..., 5 states\], got shape \(1, 2\)"),
            ("x", "belief must be an array of numbers, got 'x'"),
        ],
    )
    def test_a_value_is_of_a_belief(self, belief, message):
        with pytest.raises(ValueError, match=message):
            qmdp(corridor(0, 0)).value(belief)


class TestPaper:
    """The restricted model of the RL experiment: FIB, γ = 0.9, reward on the current state, variance 0.3."""

    def test_sweeps_and_alpha_vectors(self):
        solution = fast_informed_bound(paper(), tolerance=1e-3)
        assert solution.sweeps == 61
        assert solution.alpha.min() == pytest.approx(1.8370, abs=5e-5)
        assert solution.alpha.max() == pytest.approx(4.7094, abs=5e-5)

    def test_right_before_the_centre_left_after_it_and_there_a_tie(self):
        solution, belief = fast_informed_bound(paper()), Grid(landscape()).belief()
        up, down, left, right = np.eye(4)
        for ties, there in (("first", up), ("shares", (up + down) / 2)):
            target = PomdpPolicy(solution, belief, ACTIONS, ties=ties)
            assert np.array_equal(target(range(11)).numpy(), [right] * 5 + [there] + [left] * 5)

    @pytest.mark.parametrize("temperature", [0.5, 1.0])
    def test_lower_quality_is_a_softmax(self, temperature):
        solution, belief = fast_informed_bound(paper()), Grid(landscape()).belief()
        target = PomdpPolicy(solution, belief, ACTIONS, temperature)(range(11)).numpy()
        odds = np.exp(belief @ solution.alpha.T / temperature)
        np.testing.assert_allclose(target, odds / odds.sum(1, keepdims=True), rtol=1e-5)

    def test_rounding_does_not_break_the_tie(self, seed):
        """Utilities that are equal but for the order in which they were summed."""
        alpha = fast_informed_bound(paper()).alpha
        alpha = alpha * (1 + np.random.default_rng(seed).uniform(-1e-14, 1e-14, alpha.shape))
        belief = Grid(landscape()).belief()
        assert PomdpPolicy(alpha, belief, ACTIONS)([5]).tolist() == [[1.0, 0.0, 0.0, 0.0]]
        assert PomdpPolicy(alpha, belief, ACTIONS, ties="shares")([5]).tolist() == [[0.5, 0.5, 0.0, 0.0]]


class TestPomdp:
    def test_sparse_matrices_and_arrays_are_the_same(self):
        world = corridor(0.2, 0.1)
        T, O = (np.stack([part.toarray() for part in parts]) for parts in (world.transition, world.observation))  # noqa: E741
        for t, o in ((T, O), (list(T), O[0]), ([sparse.csr_array(part) for part in T], [sparse.coo_array(O[0])] * 2)):
            again = Pomdp(t, o, world.reward[:, 0], 0.9)
            found, expected = (fast_informed_bound(each).alpha for each in (again, world))
            np.testing.assert_allclose(found, expected, rtol=1e-12)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"discount": 1.0}, "discount must be at least 0 and below 1, got 1.0"),
            (
                {"transition": np.eye(2)[None] * 0.9},
                "transition of action 0 must be probabilities; the row of state 0 sums to 0.9",
            ),
            ({"transition": [[[1.5, -0.5], [0, 1]]]}, "the row of state 0 has a negative value"),
            ({"transition": np.full((1, 2, 2), np.nan)}, "the row of state 0 sums to nan"),
            ({"transition": np.ones((1, 2, 1))}, r"transition of action 0 must be \[2, 2\], got shape \(2, 1\)"),
            ({"observation": [[0.5, 0.5], [0.5, 0.6]]}, "observation of action 0 .* state 1 sums to 1.1"),
            ({"observation": np.ones((3, 2, 1))}, "observation must have a matrix for each of the 1 actions, got 3"),
            ({"reward": [0, 1, 2]}, r"reward must be \[2\] or \[2, 1\], got shape \(3,\)"),
            ({"reward": [0, np.inf]}, "reward must be finite"),
            ({"reward": ["much", 1]}, r"reward must be an array of numbers, got \['much', 1\]"),
            ({"start": "left"}, "start must be an array of numbers, got 'left'"),
            ({"transition": [[[1, 0], [1]]]}, r"transition must be an array of numbers, got \[\[\[1, 0\], \[1\]\]\]"),
            ({"observation": None}, "observation must be a matrix for each action, got shape"),
            ({"start": [0.5, 0.4]}, "start must be probabilities; it sums to 0.9"),
            ({"states": ["a", "a"]}, r"states must be 2 different names, got \['a', 'a'\]"),
        ],
    )
    def test_what_is_no_pomdp_is_refused_in_a_line(self, change, message):
        good = {"transition": np.eye(2)[None], "observation": np.eye(2), "reward": [0, 1], "discount": 0.9}
        Pomdp(**good)
        with pytest.raises(ValueError, match=message) as refused:
            Pomdp(**{**good, **change})
        assert "\n" not in str(refused.value)


class TestPolicy:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"temperature": 0.0}, "temperature must be above 0, or None for the best action, got 0.0"),
            ({"ties": "both"}, "ties must be 'first' or 'shares', got 'both'"),
            ({"belief": [[0.5, 0.6]]}, "belief must be probabilities; row 0 sums to 1.1"),
            ({"belief": [[1.0]]}, r"belief must be \[n_short, 2 states\], got shape \(1, 1\)"),
            ({"classes": "abc"}, r"alpha must be finite, \[3 classes, states\], got shape \(2, 2\)"),
        ],
    )
    def test_bad_arguments_are_one_line(self, given, message):
        good = {"solution": np.eye(2), "belief": [[0.5, 0.5]], "classes": "ab"}
        with pytest.raises(ValueError, match=message):
            PomdpPolicy(**{**good, **given})

    @pytest.mark.parametrize("short", [[-1], [1]])
    def test_an_unknown_short_context(self, short):
        with pytest.raises(ValueError, match=rf"short context {short[0]} is not in the belief's 0 to 0"):
            PomdpPolicy(np.eye(2), [[0.5, 0.5]], "ab")(short)
