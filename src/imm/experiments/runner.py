"""Runs a study piece by piece, so that an interrupted one continues where it stopped."""

import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from imm.experiments.study import Row, Settings, Study
from imm.files import digest, write_whole
from imm.progress import Progress


def reproduce(
    study: Study, settings: Settings, out: Path, jobs: int, progress: Progress, partial: bool = False
) -> dict[str, Any]:
    """Runs what is missing and writes ``out/NAME/result.json``; returns its content.

    Finished pieces stay in ``out/NAME/pieces`` until the result is whole; a piece made under other settings is
    not used, nor is a damaged one. A whole result that is already there is kept as it is: under the same settings it is
    the answer, under others an error.

    With ``partial`` nothing is run: the result is that of the finished pieces, and ``unfinished`` says how many are
    missing.
    """
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}")
    folder = out / study.name
    target = folder / "result.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise NotADirectoryError(
            f"{folder} cannot be a folder: there is a file in the way; name another --out"
        ) from None
    with tempfile.TemporaryFile(dir=folder):
        pass  # a folder that cannot be written to is an error now, not after the work
    wanted = json.loads(json.dumps(dict(settings)))
    before = _read(target, "settings", "rows")
    if before is not None and not before.get("unfinished"):
        if before["settings"] == wanted:
            progress(1, 1)
            return before
        raise ValueError(f"{target} was made with other settings; remove it, or name another folder with --out")
    pieces = list(study.pieces(settings))
    decides = {key: value for key, value in wanted.items() if key not in study.lists}
    finished = out / (study.pieces_of or study.name) / "pieces"
    paths = [finished / f"{digest(decides, piece)}.json" for piece in pieces]
    parts = {i: part for i, path in enumerate(paths) if (part := _read(path, "rows", "seconds"))}
    progress(len(parts), len(pieces))
    # Studies name their pieces from small to large; begun with the largest, no processor is idle at the end.
    missing = [i for i in reversed(range(len(pieces))) if i not in parts]
    # Runs of other data are others, whatever their settings.
    runs = out / (f"runs-{digest(wanted['data'])}" if "data" in wanted else "runs")
    kept = runs if study.continues else None
    work = [_Work(study.run, settings, pieces[i], i, kept) for i in missing]
    if partial:
        if not parts:
            raise ValueError(f"{study.name} has no finished piece in {folder} yet")
        work = []
    for i, part in _compute(work, jobs):
        parts[i] = part
        write_whole(paths[i], json.dumps(part))
        progress(len(parts), len(pieces))

    rows = [row for i in sorted(parts) for row in parts[i]["rows"]]
    if study.summarise is not None:
        rows = list(study.summarise(rows))
    result = {
        "name": study.name,
        "title": study.title,
        "settings": wanted,
        "rows": rows,
        "paper": None if study.paper is None else list(study.paper),
        "seconds": round(sum(part["seconds"] for part in parts.values()), 1),
        "threads": sorted({part["threads"] for part in parts.values() if "threads" in part}),
        "commits": sorted({part["commit"] for part in parts.values() if part.get("commit")}),
        **({"unfinished": len(pieces) - len(parts)} if len(parts) < len(pieces) else {}),
        "versions": {name: version(name) for name in ("imm", "torch", "numpy", "scipy", "scikit-learn")},
    }
    write_whole(target, _text(result))
    if "unfinished" in result or study.pieces_of is not None:
        return result
    for path in paths:
        path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # pieces of other settings may wait there to be continued
        finished.rmdir()
    return result


def _text(result: dict[str, Any]) -> str:
    """Returns a result as JSON, each of its rows on a line of its own."""
    lists = {key: value for key, value in result.items() if key in ("rows", "paper") and value}
    text = json.dumps({key: [] if key in lists else value for key, value in result.items()}, indent=1)
    for key, value in lists.items():
        rows = ",\n  ".join(map(json.dumps, value))
        text = text.replace(f'\n "{key}": []', f'\n "{key}": [\n  {rows}\n ]', 1)
    return text + "\n"


def _read(path: Path, *keys: str) -> dict[str, Any] | None:
    """What was written there, or None if nothing was, or it was damaged since."""
    try:
        content = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return None
    return content if isinstance(content, dict) and content.keys() >= set(keys) else None


def _compute(work: Sequence["_Work"], jobs: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields the number and the record of each piece as it becomes ready."""
    if jobs == 1 or len(work) == 1:
        yield from map(_Work.do, work)
    elif work:
        # spawn: a forked torch would inherit the parent's thread pool and can hang.
        threads = max(1, (os.cpu_count() or 1) // jobs)
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(min(jobs, len(work)), context, _use_threads, (threads,))
        try:
            with _ignoring_interrupts():  # processes are started as work is given out
                given = [pool.submit(_Work.do, each) for each in work]
            for done in as_completed(given):
                yield done.result()
        except BrokenProcessPool:
            raise ChildProcessError(
                "a process was killed, perhaps because memory ran out; the same command continues, with fewer --jobs"
            ) from None
        finally:
            for process in list(pool._processes.values()):  # a piece that nobody waits for may take hours
                process.kill()
            pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """What is started inside never hears Ctrl-C: it is the parent's to answer."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals reach the main thread only
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass(frozen=True)
class _Work:
    """One piece, ready to be sent to another process."""

    run: Callable[..., Sequence[Row]]
    settings: Settings
    piece: Row
    number: int
    kept: Path | None

    def do(self) -> tuple[int, dict[str, Any]]:
        import torch

        start = time.perf_counter()
        kept = () if self.kept is None else (self.kept,)
        rows = list(self.run(self.settings, self.piece, *kept))
        record = {"rows": rows, "seconds": time.perf_counter() - start, "threads": torch.get_num_threads()}
        return self.number, {**record, "commit": _commit()}


@lru_cache(maxsize=1)
def _commit() -> str | None:
    """Returns the commit of this program, with a plus where files were changed; None outside a checkout."""
    here = Path(__file__).parent
    try:
        asked = [["rev-parse", "--short=9", "HEAD"], ["status", "--porcelain", "--", "."]]
        commit, changed = (
            subprocess.run(["git", "-C", here, *each], capture_output=True, text=True, check=True).stdout.strip()
            for each in asked
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit + ("+" if changed else "")


def _use_threads(threads: int) -> None:
    import torch

    torch.set_num_threads(threads)
