"""Runs in small, and one that a test can kill: ``python -m tests.language.runs FOLDER THREADS`` trains slowly."""

import sys
import time
from pathlib import Path
from typing import Any

import torch

from imm.language import Run
from tests.language import tiny

KILLED = {"method": "imm-sampled", "epochs": 8, "every": 2, "n_contexts": 2}


class Interrupted(BaseException):
    """As a power cut, it is no error that a program would handle."""


def run(folder: Path, seconds: float = 1e9, texts: Any = None, start: Path | None = None, **changes: Any) -> Run:
    """A run that makes checkpoints at the end of an epoch, or after each step with ``seconds=0``."""
    return Run(tiny.settings(**changes), texts or tiny.texts(), folder, checkpoint_seconds=seconds, start=start)


def train_until(made: Run, step: int) -> None:
    """Trains and is interrupted after a step."""

    def stop(now: int, *_: object) -> None:
        if now >= step:
            raise Interrupted

    try:
        made.train(stop)
    except Interrupted:
        return
    raise AssertionError(f"the run ended before step {step}")


def files(folder: Path) -> dict[str, bytes]:
    """What must not depend on interruptions."""
    return {name: (folder / name).read_bytes() for name in ("metrics.jsonl", "result.json", "model/model.safetensors")}


def main() -> None:
    """Trains slowly, a checkpoint after each step, and says when it has begun."""
    torch.set_num_threads(int(sys.argv[2]))

    def slowly(*_: object) -> None:
        sys.stdout.write("step\n")
        sys.stdout.flush()
        time.sleep(0.02)

    run(Path(sys.argv[1]), seconds=0, **KILLED).train(slowly)


if __name__ == "__main__":
    main()
