"""``imm demo``: the main job in miniature."""

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table


def demo(
    out: Annotated[Path, typer.Option(help="Where the figure, the table and the page are written.")] = Path("imm-demo"),
    seed: Annotated[int, typer.Option(help="Of the draws of rows.")] = 0,
    jobs: Annotated[int, typer.Option(help="Processes.")] = os.cpu_count() or 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """An old model on few features, few new rows with all: every way to use it, side by side."""
    from imm.cli.progress import bar
    from imm.experiments import reproduce
    from imm.experiments.demo import STUDY
    from imm.report import write_all, write_page

    settings = STUDY.with_options(seed=seed)
    with bar("demo") as progress:
        result = reproduce(STUDY, settings, out, jobs, progress)
        paths = write_all(result, STUDY, out / STUDY.name)
    page = write_page(out)
    if as_json:
        typer.echo(json.dumps(result, indent=1))
        return
    Console().print(_table(result))
    typer.echo("\n".join(f"Written: {path}" for path in (out / STUDY.name / "result.json", *paths, page)))


def _table(result: dict[str, Any]) -> Table:
    """A line for each method; short enough for a terminal of 80 columns."""
    n, runs = result["settings"]["n"], result["settings"]["runs"]
    table = Table(
        title=f"{result['title']}\n{n} new rows, {runs} draws; mean and 10th–90th percentile",
        caption="better: draws with a log-loss below full-only's\nold-only and stacking need the old model for good",
    )
    columns = list(dict.fromkeys(row["quantity"] for row in result["rows"]))
    for column in ("method", *columns, "better"):
        table.add_column(column, no_wrap=True)
    for method in dict.fromkeys(row["method"] for row in result["rows"]):
        mine = {row["quantity"]: row for row in result["rows"] if row["method"] == method}
        cells = [_interval(row, 1 if quantity.endswith("%") else 3) for quantity, row in mine.items()]
        better = "" if method == "full-only" else f"{mine['log-loss']['beats_full_only']}"
        table.add_row(method, *cells, better, style="bold green" if method == "imm" else None)
    return table


def _interval(row: dict[str, Any], digits: int) -> str:
    return f"{row['mean']:.{digits}f} {row['p10']:.{digits - 1}f}–{row['p90']:.{digits - 1}f}"
