"""The command's root: version, and errors in one line."""

import sys
from typing import Annotated, Any

import typer

from imm import __version__
from imm.cli import demo, finetune, fit, lm, ngram, report, reproduce

app = typer.Typer(
    name="imm",
    help="Induced Model Matching: a restricted model helps train a full-featured one.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command(name="demo")(demo.demo)
app.command(name="fit")(fit.fit)
app.command(name="predict")(fit.predict)
app.command(name="reproduce")(reproduce.reproduce)
app.command(name="report")(report.report)
app.add_typer(ngram.app, name="ngram")
app.add_typer(lm.app, name="lm")
app.command(name="finetune")(finetune.finetune)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"imm {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    pass


_UsageError: Any = typer.BadParameter.__base__
"""An option or argument that is not there or not right; typer has no public name for it."""


def main(app: typer.Typer = app, name: str = "imm") -> None:
    """Runs a command; what a person got wrong is one line on standard error, and exit code 2."""
    try:
        sys.exit(app(prog_name=name, standalone_mode=False))
    except _UsageError as error:
        if message := " ".join(error.format_message().split()):  # empty if the help was printed instead
            command = error.ctx.command_path if error.ctx else name
            typer.echo(f"imm: {message.rstrip('.')}; see {command} --help", err=True)
        sys.exit(2)
    except (ValueError, OSError, ImportError) as error:
        typer.echo(f"imm: {error}", err=True)
        sys.exit(2)
    except MemoryError as error:
        typer.echo(f"imm: there is not enough memory{f': {error}' if str(error) else ''}", err=True)
        sys.exit(2)
    except RuntimeError as error:  # torch has no class of its own for this
        if "can't allocate memory" not in str(error):
            raise
        typer.echo(f"imm: there is not enough memory: {str(error).partition('memory: ')[2]}", err=True)
        sys.exit(2)
