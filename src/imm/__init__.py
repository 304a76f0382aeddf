"""Induced Model Matching: a restricted model helps train a full-featured one.

The parts, in the order data flows through them:

* :mod:`imm.functional` -- the paper's mathematics, tensors in, tensors out
* :mod:`imm.inducers` -- short context to extended contexts
* :mod:`imm.targets` -- short context to the restricted model's probabilities
* :mod:`imm.matching` -- the IMM risk: exact, sampled, serialized, streaming
* :mod:`imm.baselines` -- what IMM is compared with
* :mod:`imm.strength` -- how much IMM

Nothing is imported here: ``import imm`` costs nothing, and the command line answers at once.
"""

__version__ = "0.1.0"
