"""Training runs that continue after an interruption, and are done once."""

import json
import logging
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import PrinterCallback, TrainerCallback
from transformers.utils import logging as theirs

from imm.files import digest, write_whole
from imm.progress import Progress


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


__all__ = ["Steady", "common", "finish", "finished", "quietly", "train"]


def finished(folder: Path) -> dict[str, Any] | None:
    """The figures of a run that is over; None if it is not."""
    try:
        found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    except (FileNotFoundError, ValueError):
        return None
    return found


def finish(folder: Path, trainer: Any, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Writes a run's figures and what it logged; its checkpoints are not needed any more."""
    log = [{k: v for k, v in record.items() if isinstance(v, int | float)} for record in trainer.state.log_history]
    result = {**figures, "log": log}
    write_whole(folder / "result.json", json.dumps(result, indent=1) + "\n")
    for checkpoint in folder.glob("checkpoint-*"):
        shutil.rmtree(checkpoint)
    return result


def common(folder: Path) -> dict[str, Any]:
    """Arguments of every run here: quiet, one checkpoint."""
    quiet = {"report_to": [], "disable_tqdm": True, "save_total_limit": 1}
    return {"output_dir": str(folder), "dataloader_pin_memory": torch.cuda.is_available(), **quiet}


class Steady:
    """A collator whose random masks depend on the batch's rows and a seed alone.

    The trainer draws a batch ahead, so that with the global generator a run that continues would have other masks; and
    arms that draw more or less besides would have others than each other.

    Args:
        collate: the collator.
        seed: of the run.
    """

    def __init__(self, collate: Callable[[list[dict[str, Any]]], Any], seed: int) -> None:
        self._collate, self._seed = collate, seed

    def __call__(self, features: list[dict[str, Any]]) -> Any:
        """The batch."""
        rows = [list(map(int, row["input_ids"])) for row in features]
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(int(digest(self._seed, rows)[:15], 16))
            return self._collate(features)
