"""Bars on standard error while something runs, so that standard output stays clean."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from imm.progress import Progress as Report


@contextmanager
def bar(label: str) -> Iterator[Report]:
    """Shows how many pieces are done; Ctrl-C is answered with what became of them."""
    columns = "{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    progress = Progress(*columns, console=Console(stderr=True))
    task = progress.add_task(label, total=None)

    def report(done: int, total: int) -> None:
        progress.start()  # not before: what is wrong with the command is then one line
        progress.update(task, completed=done, total=total)

    try:
        yield report
    except KeyboardInterrupt:
        kept = f"{label}: interrupted; what is finished is kept, and the same command continues"
        progress.console.print(kept, soft_wrap=True)
        raise
    except Exception:
        progress.live.transient = True  # the message stands alone
        progress.live.stop()
        raise
    finally:
        if progress.live.is_started:
            progress.stop()


def counting(label: str) -> AbstractContextManager[Report]:
    """The same where nothing is kept: Ctrl-C is answered with that."""
    return _passing(label, MofNCompleteColumn())


def reading(label: str) -> AbstractContextManager[Report]:
    """How much of a file was read."""
    return _passing(label, DownloadColumn())


@contextmanager
def _passing(label: str, amount: ProgressColumn) -> Iterator[Report]:
    """In a terminal only, and only while it runs."""
    columns = "{task.description}", BarColumn(), amount, TimeElapsedColumn(), TimeRemainingColumn()
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(label, total=None)
        try:
            yield lambda done, total: progress.update(task, completed=done, total=total)
        except KeyboardInterrupt:
            progress.stop()
            typer.echo("interrupted; nothing was written", err=True)
            raise typer.Exit(130) from None


@contextmanager
def training(first: int, total: int, per_epoch: int) -> Iterator[Callable[[int, int, str], None]]:
    """Shows how training goes: a bar in a terminal, else a line now and then. Ctrl-C is answered in one line.

    Args:
        first: how many steps were done before.
        total: of them all, at most.
        per_epoch: how many steps an epoch has.
    """
    console = Console(stderr=True)
    columns = "{task.description}", BarColumn(12), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("training", completed=first, total=total)
        line = _lines(first, per_epoch)

        def report(done: int, total: int, how: str) -> None:
            progress.update(task, completed=done, description=how)
            if not console.is_terminal:
                line(done, total, how)

        try:
            yield report
        except KeyboardInterrupt:
            progress.stop()
            typer.echo("interrupted; the same command continues from the last checkpoint", err=True)
            raise typer.Exit(130) from None


def _lines(first: int, per_epoch: int) -> Callable[[int, int, str], None]:
    """For a log file: a line at the end of an epoch, or a minute after the last, but none within a second."""
    begin = last = time.monotonic()

    def line(done: int, total: int, how: str) -> None:
        nonlocal last
        now = time.monotonic()
        if done < total and now - last < (60 if done % per_epoch else 1):
            return
        last = now
        left = timedelta(seconds=round((now - begin) / (done - first) * (total - done)))
        typer.echo(f"epoch {done / per_epoch:.3g} of {total // per_epoch}, {how}, {left} left", err=True)

    return line
