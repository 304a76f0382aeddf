"""What the core costs: ``python -m benchmarks.core``, or with ``--json`` a flat object, name to figure.

Memory of the sampled gradient against k, time of a training step with IMM over one without, and the multiset's
build and draw. How each is measured stands in :mod:`benchmarks.memory` and :mod:`benchmarks.speed`. Sampled is timed
on a tenth of the positions and scaled; its extended contexts are histories of 35 tokens.
"""

import argparse
import json

from rich.console import Console
from rich.table import Table

from benchmarks import memory, speed

BOUNDS = {
    "memory_sampled_max_over_min": 1.15,
    "step_streaming_over_plain": 1.35,
}
"""Figures that must not be larger than this."""


def table(figures: dict[str, float]) -> Table:
    out = Table("measurement", "figure", "at most", title="imm: the core")
    for name, figure in figures.items():
        bound = BOUNDS.get(name)
        style = None if bound is None else "green" if figure <= bound else "red"
        out.add_row(name.replace("_", " "), f"{figure:.3g}", "" if bound is None else f"{bound}", style=style)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print a flat object, name to figure")
    as_json = parser.parse_args().json
    with Console(stderr=True).status("starting") as status:
        figures = speed.steps(status.update) | speed.multiset(status.update) | memory.measure(status.update)
    if as_json:
        print(json.dumps(figures, indent=2))
    else:
        Console().print(table(figures))


if __name__ == "__main__":
    main()
