"""``python -m studies``: as ``imm reproduce``, for our own studies."""

import typer

from imm.cli.app import main
from imm.cli.reproduce import command
from studies import STUDIES

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(command(STUDIES, "Run one of our own studies."))

if __name__ == "__main__":
    main(app, "python -m studies")
