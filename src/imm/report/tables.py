"""A result as a table, the paper's figures beside ours."""

from collections.abc import Mapping
from typing import Any

from imm.experiments import Row, Scorecard

BESIDE = (
    *("beats_full_only", "median_lam", "mean_of_restarts", "deviation", "strength", "falls", "dropout", "tries"),
    *("gain", "gain_error", "against_none", "against_full_only", "verdict", "verdict_of_free"),
    *("auc", "accuracy", "calibration_error", "seconds"),
    *("cells", "best", "tied", "better", "worse", "best_or_tied_of_free"),
    *("diverged", "growth", "spread", "pull"),
)
"""Figures that have a column of their own."""

FIGURES = ("mean", "p10", "p90", "runs", "value", "restarts", "tried", *BESIDE)
"""The keys of a row that are figures; the others name its cell."""


def records(result: Mapping[str, Any]) -> list[dict[str, str]]:
    """The rows as a person reads them: the cell, our figures, and where the paper prints it, the paper's."""
    cell = dict.fromkeys(key for row in result["rows"] for key in row if key not in FIGURES)
    beside = [key for key in BESIDE if any(key in row for row in result["rows"])]
    shown = []
    for row in result["rows"]:
        record = {key: _show(row.get(key)) for key in cell}
        record["ours"] = _spread(row)
        record |= {key.replace("_", " "): _show(row.get(key)) for key in beside}
        if result["paper"]:
            printed = _printed(result["paper"], row)
            record["paper"] = _spread(printed) if printed else ""
            record["difference"] = f"{_middle(row) - _middle(printed):+.3g}" if printed else ""
        shown.append(record)
    for printed in result["paper"] or ():
        if not any(_same_cell(printed, row) for row in result["rows"]):
            record = dict.fromkeys(shown[0], "") | {key: _show(printed.get(key)) for key in cell}
            shown.append(record | {"ours": "not run here", "paper": _spread(printed)})
    return shown


def markdown(result: Mapping[str, Any], changed: Mapping[str, Any] | None = None) -> str:
    """The table in Markdown; ``changed`` names the settings that are not the full study's."""
    rows = records(result)
    columns = list(rows[0])
    lines = [columns, ["---"] * len(columns), *(list(row.values()) for row in rows)]
    body = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    about = " ".join(filter(None, ["Mean [10th, 90th percentile], or a single value.", departure(changed or {})]))
    return f"# {result['title']}\n\n{about}\n\n{body}\n"


def pivot(result: Mapping[str, Any], figure: Scorecard, changed: Mapping[str, Any] | None = None) -> str:
    """Returns a scorecard's cells in Markdown, a line for each and a column for each method."""
    rows = [row for row in result["rows"] if figure.value in row]
    methods = list(dict.fromkeys(row[figure.columns] for row in rows))
    names = (*figure.panels, *figure.lines)
    cells: dict[tuple[Any, ...], dict[str, str]] = {}
    for row in rows:
        mark = figure.marks.get(row.get(figure.marked, ""), "")
        cells.setdefault(tuple(row[name] for name in names), {})[row[figure.columns]] = (
            f"{row[figure.value]:+.1f}{mark}"
        )
    lines = [[*names, *methods], ["---"] * (len(names) + len(methods))]
    lines += [[*map(_show, cell), *(found.get(method, "") for method in methods)] for cell, found in cells.items()]
    body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    about = " ".join(filter(None, [f"{figure.note}.", departure(changed or {})]))
    return f"# {result['title']}\n\n{about}\n\n{body}\n"


def departure(changed: Mapping[str, Any]) -> str:
    """A sentence that names the settings in which a result is not the full study's; empty if there are none."""
    listed = ", ".join(f"{key} = {value}" for key, value in changed.items())
    return f"Not the full study: {listed}." if listed else ""


def _printed(paper: list[Row], row: Row) -> Row | None:
    """The paper's row for the same cell: it may name fewer keys than ours."""
    return next((printed for printed in paper if _same_cell(printed, row)), None)


def _same_cell(printed: Row, row: Row) -> bool:
    return all(row.get(key) == value for key, value in printed.items() if key not in FIGURES)


def _middle(row: Row) -> float:
    return float(row["mean"] if "mean" in row else row["value"])


def _spread(row: Row) -> str:
    if "mean" not in row:
        return _show(row["value"])
    bars = f" [{_show(row['p10'])}, {_show(row['p90'])}]" if "p10" in row else ""
    return _show(row["mean"]) + bars


def _show(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.5g}" if abs(value) >= 100 else f"{value:.4g}"  # the paper prints perplexities as 185.71
