"""Training methods, by name."""

from imm.language.methods.base import Loss, Method, Step
from imm.language.methods.choosing import check_counts, method_for
from imm.language.methods.contexts import states_mb
from imm.language.methods.table import describe_table

__all__ = ["Loss", "Method", "Step", "check_counts", "describe_table", "method_for", "states_mb"]
