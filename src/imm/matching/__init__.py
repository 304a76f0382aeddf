"""Matching: the IMM risk, and four ways to estimate it and its gradient."""

from imm.matching.base import Forward
from imm.matching.clipping import clipped_apart
from imm.matching.exact import Exact
from imm.matching.sampled import Sampled
from imm.matching.serialized import Serialized
from imm.matching.streaming import Streaming

__all__ = ["Exact", "Forward", "Sampled", "Serialized", "Streaming", "clipped_apart"]
