"""Training methods, by name."""

from imm.language.methods.base import Loss, Method, Step
from imm.language.methods.by_name import check_counts, method_for
from imm.language.methods.induced_table import describe_table
from imm.language.methods.kept_states import states_mb

__all__ = ["Loss", "Method", "Step", "check_counts", "describe_table", "method_for", "states_mb"]
