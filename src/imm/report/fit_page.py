"""What ``imm fit`` found, as one self-contained HTML page."""

from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from imm.files import write_whole
from imm.fit.verdict import NAMES, gain_shown, shown
from imm.report.fit_figure import draw_comparison
from imm.report.pages import environment, picture
from imm.report.write_files import as_svg
from imm.tabular.rivals import NEED_OLD

TONE = {"helped": "good", "probably helped": "good", "no clear difference": "even"}
ROLES = {"short": "short: the old model sees it", "new": "new: the old model does not see it", "left out": "left out"}


def write_fit_page(record: Mapping[str, Any], path: Path, folder: Path) -> None:
    """Writes the page.

    Args:
        record: what ``imm fit`` knows.
        path: of the page.
        folder: where the model will be, as the page's commands name it.
    """
    svg = as_svg(draw_comparison(record))
    metrics = list(dict.fromkeys(row["metric"] for row in record["rows"]))
    methods = [_method(record, method, metrics) for method in dict.fromkeys(row["method"] for row in record["rows"])]
    page = environment().get_template("fit.html")
    content = page.render(
        record=record,
        tone=TONE.get(record["helped"], "bad"),
        figure=picture(svg, "svg+xml", "Comparison of the methods"),
        metrics=metrics,
        methods=methods,
        name=NAMES[record["method"]],
        n_splits=record["folds"] * record["repeats"],
        roles=ROLES,
        closer=_closer(record),
        folder=folder,
        quoted=quote(str(folder)),
        versions=", ".join(f"{name} {version}" for name, version in record["versions"].items()),
    )
    write_whole(path, content)


def _method(record: Mapping[str, Any], method: str, metrics: list[str]) -> dict[str, Any]:
    """A line of the table."""
    mine = {row["metric"]: row for row in record["rows"] if row["method"] == method}
    first = mine[metrics[0]]
    gain = error = better = ""
    if "gain" in first:
        gain, error = gain_shown(first)
        better = f"{first['better_splits']} of {first['runs']}"
    return {
        "name": NAMES[method],
        "ours": method == record["method"],
        "figures": [shown(mine[metric]["mean"]) for metric in metrics],
        "gain": gain,
        "error": error,
        "better": better,
        "needs_old": "yes" if method in NEED_OLD else "no",
    }


def _closer(record: Mapping[str, Any]) -> dict[str, str]:
    """The distance of the induced from the old predictions, before and after, in a unit people know."""
    distance = record["distance"]
    if record["task"] == "regression":
        return {key: f"{value**0.5:.4g}" for key, value in distance.items()} | {"unit": "root mean square difference"}
    return {key: f"{value:.4f}" for key, value in distance.items()} | {"unit": "mean Kullback–Leibler divergence"}
