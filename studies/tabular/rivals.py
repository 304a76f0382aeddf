"""Our study: what practitioners do with an old model that sees few features, beside IMM. ``docs/results/tables.md``."""

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from imm.experiments.study import Row, Scorecard, Settings, Study
from studies.tabular.verdicts import OLDS, verdicts

if TYPE_CHECKING:
    from imm.tabular.fitting import Setup


SETS: Settings = {
    # By looking at losses on test rows of these three, the rule by which lam="auto" chooses was made.
    "adult": {
        "short": ["age", "education-num", "hours-per-week"],
        "shift": "marital-status_Married-civ-spouse",
        "sizes": [50, 100, 300, 1000, 3000],
        "test": 5000,
        "pool": 2000,
    },
    "credit": {
        "short": ["Seniority", "Records=yes"],
        "shift": "Income",
        "sizes": [50, 100, 300, 1000],
        "test": 1200,
        "pool": 2000,
    },
    "fair": {
        "short": ["rate_marriage"],
        "shift": "yrs_married",
        "sizes": [50, 100, 300, 1000, 3000],
        "test": 1300,
        "pool": 2000,
    },
    # scikit-learn's own; short features were chosen before anything was run on them, and nothing was changed since.
    "breast-cancer": {
        "short": ["mean radius", "mean texture"],
        "shift": "mean concavity",
        "sizes": [50, 100],
        "test": 180,
        "pool": 280,
    },
    "diabetes": {
        "short": ["age", "sex", "bmi", "bp"],
        "shift": "s5",
        "sizes": [50, 100],
        "test": 140,
        "pool": 200,
    },
    "digits-odd": {
        "short": [f"pixel_{i}_{j}" for i in range(4) for j in range(8)],
        "shift": "pixel_5_3",
        "sizes": [50, 100, 300],
        "test": 500,
        "pool": 900,
    },
}


def pieces(settings: Settings) -> list[Row]:
    """Each draw of each size, with all old models: what does not depend on them is trained once.

    The runner begins with the last: those nearest to 100 rows, linear models before trees.
    """
    found = []
    for model, about in settings["models"].items():
        for name in about["sets"]:
            for n in settings["sizes"]:
                if n in settings["sets"][name]["sizes"]:
                    cell = {"model": model, "data": name, "n": n}
                    found += [{**cell, "draw": draw} for draw in range(settings["runs"])]
    return sorted(found, key=lambda piece: abs(math.log(piece["n"] / 100)) + (piece["model"] != "linear"), reverse=True)


def run(settings: Settings, piece: Row) -> Sequence[Row]:
    """All methods with all old models on one draw."""
    from imm.tabular.rivals import BEGINS, METHODS, WITH_OLD_DATA, Table
    from studies.tabular.old_models import old_model
    from studies.tabular.tables import draw

    made = draw(settings, piece["data"], piece["n"], piece["draw"])
    methods = {**METHODS, **WITH_OLD_DATA}
    setup = _setup(settings, piece["model"], made.short)
    x, y = made.x[made.few], made.y[made.few]
    x_test, y_test = made.x[made.test], made.y[made.test]
    cell = {key: piece[key] for key in ("model", "data", "n")}
    rows: list[Row] = []
    shared: dict[str, Row] = {}
    known: dict[float, Any] = {}
    for kind, names in settings["models"][piece["model"]]["methods"].items():
        old, old_rows = old_model(settings, kind, made)
        table = Table(x, y, old[made.few], old_rows, {"full-only": known})
        took: dict[str, float] = {}
        for name in names:
            found = shared.get(name)
            if found is not None:
                took[name] = found["seconds"]
            else:
                begin = time.process_time()
                predictor = methods[name](table, setup)
                took[name] = time.process_time() - begin + took.get(BEGINS.get(name, ""), 0.0)
                found = figures(predictor.predict(x_test, old[made.test])[:, 1], y_test)
                found |= {"seconds": took[name], "strength": predictor.strength, "share": predictor.share}
                if name in ("full-only", "label-smoothing"):  # the old model has no part in them
                    shared[name] = found
            rows.append({**cell, "old": kind, "method": name, "draw": piece["draw"], **found})
    return rows


def _setup(settings: Settings, model: str, short: Any) -> "Setup":
    """As the estimators have it by default; trees are fewer."""
    import numpy as np

    from imm.tabular.engines import engine_for
    from imm.tabular.fitting import Setup
    from imm.tabular.tasks import Classification

    engine: Any = engine_for(model)
    if model == "lightgbm":
        engine.set_params(**settings["trees"])
    return Setup(Classification(np.arange(2)), engine, short, False, 32, 1.0, True, settings["seed"])


def figures(p: Any, y: Any) -> Row:
    """Of predicted probabilities of 1, ``[m]``: what is measured on test rows.

    The calibration error is the mean distance, over rows, between the mean prediction and the share of ones in ten
    bins of equal width.
    """
    import numpy as np
    from sklearn.metrics import roc_auc_score

    tiny = 1e-12
    bins = np.minimum((10 * p).astype(int), 9)
    gaps = np.bincount(bins, weights=p - y, minlength=10)
    return {
        "log_loss": float(-np.log(np.clip(np.where(y == 1, p, 1 - p), tiny, 1)).mean()),
        "auc": float(roc_auc_score(y, p)),
        "accuracy": float(((p > 0.5) == y).mean()),
        "calibration_error": float(np.abs(gaps).sum() / len(y)),
    }


ALL = ["full-only", "old-only", "interpolation", "stacking", "offset", "shrinking", "reverse-kd", "noising"]
ALL += ["label-smoothing", "imm", "imm-stacking", "pooled", "imputed"]
OF_TREES = [name for name in ALL if name != "shrinking"]

STUDY = Study(
    name="tabular-rivals",
    title="Ways to use an old model that sees few features, on tables (ours)",
    settings={
        "sets": SETS,
        "sizes": [50, 100, 300, 1000, 3000],
        "models": {
            "linear": {"sets": list(SETS), "methods": dict.fromkeys(OLDS, ALL)},
            "lightgbm": {"sets": list(SETS), "methods": dict.fromkeys(OLDS, OF_TREES)},
        },
        "trees": {"n_trees": 30, "learning_rate": 0.2, "redraw_every": 15},
        "weak": 30,
        "runs": 20,
        "seed": 0,
    },
    quick={
        "sizes": [50],
        "models": {"linear": {"sets": ["diabetes"], "methods": dict.fromkeys(("good", "wrong"), ALL)}},
        "runs": 4,
    },
    pieces=pieces,
    run=run,
    summarise=verdicts,
    reads_data=True,
    figure=Scorecard(
        panels=("model", "old"),
        lines=("data", "n"),
        columns="method",
        value="gain",
        marked="verdict",
        marks={"best": "★", "tied": "•"},
        note="log-loss, percent below full-only (green: better); ★ the lowest, • within one standard error of it",
    ),
)
