"""The grid as a Gymnasium environment, ``imm/ToroidalGrid-v0``; needs the extra ``[control]``."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from imm.control.grid import ACTIONS, Grid, Walkers, landscape
from imm.control.picture import pixels, text

ID = "imm/ToroidalGrid-v0"
Place = NDArray[np.int64]


def grid_of(height: int | None, width: int | None, reward: ArrayLike | None, variance: float, wrap: bool) -> Grid:
    """The grid that an environment's arguments describe; a given ``reward`` has its own height and width."""
    if reward is None:
        return Grid(landscape(11 if height is None else height, 11 if width is None else width, variance), wrap)
    grid = Grid(np.asarray(reward, dtype=np.float64), wrap)
    for name, said, found in (("height", height, grid.height), ("width", width, grid.width)):
        if said not in (None, found):
            raise ValueError(f"{name} is that of reward, {found}, where a reward is given; got {said!r}")
    return grid


class ToroidalGrid(gymnasium.Env[Place, np.int64]):
    """A walk over a grid that never ends: (y, x) in, up, down, left or right out, reward by the cell entered.

    Args:
        height: cells up and down; of the reward, or 11.
        width: cells left and right; the same.
        reward: ``[height, width]``; the paper's landscape if None.
        variance: of the paper's landscape.
        wrap: whether the edges are joined.
        render_mode: ``rgb_array``, ``ansi`` or None.
    """

    metadata = {"render_modes": ["rgb_array", "ansi"], "render_fps": 6}  # noqa: RUF012 (as the base class has it)

    def __init__(
        self,
        height: int | None = None,
        width: int | None = None,
        reward: ArrayLike | None = None,
        variance: float = 0.1,
        wrap: bool = True,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode must be one of {self.metadata['render_modes']}, got {render_mode!r}")
        self.grid = grid_of(height, width, reward, variance, wrap)
        self.render_mode = render_mode
        self.observation_space = spaces.MultiDiscrete([self.grid.height, self.grid.width])
        self.action_space = spaces.Discrete(len(ACTIONS))
        self.state = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Place, dict[str, Any]]:
        """To a cell at random, each as likely."""
        super().reset(seed=seed, options=options)
        self.state = int(self.np_random.integers(self.grid.n_states))
        return self._place(), {}

    def step(self, action: np.int64) -> tuple[Place, float, bool, bool, dict[str, Any]]:
        """One cell on; it is never over."""
        if not self.action_space.contains(action):
            raise ValueError(f"action must be 0 to {len(ACTIONS) - 1}, got {action!r}")
        self.state = int(self.grid.following[self.state, action])
        return self._place(), float(self.grid.reward.flat[self.state]), False, False, {}

    def _place(self) -> Place:
        return np.array(divmod(self.state, self.grid.width), dtype=np.int64)

    def render(self) -> Any:
        """An image ``[pixels, pixels, 3]`` or a text, by ``render_mode``."""
        y, x = divmod(self.state, self.grid.width)
        if self.render_mode == "rgb_array":
            return pixels(self.grid.reward, (y, x))
        return text(self.grid.reward, (y, x)) if self.render_mode == "ansi" else None


class OnlyX(gymnasium.ObservationWrapper[np.int64, np.int64, Place]):
    """The partly observed view: x, an integer, and nothing of y."""

    def __init__(self, env: gymnasium.Env[Place, np.int64]) -> None:
        space = env.observation_space
        if not (isinstance(space, spaces.MultiDiscrete) and space.shape == (2,)):
            raise ValueError(f"OnlyX needs observations (y, x), MultiDiscrete of two numbers, got {space}")
        super().__init__(env)
        self.observation_space = spaces.Discrete(int(space.nvec[1]))

    def observation(self, observation: Place) -> np.int64:
        """Its second part."""
        return np.int64(observation[1])


class ToroidalGrids(VectorEnv[Place, NDArray[np.int64], NDArray[Any]]):
    """The same as a vectorised environment: ``gymnasium.make_vec(ID, num_envs, "vector_entry_point")``."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012 (as the base class has it)

    def __init__(
        self,
        num_envs: int = 1,
        height: int | None = None,
        width: int | None = None,
        reward: ArrayLike | None = None,
        variance: float = 0.1,
        wrap: bool = True,
        render_mode: str | None = None,
    ) -> None:
        if render_mode is not None:
            raise ValueError(f"many grids at once are not drawn: render_mode must be None, got {render_mode!r}")
        grid = grid_of(height, width, reward, variance, wrap)
        self.num_envs, self.render_mode = num_envs, None
        self.walkers = Walkers(grid, num_envs)
        self.single_observation_space = spaces.MultiDiscrete([grid.height, grid.width])
        self.single_action_space = spaces.Discrete(len(ACTIONS))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Place, dict[str, Any]]:
        """Every copy to a cell at random; one seed is for all of them."""
        if isinstance(seed, list):
            raise ValueError(f"all copies share one stream of random numbers: seed must be one number, got {seed[:5]}")
        super().reset(seed=seed, options=options)
        if seed is not None:
            self.walkers.random = np.random.default_rng(seed)
        self.walkers.reset()
        return self.walkers.places, {}

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[Place, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """One cell on, each."""
        rewards = self.walkers.step(actions)
        never = np.zeros(self.num_envs, dtype=bool)
        return self.walkers.places, rewards, never, never.copy(), {}


if ID not in gymnasium.registry:
    gymnasium.register(ID, f"{__name__}:ToroidalGrid", vector_entry_point=f"{__name__}:ToroidalGrids")
