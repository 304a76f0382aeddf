"""Training runs that continue where they were interrupted, and say nothing on standard output."""

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transformers import PrinterCallback, TrainerCallback
from transformers.utils import logging as theirs

Progress = Callable[[int, int], None]
"""Is told how many steps of how many are done."""


class _Telling(TrainerCallback):
    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        self._progress(state.global_step, state.max_steps)


def train(trainer: Any, folder: Path, progress: Progress | None = None) -> None:
    """Trains, from the last checkpoint that is whole if there is one."""
    trainer.remove_callback(PrinterCallback)  # standard output is the command's
    if progress is not None:
        trainer.add_callback(_Telling(progress))
    whole = []
    for checkpoint in folder.glob("checkpoint-*"):
        if (checkpoint / "trainer_state.json").exists():  # the last file that is written
            whole.append(checkpoint)
        else:
            shutil.rmtree(checkpoint)
    last = max(whole, key=lambda each: int(each.name.partition("-")[2]), default=None)
    trainer.train(resume_from_checkpoint=None if last is None else str(last))


@contextmanager
def quietly() -> Iterator[None]:
    """Without the bars and reports of transformers, which say that a head is new: it is meant to be."""
    level, bars = theirs.get_verbosity(), theirs.is_progress_bar_enabled()
    theirs.set_verbosity(logging.ERROR)
    theirs.disable_progress_bar()
    try:
        yield
    finally:
        theirs.set_verbosity(level)
        if bars:
            theirs.enable_progress_bar()
