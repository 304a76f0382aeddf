"""``imm demo``: the main job in miniature."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="Where the figure, the table and the page are written.")] = Path("imm-demo"),
    seed: Annotated[int, typer.Option(min=0, help="Of the draws of rows.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = os.cpu_count() or 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """An old model on few features, few new rows with all: every way to use it, side by side."""
    from rich.console import Console
    from rich.table import Table

    from imm.cli.progress import bar
    from imm.experiments import reproduce
    from imm.experiments.demo import STUDY
    from imm.report import records, write_all, write_page

    settings = STUDY.with_options(seed=seed)
    with bar("demo") as progress:
        result = reproduce(STUDY, settings, out, jobs, progress)
        paths = write_all(result, STUDY.figure, out / STUDY.name)
    page = write_page(out)
    if as_json:
        typer.echo(json.dumps(result, indent=1))
        return
    rows = records(result)
    table = Table(
        title=f"{STUDY.title}\n{settings['n']} new rows; mean [10th, 90th percentile] of {settings['runs']} draws"
    )
    for column in rows[0]:
        table.add_column(column)
    for before, row in zip([None, *rows], rows, strict=False):
        if before and before["quantity"] != row["quantity"]:
            table.add_section()
        table.add_row(*row.values(), style="bold green" if row["method"] == "imm" else None)
    Console().print(table)
    typer.echo("\n".join(f"Written: {path}" for path in (*paths, page)))
