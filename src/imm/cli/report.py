"""``imm report``: one HTML page."""

from pathlib import Path
from typing import Annotated

import typer


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where `imm reproduce` wrote its results.")],
) -> None:
    """Gather what was reproduced into one self-contained HTML page."""
    from imm.report import write_page

    typer.echo(f"Written to {write_page(folder)}")
