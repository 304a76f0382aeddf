"""Slow and obvious twins of the fast code: plain loops over plain floats, written from the paper's equations."""

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence

from torch import Tensor

Rows = list[list[float]]


def tampered_cross_entropy(log_q: Tensor, target: Tensor, factor: Tensor) -> Tensor:
    """``-Σ_y P̂(y) f(y) log Q(y)`` by row, with the factor ``f`` a constant in the gradient; by tensors.

    With ``f`` the crosstalk of one extended context this is the bracket in the last line of
    Eq. sequentializing-derivation, with the correction the overbrace of Eq. serialized-IMM-gradient, and with ``f = 1``
    reverse KD (Eq. noising). Only its gradient has a meaning.
    """
    return -(target.detach() * factor.detach() * log_q).sum(-1)


def induce(q: list[Rows], weights: Rows | None = None) -> Rows:
    """Eq. induced-Q-logreg; Eq. induced-Q-full with equal weights. ``q`` are probabilities ``[n][k][classes]``."""
    out = []
    for t, contexts in enumerate(q):
        w = weights[t] if weights else [1.0] * len(contexts)
        total = sum(w)
        out.append([sum(w[i] * row[y] for i, row in enumerate(contexts)) / total for y in range(len(contexts[0]))])
    return out


def crosstalk(q: list[Rows], weights: Rows | None = None) -> list[Rows]:
    """The underbrace of Eq. sequentializing-derivation."""
    out = []
    for t, contexts in enumerate(q):
        w = weights[t] if weights else [1.0] * len(contexts)
        total = [sum(w[i] * row[y] for i, row in enumerate(contexts)) for y in range(len(contexts[0]))]
        out.append([[w[i] * row[y] / total[y] for y in range(len(row))] for i, row in enumerate(contexts)])
    return out


def risk(induced: Rows, target: Rows, sample_weight: Sequence[float] | None = None) -> float:
    """Eq. IMM-exact-coarse."""
    weight = sample_weight or [1.0] * len(induced)
    total = 0.0
    for w, q, p in zip(weight, induced, target, strict=True):
        for y in range(len(q)):
            if p[y] > 0:
                total -= w * p[y] * math.log(q[y])
    return total / sum(weight)


def risk_gradient(
    q: list[Rows], target: Rows, weights: Rows | None = None, sample_weight: Sequence[float] | None = None
) -> list[Rows]:
    """The gradient of the risk with respect to ``log q[t][i][y]``: ``-(1/n) P̂(y|t) C_ti(y)``."""
    row_weight = sample_weight or [1.0] * len(q)
    return [
        [[-row_weight[t] / sum(row_weight) * target[t][y] * c for y, c in enumerate(context)] for context in contexts]
        for t, contexts in enumerate(crosstalk(q, weights))
    ]


def multiset(short: Sequence[Hashable]) -> dict[Hashable, list[int]]:
    """Eq. imm-from-dictionary: where each short context occurs."""
    rows: dict[Hashable, list[int]] = defaultdict(list)
    for t, value in enumerate(short):
        rows[value].append(t)
    return dict(rows)


def kernel_weights(
    short: Rows,
    data: Rows,
    alpha: Sequence[float],
    kind: str,
    categorical: Sequence[int] = (),
    sample_weight: Sequence[float] | None = None,
) -> Rows:
    """The soft nearest-neighbour weights of Eq. induced-Q-logreg, each row summing to one."""
    out = []
    for here in short:
        row = []
        for t, there in enumerate(data):
            exponent = 0.0
            for j, a in enumerate(alpha):
                distance = float(here[j] != there[j]) if j in categorical else abs(here[j] - there[j])
                if distance > 0:
                    exponent -= a * distance if kind == "laplace" else 0.5 * (a * distance) ** 2
            row.append(math.exp(exponent) * (sample_weight[t] if sample_weight else 1.0))
        out.append([w / sum(row) for w in row])
    return out


class Serialized:
    """Alg. serialized-imm with a dictionary of multisets."""

    def __init__(self, short: Sequence[Hashable], refresh_every: int) -> None:
        self.short, self.refresh_every, self.steps = short, refresh_every, 0
        self.stale: Rows = []
        self.induced: dict[Hashable, list[float]] = {}

    def step(self, q: Rows, rows: Sequence[int]) -> tuple[Rows, Rows]:
        """From the model's probabilities at *all* rows: the batch's corrections and induced probabilities."""
        if self.steps % self.refresh_every == 0:
            self.stale = q
            self.induced = {x: induce([[q[t] for t in rows]])[0] for x, rows in multiset(self.short).items()}
        self.steps += 1
        induced = [self.induced[self.short[t]] for t in rows]
        factor = [
            [a / b for a, b in zip(self.stale[t], mean, strict=True)] for t, mean in zip(rows, induced, strict=True)
        ]
        return factor, induced


class Streaming:
    """The running induced model, one row of the batch at a time."""

    def __init__(self, memory: float, lifetime: float) -> None:
        self.memory, self.lifetime = memory, lifetime
        self.induced: dict[int, list[float]] = {}
        self.count: dict[int, float] = {}
        self.seen: dict[int, int] = {}
        self.steps = 0

    def step(self, q: Rows, short: Sequence[int], weight: Sequence[float] | None = None) -> tuple[Rows, Rows]:
        """From the model's probabilities at the batch's rows: their corrections and induced probabilities."""
        for x, rows in multiset(short).items():
            w = [weight[t] if weight else 1.0 for t in rows]
            m, age = sum(w), self.steps - self.seen.get(x, 0)
            aged = self.count.get(x, 0.0) * (math.exp(-age / self.lifetime) if self.lifetime else 0.0)
            kept = min(aged, self.memory)
            beta = m / (kept + m)
            mean = [sum(wt * q[t][y] for wt, t in zip(w, rows, strict=True)) / m for y in range(len(q[0]))]
            old = self.induced.get(x, [0.0] * len(mean))
            self.induced[x] = [(1 - beta) * a + beta * b for a, b in zip(old, mean, strict=True)]
            self.count[x], self.seen[x] = kept + m, self.steps
        self.steps += 1
        induced = [self.induced[x] for x in short]
        return [[a / b for a, b in zip(row, mean, strict=True)] for row, mean in zip(q, induced, strict=True)], induced
