"""What was found, in plain words."""

import math
from collections.abc import Mapping
from typing import Any

from imm.fit.nested_cv import Difference, Scores, compare

NAMES = {
    "full-only": "new rows only",
    "old-only": "old model only",
    "imm": "with the old model (IMM)",
    "imm-stacking": "with the old model, kept",
    "stacking": "old score as a feature",
    "interpolation": "both predictions mixed",
    "offset": "added to the old score",
    "reverse-kd": "reverse distillation",
    "label-smoothing": "label smoothing",
}
"""Methods as a newcomer calls them."""

SAID = {
    "helped": "helped",
    "probably helped": "probably helped",
    "no clear difference": "made no clear difference",
    "probably did not help": "did not help here",
    "did not help": "did not help here",
}
"""What :func:`helped` found, in a sentence."""


def summarise(scores: Scores) -> list[dict[str, Any]]:
    """A flat record for each method and metric, with the comparison to ``full-only`` by the first metric."""
    rows = []
    for method, metrics in scores.by.items():
        for place, (metric, values) in enumerate(metrics.items()):
            some = values[values == values]
            row = {"method": method, "metric": metric, "mean": float(some.mean()) if len(some) else None}
            row["runs"] = len(some)
            if place == 0 and method != "full-only":
                gain = compare(scores, method, "full-only")
                row |= {"gain": gain.mean, "standard_error": gain.standard_error, "better_splits": gain.better}
            rows.append(row)
    return rows


def verdict(scores: Scores, method: str, lam: float, share: float = 0.0) -> str:
    """Whether the old model helped ``method``, by how much and how sure that is; and whether it is better alone.

    ``lam`` and ``share`` are those of the saved model.
    """
    metric = next(iter(scores.by[method]))
    full, with_old, old = (float(scores.by[name][metric].mean()) for name in ("full-only", method, "old-only"))
    gain = compare(scores, method, "full-only")
    figures = f"{metric} {shown(with_old)} instead of {shown(full)}"
    often = f"better in {gain.better} of {gain.splits} splits" + (f", equal in {gain.equal}" if gain.equal else "")
    found = helped(gain)
    unsure = "; more rows would tell" if found == "probably helped" else ""
    words = f"The old model {SAID[found]}: {figures} ({often}){unsure}."
    if method == "imm-stacking":
        mixed = f", and is {share:.0%} the old model's" if share else ""
        words += f" The old model is kept: every prediction asks it{mixed}."
    elif lam == 0:
        words += (
            " The saved model has λ = 0: already a little of the old model makes predictions worse, so it is trained on"
            " the new rows alone."
        )
    alone = compare(scores, "old-only", method)
    if alone.mean > alone.standard_error:
        words += f" The old model alone is better still ({metric} {shown(old)}): there are too few new rows to beat it."
    return words


def helped(gain: Difference) -> str:
    """In few words. A difference counts if it is more than its standard error; it is clear if it is more than twice."""
    if abs(gain.mean) <= gain.standard_error:
        return "no clear difference"
    sure = "" if abs(gain.mean) > 2 * gain.standard_error else "probably "
    return f"{sure}helped" if gain.mean > 0 else f"{sure}did not help"


def gain_shown(row: Mapping[str, Any]) -> tuple[str, str]:
    """A gain and its standard error, both to the error's second digit."""
    error = row["standard_error"]
    size = max(error, 1e-3 * abs(row["gain"]))
    digits = max(0, 1 - math.floor(math.log10(size))) if size > 0 else 3
    return f"{row['gain']:+,.{digits}f}", f"{error:,.{digits}f}"


def shown(value: float | None) -> str:
    """Three digits after the point, four in all where it is large."""
    if value is None:
        return ""
    if 0 < abs(value) < 0.01:
        return f"{value:.3g}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
