"""From the draws of ``tabular-rivals`` to verdicts: who is best, tied or behind in a cell, and how often."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from imm.experiments.study import Row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SETS = ("adult", "credit", "fair", "breast-cancer", "diabetes", "digits-odd")

SEEN = SETS[:3]
"""Sets by whose test losses the rule of ``lam="auto"`` was made: the others are the honest ones."""

OLDS = ("good", "weak", "shifted", "wrong")

GROUPS = {"all sets": None, "sets the rule was made on": True, "other sets": False}

NOTHING = 1e-6
"""A difference of log-losses that is none: the same model is found to this."""

FREE = ("full-only", "reverse-kd", "noising", "label-smoothing", "imm")
"""Methods after which the old model and its data may be thrown away."""


def verdicts(rows: Sequence[Row]) -> list[Row]:
    """A row for each cell and method, then counts over cells.

    Differences are paired: the same draw, the same test rows. One standard error is the deviation of the differences
    over the root of their number. ``tied``: not more than one standard error behind the lowest mean. ``better`` and
    ``worse``: more than one standard error from full-only.
    """
    cells: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        cells.setdefault(tuple(row[key] for key in ("model", "data", "n", "old")), []).append(row)

    def place(cell: tuple[Any, ...]) -> tuple[Any, ...]:
        model, data, n, old = cell
        return model != "linear", OLDS.index(old), SETS.index(data), n

    found = [row for cell in sorted(cells, key=place) for row in _cell(cells[cell])]
    return found + _counts(found)


def _cell(rows: Sequence[Row]) -> list[Row]:
    import numpy as np

    methods = list(dict.fromkeys(row["method"] for row in rows))
    of = {name: sorted((row for row in rows if row["method"] == name), key=lambda row: row["draw"]) for name in methods}
    losses = {name: np.array([row["log_loss"] for row in of[name]]) for name in methods}
    full = losses["full-only"]
    found = []
    for name in methods:
        mine = losses[name]
        p10, p90 = np.percentile(mine, [10, 90])
        strengths = [row["strength"] for row in of[name] if row["strength"] is not None]
        means = {
            key: float(np.mean([row[key] for row in of[name]]))
            for key in ("auc", "accuracy", "calibration_error", "seconds")
        }
        cell = {key: rows[0][key] for key in ("model", "old", "data", "n")}
        spread = {"mean": float(mine.mean()), "p10": float(p10), "p90": float(p90), "runs": len(mine)}
        row = {**cell, "method": name, **spread, **means}
        row |= {
            "strength": float(np.median(strengths)) if strengths else None,
            "gain": float(100 * (full - mine).mean() / full.mean()),
            "gain_error": 100 * standard_error(full - mine) / float(full.mean()),
            "against_full_only": _against(mine - full),
            "verdict": _verdict(losses, name, methods),
        }
        if any(each["share"] for each in of[name]):
            row["share"] = float(np.mean([each["share"] for each in of[name]]))
        if name in FREE:
            row["verdict_of_free"] = _verdict(losses, name, [other for other in FREE if other in methods])
        found.append(row)
    return found


def standard_error(differences: "NDArray[np.float64]") -> float:
    """Of the mean of paired differences; 0 for a single one."""
    n = len(differences)
    return float(differences.std(ddof=1) / n**0.5) if n > 1 else 0.0


def _against(behind: "NDArray[np.float64]") -> str:
    """``better``, ``worse`` or ``same`` by paired differences of log-losses."""
    error, mean = max(standard_error(behind), NOTHING), float(behind.mean())
    return "better" if mean < -error else "worse" if mean > error else "same"


def _verdict(losses: "dict[str, NDArray[np.float64]]", name: str, among: Sequence[str]) -> str:
    best = min(among, key=lambda other: float(losses[other].mean()))
    if name == best:
        return "best"
    return "behind" if _against(losses[name] - losses[best]) == "worse" else "tied"


def _counts(rows: Sequence[Row]) -> list[Row]:
    found = []
    for model, old, method in dict.fromkeys((row["model"], row["old"], row["method"]) for row in rows):
        for group, seen in GROUPS.items():
            here = [
                row
                for row in rows
                if (row["model"], row["old"], row["method"]) == (model, old, method)
                and (seen is None or (row["data"] in SEEN) == seen)
            ]
            if not here:
                continue
            leading = sum(row["verdict"] != "behind" for row in here)
            row = {"model": model, "old": old, "data": group, "n": "all", "method": method}
            row |= {"value": 100 * leading / len(here), "cells": len(here)}
            row |= {kind: sum(other["verdict"] == kind for other in here) for kind in ("best", "tied")}
            row |= {kind: sum(other["against_full_only"] == kind for other in here) for kind in ("better", "worse")}
            if method in FREE:
                row["best_or_tied_of_free"] = sum(other["verdict_of_free"] != "behind" for other in here)
            row["gain"] = sum(other["gain"] for other in here) / len(here)
            found.append(row)
    return found
