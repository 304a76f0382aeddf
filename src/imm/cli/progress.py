"""Bars on standard error while something runs, so that standard output stays clean."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from imm.experiments.runner import Progress as Report


@contextmanager
def bar(label: str) -> Iterator[Report]:
    """Shows how many pieces are done; Ctrl-C is answered with what became of them."""
    columns = "{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(label, total=None)
        try:
            yield lambda done, total: progress.update(task, completed=done, total=total)
        except KeyboardInterrupt:
            kept = f"{label}: interrupted; finished pieces are kept, and the same command continues"
            progress.console.print(kept, soft_wrap=True)
            raise


@contextmanager
def reading(label: str) -> Iterator[Report]:
    """Shows how much of a file was read, while it is read and in a terminal only."""
    columns = "{task.description}", BarColumn(), DownloadColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
