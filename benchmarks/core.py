"""What the core costs: ``python -m benchmarks.core``, or with ``--json`` a flat object, name to figure.

Memory of the sampled gradient against k, time of a training step with IMM over one without, and the multiset's
build and draw. How each is measured stands in :mod:`benchmarks.memory` and :mod:`benchmarks.speed`. Sampled is timed
on a tenth of the positions and scaled; its extended contexts are histories of 35 tokens.
"""

from rich.console import Console

from benchmarks import memory, printing, speed

BOUNDS = {
    "memory_sampled_max_over_min": 1.15,
    "step_streaming_over_plain": 1.35,
}
"""Figures that must not be larger than this."""


def main() -> None:
    as_json = printing.options(__doc__).parse_args().json
    with Console(stderr=True).status("starting") as status:
        figures = speed.steps(status.update) | speed.multiset(status.update) | memory.measure(status.update)
    printing.show("the core", figures, as_json, BOUNDS)


if __name__ == "__main__":
    main()
