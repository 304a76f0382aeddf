"""Baselines: what IMM is compared with."""

from imm.baselines.interpolation import interpolate
from imm.baselines.noising import Noise, expected_counts, noise
from imm.baselines.soft_labels import label_smoothing, reverse_kd, soft_noising

__all__ = [
    "Noise",
    "expected_counts",
    "interpolate",
    "label_smoothing",
    "noise",
    "reverse_kd",
    "soft_noising",
]
