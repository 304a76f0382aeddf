import numpy as np
import pytest

from imm.control import ACTIONS, Grid, Walkers, landscape


def follow(grid, y, x, action):
    """Where an action leads, by the words of the paper."""
    dy, dx = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}[action]
    y, x = y + dy, x + dx
    if grid.wrap:
        return y % grid.height, x % grid.width
    return min(max(y, 0), grid.height - 1), min(max(x, 0), grid.width - 1)


def test_the_papers_landscape():
    reward = landscape()
    assert reward.shape == (11, 11)
    assert reward.max() == reward[5, 5] == pytest.approx(1.5915, abs=5e-5)
    np.testing.assert_allclose(reward, reward.T)
    np.testing.assert_allclose(reward, reward[::-1])
    # A density: it integrates to one, cells are 0.4 wide.
    assert landscape(101, 101).sum() * 0.04**2 == pytest.approx(1, abs=1e-3)


def test_a_landscape_of_one_row_or_column_is_the_central_one():
    np.testing.assert_allclose(landscape(1, 11), landscape()[5:6], rtol=1e-12)
    np.testing.assert_allclose(landscape(11, 1), landscape()[:, 5:6], rtol=1e-12)


def test_grids_are_compared_by_what_they_are():
    """Arrays have no one answer to ==; a grid is equal to itself, and can be a key."""
    grid = Grid(landscape())
    assert grid == grid
    assert grid != Grid(landscape())
    assert len({grid, grid.pomdp(), grid}) == 2


@pytest.mark.parametrize("wrap", [True, False])
def test_every_step_is_the_plain_one(wrap):
    grid = Grid(landscape(3, 4), wrap)
    for y in range(3):
        for x in range(4):
            for number, action in enumerate(ACTIONS):
                there = divmod(int(grid.following[y * 4 + x, number]), 4)
                assert there == follow(grid, y, x, action)


def test_belief_is_uniform_over_y():
    belief = Grid(np.zeros((3, 4))).belief()
    assert belief.shape == (4, 12)
    np.testing.assert_allclose(belief.sum(1), 1)
    np.testing.assert_allclose(belief.reshape(4, 3, 4)[2], np.tile([0, 0, 1 / 3, 0], (3, 1)))


def test_as_a_pomdp():
    grid = Grid(landscape(3, 4, variance=0.3))
    pomdp = grid.pomdp()
    assert (pomdp.n_states, pomdp.n_actions, pomdp.n_observations) == (12, 4, 4)
    assert pomdp.transition[3].toarray()[0].argmax() == 1
    assert pomdp.observation[0].toarray()[6].argmax() == 2
    np.testing.assert_allclose(pomdp.reward[:, 0], grid.reward.ravel())


@pytest.mark.parametrize("reward", [np.zeros(3), np.full((2, 2), np.nan), np.zeros((0, 3))])
def test_what_is_no_landscape_is_refused(reward):
    with pytest.raises(ValueError, match=r"reward must be finite numbers \[height, width\], got array") as refused:
        Grid(reward)
    assert "\n" not in str(refused.value)


class TestWalkers:
    def test_thousands_step_as_one_by_one(self, seed):
        grid = Grid(landscape(4, 5))
        walkers = Walkers(grid, 3000, seed)
        before = walkers.places
        actions = np.random.default_rng(seed).integers(4, size=3000)
        reward = walkers.step(actions)
        for i in range(0, 3000, 7):
            there = follow(grid, *before[i], ACTIONS[actions[i]])
            assert tuple(walkers.places[i]) == there
            assert reward[i] == grid.reward[there]

    def test_starts_are_uniform_and_seeded(self):
        grid = Grid(np.zeros((2, 3)))
        walkers = Walkers(grid, 60_000, seed=3)
        np.testing.assert_allclose(np.bincount(walkers.states) / 60_000, 1 / 6, atol=0.01)
        assert np.array_equal(walkers.states, Walkers(grid, 60_000, seed=3).states)

    @pytest.mark.parametrize(
        ("actions", "message"),
        [
            ([0, 1, 2], r"actions must be integers \[2\], got int64 of shape \(3,\)"),
            ([0.0, 1.0], r"actions must be integers \[2\], got float64"),
            ([0, 4], "actions must be 0 to 3, got 0 to 4"),
        ],
    )
    def test_bad_actions(self, actions, message):
        with pytest.raises(ValueError, match=message):
            Walkers(Grid(np.zeros((2, 3))), 2, 0).step(actions)
