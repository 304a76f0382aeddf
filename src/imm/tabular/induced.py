"""The induced model of any full model, and how far it is from the old one."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from imm.tabular.contexts import Pairs
from imm.tabular.distinct_rows import Array
from imm.tabular.engines.base import Fitted, Problem
from imm.tabular.fitting import Setup
from imm.tabular.tasks import mix

BATCH = 1 << 20
"""Numbers in the pairs' features that are made at a time."""


@dataclass(frozen=True)
class Diagnosis:
    """The distance between the induced and the old model, averaged over the training rows' short contexts.

    Attributes:
        without: of a full model trained with λ = 0.
        with_imm: of this one.
        lam: its λ.
    """

    without: float
    with_imm: float
    lam: float


def distance(setup: Setup, fit: Fitted, problem: Problem, share: float = 0.0) -> float:
    """``Σ_x π(x) KL(P̂(·|short) || Q̂(·|short))``   (Eq. KL-induced), or the mean squared difference.

    ``share`` is that of the old model, if its prediction is mixed in.
    """
    if problem.pairs is None or problem.target is None:
        raise ValueError("this problem has no old model to compare with")
    induced = _induced(setup, fit, problem.x, problem.x[problem.pairs.row], problem.pairs)
    induced = mix(induced, problem.target, share)
    return float(problem.pairs.share @ setup.task.distance(problem.target, induced))


def induced_at(setup: Setup, fit: Fitted, x: Array, weight: Array, asked: Array) -> Array:
    """Q̂ at other short contexts: the short columns of ``asked``, ``[T, d]``, with extended contexts of rows ``x``."""
    short = _all_short(setup, x)
    return _induced(setup, fit, x, asked, setup.pairs(x[:, short], weight, bool(short.all()), asked[:, short]))


def _all_short(setup: Setup, x: Array) -> Array:
    return np.append(setup.short, np.ones(x.shape[1] - len(setup.short), dtype=bool))


def _induced(setup: Setup, fit: Fitted, x: Array, asked: Array, pairs: Pairs) -> Array:
    short = _all_short(setup, x)
    edges = np.searchsorted(pairs.start, np.arange(0, pairs.start[-1], max(1, BATCH // x.shape[1])))
    edges = np.unique([0, *edges, len(asked)])
    found = []
    for begin, end in pairwise(edges):
        part = pairs.part(begin, end)
        mixed = x[part.extended]
        mixed[:, short] = asked[begin:end][part.spread(np.arange(end - begin))][:, short]
        expected = setup.task.expected(fit.scores(mixed))
        found.append(part.sum((expected * part.weight[:, None]).T).T)
    return np.concatenate(found)
