"""What IMM costs on tables: ``python -m benchmarks.tabular``, or with ``--json`` a flat object, name to figure.

Each is a ratio of fits in one run: both take turns on one thread, and a figure is the median over rounds of each
round's ratio, in seconds of the processor. Rows are made: a linear truth over 100 features of which the old model,
fitted on 5,000 rows, sees five (over 20 features for trees and for 10,000 rows).

- ``fit_over_logistic_N``: ``IMMClassifier(lam=1)`` over scikit-learn's scaler and ``LogisticRegression``, N rows.
- ``exact_over_neighbors_10000``: the inducer over all pairs of rows over that over 32 neighbours, one round (the first
  takes minutes and gigabytes); ``neighbors_10000_gap``: how much higher the second's log-loss is on 10,000 more rows.
- ``lightgbm_imm_over_plain_N``: boosted trees with IMM, eight contexts, over the same without.
- ``million_given_s``, ``million_auto_s``: a linear model of 1,000,000 rows of 100 features, λ given and λ chosen, once
  each, in seconds of the clock on all processors; ``…_gb``: the highest memory while it is fitted, above what the rows
  take.
"""

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks import printing
from benchmarks.memory import rise
from imm.tabular import IMMClassifier

BOUNDS = {"fit_over_logistic_300": 10.0, "fit_over_logistic_3000": 10.0}
"""Figures that must not be larger than this."""

SHORT = list(range(5))
Progress = Callable[[str], None]


def rows(n: int, features: int, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Features and labels; those of more rows begin with those of fewer."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=features)
    x = rng.normal(size=(n, features))
    z = 2 * x @ w / np.linalg.norm(w)
    return x, (np.random.default_rng(seed + 1).random(n) < 1 / (1 + np.exp(-z))).astype(np.intp)


def old_model(features: int) -> LogisticRegression:
    x, y = rows(40_000, features)
    return LogisticRegression().fit(x[-5_000:, SHORT], y[-5_000:])


def seconds(call: Callable[[], object]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def turns(first: Callable[[], object], second: Callable[[], object], rounds: int) -> tuple[float, float, float]:
    """Medians of both, and of their ratio; a round before the first warms."""
    both = [(seconds(first), seconds(second)) for _ in range(rounds + 1)][1:]
    return tuple(
        statistics.median(values) for values in ([a for a, _ in both], [b for _, b in both], [a / b for a, b in both])
    )


def linear(progress: Progress, rounds: int) -> dict[str, float]:
    figures = {}
    for n in (300, 3_000):
        progress(f"linear, {n} rows")
        x, y = rows(n, 100)
        model = IMMClassifier(short_features=SHORT, restricted_model=old_model(100), lam=1.0, l2=1.0)
        plain = LogisticRegression(C=1.0, max_iter=1000)
        ours, theirs, ratio = turns(
            lambda x=x, y=y, model=model: model.fit(x, y),
            lambda x=x, y=y, plain=plain: plain.fit(StandardScaler().fit_transform(x), y),
            rounds,
        )
        figures |= {f"imm_{n}_ms": 1e3 * ours, f"logistic_{n}_ms": 1e3 * theirs, f"fit_over_logistic_{n}": ratio}
    return figures


def neighbors(progress: Progress, n: int = 10_000, features: int = 20) -> dict[str, float]:
    x, y = (part[: 2 * n] for part in rows(2 * n, features))
    x = x.astype(np.float32)
    near = IMMClassifier(short_features=SHORT, restricted_model=old_model(features), lam=1.0, l2=1.0)
    exact = IMMClassifier(**{**near.get_params(deep=False), "n_neighbors": None})
    progress(f"{n} rows, 32 neighbours")
    quick = seconds(lambda: near.fit(x[:n], y[:n]))
    progress(f"{n} rows, all pairs: minutes")
    slow = seconds(lambda: exact.fit(x[:n], y[:n]))
    losses = [log_loss(y[n:], model.predict_proba(x[n:])) for model in (near, exact)]
    return {
        f"neighbors_{n}_s": quick,
        f"exact_{n}_s": slow,
        f"exact_over_neighbors_{n}": slow / quick,
        f"neighbors_{n}_gap": losses[0] - losses[1],
    }


def trees(progress: Progress, rounds: int) -> dict[str, float]:
    figures = {}
    for n in (300, 3_000):
        progress(f"LightGBM, {n} rows")
        x, y = rows(n, 20)
        with_imm = IMMClassifier("lightgbm", SHORT, old_model(20), lam=1.0, l2=1.0)
        without = IMMClassifier("lightgbm", SHORT, old_model(20), lam=0.0, l2=1.0)
        _, _, ratio = turns(
            lambda x=x, y=y, model=with_imm: model.fit(x, y), lambda x=x, y=y, model=without: model.fit(x, y), rounds
        )
        figures[f"lightgbm_imm_over_plain_{n}"] = ratio
    return figures


def large(progress: Progress, n: int = 1_000_000) -> dict[str, float]:
    figures = {}
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, 100), dtype=np.float32)
    y = (x[:, :20].sum(1) + rng.logistic(size=n) > 0).astype(np.intp)
    old = LogisticRegression().fit(x[:5_000, SHORT], y[:5_000])
    for name, lam in (("given", 1.0), ("auto", "auto")):
        progress(f"{n:,} rows, λ {name}")
        model = IMMClassifier(short_features=SHORT, restricted_model=old, lam=lam)
        begin = time.perf_counter()
        figures[f"million_{name}_gb"] = rise(lambda model=model: model.fit(x, y)) / 1e9
        figures[f"million_{name}_s"] = time.perf_counter() - begin
    return figures


def main() -> None:
    parser = printing.options(__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    with Console(stderr=True).status("starting") as status:
        figures = large(status.update)
        torch.set_num_threads(1)
        with threadpool_limits(1):
            figures |= linear(status.update, given.rounds) | trees(status.update, given.rounds)
            figures |= neighbors(status.update)
    printing.show("tables", figures, given.json, BOUNDS)


if __name__ == "__main__":
    main()
