"""What is written while a run goes on: one JSON record a line, and TensorBoard's files."""

import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from imm.extras import install


class Metrics:
    """Appends records to ``metrics.jsonl``; with ``tensorboard`` their numbers go there too.

    Args:
        folder: where the files are.
        length: how many bytes of the file are kept: what an interrupted run wrote after its last checkpoint is cut.
        tensorboard: whether to write TensorBoard's files.
        step: the last that is kept: TensorBoard hides what was drawn after it.
    """

    def __init__(self, folder: Path, length: int = 0, tensorboard: bool = False, step: int = 0) -> None:
        path = folder / "metrics.jsonl"
        size = path.stat().st_size if path.exists() else 0
        if size < length:
            raise ValueError(
                f"{path} has {size} bytes, and the checkpoint is of {length}: something was taken out of it;"
                f" put it back, or remove {folder} to train again"
            )
        self._board = _board(folder, step) if tensorboard else None
        self._path, self._length = path, length

    @cached_property
    def _file(self) -> BinaryIO:
        """Opened when there is something to write: a finished run may be where nothing can be written."""
        file = self._path.open("ab")
        file.truncate(self._length)
        file.seek(self._length)  # or the place is still that of the old end
        return file

    def write(self, step: int, record: dict[str, Any]) -> None:
        """One record; its numbers are drawn over ``step``."""
        self._file.write(json.dumps({"step": step, **record}).encode() + b"\n")
        if self._board is not None:
            for name, value in record.items():
                self._board.add_scalar(name, value, step)

    def length(self) -> int:
        """How many bytes are surely in the file now."""
        self._file.flush()
        os.fsync(self._file.fileno())
        if self._board is not None:
            self._board.flush()
        return self._file.tell()

    def close(self) -> None:
        """Writes what is held back."""
        if "_file" in vars(self):
            self._file.close()
        if self._board is not None:
            self._board.close()


def check_tensorboard() -> None:
    """Refuses to go on without TensorBoard."""
    try:
        import torch.utils.tensorboard  # noqa: F401
    except ImportError:
        raise ValueError(f"TensorBoard's files need the package tensorboard: {install('tensorboard')}") from None


def _board(folder: Path, step: int) -> Any:
    check_tensorboard()
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(folder, purge_step=step + 1 if step else None)
