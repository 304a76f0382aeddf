"""POMDPs: finite ones as arrays or from files, bounds on their value, and the policy of such a bound as a target."""

from imm.control.pomdp.file import read_pomdp
from imm.control.pomdp.model import Pomdp
from imm.control.pomdp.policy import PomdpPolicy
from imm.control.pomdp.solvers import Solution, fast_informed_bound, qmdp, value_iteration

__all__ = ["Pomdp", "PomdpPolicy", "Solution", "fast_informed_bound", "qmdp", "read_pomdp", "value_iteration"]
