"""What language models with IMM cost: ``python -m benchmarks.language``, or with ``--json`` a flat object.

* ``step``: a training step of a two-layer LSTM, 20 x 35 tokens, 10,000 words, over the same step without IMM. Methods
  take turns in rounds of j steps; a figure is the median over rounds. Sampled draws ten
  contexts for each different word of a fifth batch.
  Serialized has a refresh a step on top: one pass over the text an epoch, which is one window a step.
* ``peak``: the highest memory of a process that makes some steps, in MB, and what it has more than one without IMM.
* the figures of :mod:`benchmarks.ngram`.

Without the Penn Treebank (IMM_DATA) a drawn text stands in.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from benchmarks import large_text, ngram, printing
from benchmarks.memory import resident
from benchmarks.speed import seconds
from imm.experiments.data import data_file
from imm.language import Run, Settings, Texts
from imm.language.methods.serialized import Serialized

BOUNDS = {"step_imm_streaming": 1.25, "step_imm_serialized": 2.0, "step_imm_sampled": 5.0}
"""Figures that must not be larger than this."""

METHODS = ("none", "kn-noising", "reverse-kd", "imm-streaming", "imm-serialized", "imm-sampled")
EVERY = 5

Progress = Callable[[str], None]


def texts(say: Progress) -> Texts:
    try:
        return Texts.read(data_file("ptb/ptb.train.txt"), data_file("ptb/ptb.valid.txt"))
    except FileNotFoundError as missing:
        say(f"{missing}; a drawn text stands in")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text"
        large_text.write_text(path, 1)
        return Texts.read(path, path, min_count=8)


def start(method: str, width: int, text: Texts, folder: str) -> Run:
    return Run(Settings(method=method, width=width, lam=1.0, every=EVERY), text, Path(folder) / method)


def steps(width: int, rounds: int, progress: Progress, say: Progress) -> dict[str, float]:
    text = texts(say)
    with tempfile.TemporaryDirectory() as folder:
        progress("a refresh")
        part = text.first(0.02)
        serialized = start("imm-serialized", width, part, folder + "/part")
        method, model = serialized.method, serialized.model
        assert isinstance(method, Serialized)
        refresh = seconds(lambda: method.refresh(model, 0)) / len(serialized.windows)
        runs = {}
        for name in METHODS:
            run = runs[name] = start(name, width, text, folder)
            if isinstance(run.method, Serialized):
                run.method.induced.fill_(1 / len(text.vocabulary))
                run.method.steps += 1  # has had its refresh: it comes as a share of each step
            run.step()
        took: dict[str, list[float]] = {name: [] for name in METHODS}
        for number in range(rounds):
            for name, run in runs.items():
                progress(f"steps: round {number + 1} of {rounds}, {name}")
                took[name].append(seconds(lambda run=run: [run.step() for _ in range(EVERY)]) / EVERY)
    took["imm-serialized"] = [each + refresh for each in took["imm-serialized"]]
    figures = {"step_none_s": statistics.median(took["none"]), "step_refresh_share_s": refresh}
    for name in METHODS[1:]:
        ratios = [each / plain for each, plain in zip(took[name], took["none"], strict=True)]
        figures[f"step_{name.replace('-', '_')}"] = statistics.median(ratios)
    return figures


def peak(method: str, width: int) -> float:
    """MB at most, in this process."""
    text = texts(lambda _: None)
    if method == "imm-serialized":
        text = text.first(0.02)  # a refresh of the whole would take minutes; what it holds does not grow with the text
    with tempfile.TemporaryDirectory() as folder:
        run = start(method, width, text, folder)
        for _ in range(2 * EVERY):
            run.step()
    return resident("VmHWM") / 1e6


def peaks(width: int, progress: Progress) -> dict[str, float]:
    found = {}
    for method in METHODS:
        progress(f"memory: {method}")
        command = [sys.executable, "-m", "benchmarks.language", "--width", str(width), "--peak", method]
        found[method] = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    figures = {f"peak_{method.replace('-', '_')}_mb": megabytes for method, megabytes in found.items()}
    for method in METHODS[1:]:
        figures[f"peak_{method.replace('-', '_')}_more_mb"] = found[method] - found["none"]
    return figures


def main() -> None:
    parser = printing.options(__doc__)
    parser.add_argument("--width", type=int, default=650)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--millions", type=int, default=50, help="tokens of the large text; 0 leaves it out")
    parser.add_argument("--peak", choices=METHODS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.peak:
        print(peak(given.peak, given.width))
        return
    console = Console(stderr=True)
    with console.status("starting") as status:
        figures = {"width": float(given.width)}
        figures |= steps(given.width, given.rounds, status.update, console.print)
        figures |= peaks(given.width, status.update)
        figures |= ngram.measure(status.update, console.print, given.millions)
    printing.show("language models", figures, given.json, BOUNDS, ngram.BOUNDS)


if __name__ == "__main__":
    main()
