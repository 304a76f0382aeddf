"""What docs/guides/tables.md shows is true: its code runs, and its options are there."""

import inspect
import re
from pathlib import Path

import typer

from imm.cli.fit import fit, predict
from imm.fit.table_file import MISSING

DOCS = (Path(__file__).parents[2] / "docs" / "guides" / "tables.md").read_text()


def test_the_code_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", DOCS, re.S)
    exec(compile(code, "tabular.md", "exec"), {})
    assert "Diagnosis" in capsys.readouterr().out


def test_the_options_are_those_of_the_commands():
    app = typer.Typer()
    app.command()(fit)
    app.command()(predict)
    commands = typer.main.get_command(app).commands
    known = {name for command in commands.values() for option in command.params for name in option.opts}
    named = set(re.findall(r"--[a-z][a-z-]*", DOCS))
    assert named <= known
    assert {f"--{name.replace('_', '-')}" for name in inspect.signature(fit).parameters} - {
        "--new",
        "--as-json",
    } <= named


def test_what_counts_as_missing_is_told():
    listed = DOCS.split("Missing are empty fields and", 1)[1].split(". Codes", 1)[0]
    told = set(re.findall(r"`([^`]+)`", listed))
    assert told == set(MISSING) - {""}
