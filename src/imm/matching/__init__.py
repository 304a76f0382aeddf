"""Matching: the IMM risk as a loss, and four ways to estimate it and its gradient."""

from imm.matching.base import Matching, Predict
from imm.matching.clipping import clipped_apart
from imm.matching.exact import Exact
from imm.matching.sampled import Sampled
from imm.matching.serialized import Serialized
from imm.matching.streaming import Streaming

__all__ = ["Exact", "Matching", "Predict", "Sampled", "Serialized", "Streaming", "clipped_apart"]
