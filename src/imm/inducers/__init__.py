"""Inducers: π(extended | short), which extended contexts go with a short one, and with what weight."""

from imm.inducers.base import Contexts, Inducer
from imm.inducers.belief import Belief
from imm.inducers.kernel import Kernel
from imm.inducers.multiset import Multiset

__all__ = ["Belief", "Contexts", "Inducer", "Kernel", "Multiset"]
