"""POMDPs: finite ones as arrays or from files, bounds on their value, and the policy of such a bound as a target."""

from imm.targets.pomdp.model import Pomdp
from imm.targets.pomdp.policy import PomdpPolicy
from imm.targets.pomdp.reading import read_pomdp
from imm.targets.pomdp.solvers import Solution, fast_informed_bound, qmdp, value_iteration

__all__ = ["Pomdp", "PomdpPolicy", "Solution", "fast_informed_bound", "qmdp", "read_pomdp", "value_iteration"]
