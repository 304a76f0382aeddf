"""The grid as Gymnasium sees it."""

import subprocess
import sys

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", reason="the extra [control] is not installed")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from imm.control.env import ID, OnlyX, ToroidalGrid, ToroidalGrids  # noqa: E402
from tests.processes import LIMIT  # noqa: E402


def test_it_is_registered_by_the_room_itself():
    code = f"import gymnasium, imm.control; print(gymnasium.make({ID!r}).observation_space)"
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT).stdout
    assert shown.strip() == "MultiDiscrete([11 11])"


@pytest.mark.parametrize("options", [{}, {"height": 3, "width": 5, "wrap": False}, {"reward": np.eye(4)}])
@pytest.mark.parametrize("mode", ["rgb_array", "ansi"])
def test_gymnasiums_own_check_passes(options, mode):
    check_env(gymnasium.make(ID, render_mode=mode, **options).unwrapped)


def test_the_same_seed_is_the_same_walk():
    walks = []
    for _ in range(2):
        env = gymnasium.make(ID)
        place, _ = env.reset(seed=5)
        walk = [tuple(place)]
        for action in (0, 3, 3, 1, 2) * 10:
            place, reward, terminated, truncated, _ = env.step(action)
            walk.append((*place, reward))
            assert (terminated, truncated) == (False, False)
        walks.append(walk)
    assert walks[0] == walks[1]


def test_rewards_are_of_the_cell_entered():
    env = ToroidalGrid()
    env.reset(seed=0)
    env.state = 4 * 11 + 5
    place, reward, *_ = env.step(1)
    assert place.tolist() == [5, 5]
    assert reward == pytest.approx(1.5915, abs=5e-5)


def test_pictures():
    env = ToroidalGrid(height=3, width=4, render_mode="rgb_array")
    env.reset(seed=0)
    env.state = 6
    image = env.render()
    assert image.shape == (72, 96, 3)
    assert image.dtype == np.uint8
    assert image[36, 60].tolist() == [214, 40, 40]
    env.render_mode = "ansi"
    lines = env.render().splitlines()
    assert [len(line.split()) for line in lines] == [4, 4, 4]
    assert lines[1].split()[2] == "@"


def test_only_x_is_seen():
    env = OnlyX(gymnasium.make(ID, height=3, width=4))
    assert env.observation_space == gymnasium.spaces.Discrete(4)
    x, _ = env.reset(seed=1)
    assert x == env.unwrapped.state % 4
    assert env.step(3)[0] == (x + 1) % 4


class TestMany:
    def test_they_walk_as_single_ones(self, seed):
        many = gymnasium.make_vec(ID, 500, "vector_entry_point", height=4, width=5)
        assert isinstance(many.unwrapped, ToroidalGrids)
        places, _ = many.reset(seed=seed)
        actions = np.random.default_rng(seed).integers(4, size=(20, 500))
        single = ToroidalGrid(height=4, width=5)
        all_places, all_rewards = [], []
        for step in actions:
            there, rewards, terminated, truncated, _ = many.step(step)
            assert many.observation_space.contains(there)
            assert not np.any([terminated, truncated])
            all_places.append(there)
            all_rewards.append(rewards)
        for i in range(0, 500, 50):
            single.state = int(places[i] @ [5, 1])
            for t in range(20):
                place, reward, *_ = single.step(actions[t, i])
                assert place.tolist() == all_places[t][i].tolist()
                assert reward == all_rewards[t][i]

    def test_seeded(self):
        many = ToroidalGrids(100)
        first, again = many.reset(seed=4)[0], many.reset(seed=4)[0]
        assert np.array_equal(first, again)
        assert not np.array_equal(first, many.reset()[0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ToroidalGrid(render_mode="human"), r"render_mode must be one of \['rgb_array', 'ansi'\], got 'human'"),
        (lambda: ToroidalGrid(height=0), "height must be a whole number of at least 1, got 0"),
        (lambda: ToroidalGrid(height=3, reward=np.eye(4)), "height is that of reward, 4, where a .* is given; got 3"),
        (lambda: ToroidalGrids(2, width=5, reward=np.eye(4)), "width is that of reward, 4, where .* given; got 5"),
        (lambda: ToroidalGrid(variance=0.0), "variance and extent must be above 0, got 0.0 and 2.0"),
        (lambda: ToroidalGrid(reward=[1.0, 2.0]), r"reward must be finite numbers \[height, width\]"),
        (lambda: ToroidalGrid().step(4), "action must be 0 to 3, got 4"),
        (lambda: ToroidalGrids(2, render_mode="ansi"), "render_mode must be None, got 'ansi'"),
        (lambda: ToroidalGrids(2).reset(seed=[1, 2]), r"seed must be one number, got \[1, 2\]"),
        (lambda: OnlyX(gymnasium.make("CartPole-v1")), r"OnlyX needs observations \(y, x\), MultiDiscrete .* got Box"),
    ],
)
def test_bad_arguments_are_one_line(call, message):
    with pytest.raises(ValueError, match=message) as refused:
        call()
    assert "\n" not in str(refused.value)
