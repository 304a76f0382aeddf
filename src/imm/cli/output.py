"""Figures on standard output: for a person, or as JSON."""

import json
import math
from typing import Any

import typer


def show(figures: dict[str, Any], as_json: bool) -> None:
    """One figure a line, or a flat object."""
    if as_json:
        typer.echo(json_text(figures))
        return
    width = max(map(len, figures))
    for name, figure in figures.items():
        label = f"{name.replace('_', ' '):{width}}"
        typer.echo(f"{label}  {figure:,.4f}" if isinstance(figure, float) else f"{label}  {figure:,}")


def json_text(value: Any) -> str:
    """Indented; JSON has no infinity and no "not a number", which become null."""
    return json.dumps(_finite(value), indent=1, ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
