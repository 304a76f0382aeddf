"""``imm fit`` and ``imm predict``: the user's own tables."""

import csv
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from imm.cli.output import json_text

if TYPE_CHECKING:
    from imm.fit.pipeline import Outcome

RECORD, PAGE = "fit.json", "report.html"


def fit(
    new: Annotated[Path, typer.Argument(metavar="NEW", help="New rows with all columns: CSV, gzipped CSV or Parquet.")],
    label: Annotated[str, typer.Option(help="The column to predict.")],
    old_data: Annotated[
        Path | None,
        typer.Option(help="Old rows with fewer columns, and the label. An old model is fitted on the shared columns."),
    ] = None,
    old_model: Annotated[Path | None, typer.Option(help="The old model itself, an ONNX file.")] = None,
    old_features: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="The columns the old model sees, in its order.")
    ] = None,
    old_score: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="A column with what the old model said: a probability, or for regression a value."
        ),
    ] = None,
    positive: Annotated[
        str | None, typer.Option(metavar="CLASS", help="The class whose probability --old-score is.")
    ] = None,
    model: Annotated[str, typer.Option(help="The new model: linear, mlp, lightgbm or xgboost.")] = "linear",
    task: Annotated[
        str | None, typer.Option(help="classification or regression, where the label leaves it open.")
    ] = None,
    keep_old: Annotated[
        bool, typer.Option("--keep-old", help="The new model may ask the old one at every prediction.")
    ] = False,
    rivals: Annotated[bool, typer.Option("--rivals", help="Compare with other ways to use an old model too.")] = False,
    out: Annotated[Path, typer.Option(help="The folder for the model and the page.")] = Path("imm-fit"),
    seed: Annotated[int, typer.Option(help="Of the splits.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Train a model on new rows with the help of an old model that sees fewer columns, and say whether it helped.

    Categories, missing values and dates are handled. Nothing is written until all is done.
    """
    from imm.cli.progress import counting
    from imm.files import check_replaceable, check_writable
    from imm.fit.pipeline import fit
    from imm.fit.request import Request

    request = Request(
        new=new,
        label=label,
        old_data=old_data,
        old_model=old_model,
        old_features=_names(old_features or ""),
        old_score=old_score,
        positive=positive,
        task=task,
        model=model,
        keep_old=keep_old,
        rivals=rivals,
        seed=seed,
    )
    check_replaceable(out, RECORD)
    check_writable(out)
    with counting("comparing") as progress:
        outcome = fit(request, progress)
        _write(outcome, out)
    if as_json:
        typer.echo(json_text(outcome.record))
        return
    console = Console()
    console.print(_table(outcome.record))
    console.print(outcome.record["verdict"], style="bold", soft_wrap=True, highlight=False)
    for note in outcome.record["notes"]:
        typer.echo(f"Note: {note}")
    typer.echo(f"Page:    {out / PAGE}\nPredict: imm predict {quote(str(out))} more.csv --out predictions.csv")


def predict(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `imm fit` wrote.")],
    rows: Annotated[Path, typer.Argument(metavar="ROWS", help="Rows: CSV, gzipped CSV or Parquet.")],
    out: Annotated[
        Path | None, typer.Option(help="A file, CSV unless it ends in .gz or .parquet; if not given, standard output.")
    ] = None,
) -> None:
    """Predict for every row of a table, in its order."""
    from imm.files import check_writable, write_whole
    from imm.fit.bundle import Saved
    from imm.fit.table_file import file_content, read_table

    if out is not None:
        if out.is_dir():
            raise IsADirectoryError(f"--out {out} is a folder; name a file for the predictions")
        if out.exists() and rows.exists() and out.samefile(rows):
            raise FileExistsError(f"--out {out} is the table itself and would be lost; name another file")
        check_writable(out)
    model = Saved.load(folder)
    frame = read_table(rows)
    predicted = model.predict(frame)
    for note in model.notes(frame):
        typer.echo(note, err=True)
    if out is None:
        typer.echo(predicted.write_csv(), nl=False)
    else:
        write_whole(out, file_content(predicted, out))
        typer.echo(f"{len(frame):,} predictions: {out}", err=True)


def _names(listed: str) -> tuple[str, ...]:
    """The columns of an option, as a line of a CSV file: a name with a comma stands in quotation marks."""
    return tuple(name.strip() for line in csv.reader([listed], skipinitialspace=True) for name in line if name.strip())


def _write(outcome: "Outcome", out: Path) -> None:
    from imm.files import whole_folder
    from imm.report.fit_page import write_fit_page

    with whole_folder(out, replaces=RECORD) as folder:
        outcome.saved.save(folder)
        write_fit_page(outcome.record, folder / PAGE, out)
        (folder / RECORD).write_text(json_text(outcome.record) + "\n", encoding="utf-8")


def _table(record: dict[str, Any]) -> Table:
    """A line for each method."""
    from imm.fit.verdict import NAMES, gain_shown, shown

    metrics = list(dict.fromkeys(row["metric"] for row in record["rows"]))
    splits = record["folds"] * record["repeats"]
    table = Table(title=f"{record['n']:,} rows, means over {splits} splits")
    table.add_column("method")
    for metric in (*metrics, f"gain in {metrics[0]}"):
        table.add_column(metric, justify="right")
    for method in dict.fromkeys(row["method"] for row in record["rows"]):
        mine = {row["metric"]: row for row in record["rows"] if row["method"] == method}
        first = mine[metrics[0]]
        gain = " ± ".join(gain_shown(first)) if "gain" in first else ""
        style = "bold green" if method == record["method"] else None
        table.add_row(NAMES[method], *(shown(mine[metric]["mean"]) for metric in metrics), gain, style=style)
    return table
