"""Control: a world that is seen whole or in part, and policies for it that learn from those who see less.

With Gymnasium (the extra ``[control]``) the world is also the environment ``imm/ToroidalGrid-v0``.
"""

from importlib.util import find_spec

from imm.control.grid import ACTIONS, Grid, Walkers, landscape
from imm.control.matching import PolicyMatching
from imm.control.memory import Visited
from imm.control.ppo import PPO, PPOSettings
from imm.control.reinforce import Episode, IMMReinforce
from imm.control.spaces import first_returns
from imm.control.stacked_runs import Policies, Problem, Recipe, total_reward, train

if find_spec("gymnasium") is not None:
    from imm.control import env as env  # registers the environment

__all__ = [
    "ACTIONS",
    "PPO",
    "Episode",
    "Grid",
    "IMMReinforce",
    "PPOSettings",
    "Policies",
    "PolicyMatching",
    "Problem",
    "Recipe",
    "Visited",
    "Walkers",
    "first_returns",
    "landscape",
    "total_reward",
    "train",
]
