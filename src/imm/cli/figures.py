"""Figures on standard output: for a person, or as JSON."""

import json
import math
from typing import Any

import typer


def show(figures: dict[str, Any], as_json: bool) -> None:
    """One figure a line, or a flat object; JSON has no infinity, which becomes null."""
    if as_json:
        plain = {
            name: None if isinstance(figure, float) and math.isinf(figure) else figure
            for name, figure in figures.items()
        }
        typer.echo(json.dumps(plain, indent=1))
        return
    width = max(map(len, figures))
    for name, figure in figures.items():
        label = f"{name.replace('_', ' '):{width}}"
        typer.echo(f"{label}  {figure:,.4f}" if isinstance(figure, float) else f"{label}  {figure:,}")
