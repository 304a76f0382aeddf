"""How every benchmark takes its options and prints its figures."""

import argparse
import json
from collections.abc import Mapping

from rich.console import Console
from rich.table import Table


def options(description: str | None) -> argparse.ArgumentParser:
    """A parser with ``--json``, to which a benchmark adds its own options."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print a flat object, name to figure")
    return parser


def show(
    title: str,
    figures: Mapping[str, float],
    as_json: bool,
    at_most: Mapping[str, float] | None = None,
    at_least: Mapping[str, float] | None = None,
) -> None:
    """Prints a flat object, or a table in which a figure with a bound is green or red."""
    if as_json:
        print(json.dumps(dict(figures), indent=2))
        return
    out = Table("measurement", "figure", "bound", title=f"imm: {title}")
    for name, figure in figures.items():
        most, least = (at_most or {}).get(name), (at_least or {}).get(name)
        bound = f"at most {most:g}" if most is not None else f"at least {least:g}" if least is not None else ""
        kept = (most is None or figure <= most) and (least is None or figure >= least)
        out.add_row(name.replace("_", " "), f"{figure:.4g}", bound, style=("green" if kept else "red") if bound else "")
    Console().print(out)
