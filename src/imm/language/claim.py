"""A run's folder belongs to one run: the same settings and texts continue it, others are refused."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from imm.files import check_writable, remove_leftovers, write_whole


@contextmanager
def claimed(folder: Path, settings: Mapping[str, Any], texts: str) -> Iterator[None]:
    """A run is made ready inside: where that fails, a folder that was not its own before is given back."""
    path = folder / "settings.json"
    new = not path.exists()
    claim(folder, settings, texts)
    try:
        yield
    except BaseException:
        if new:
            path.unlink(missing_ok=True)
            with suppress(OSError):  # something else is in it
                folder.rmdir()
        raise


def claim(folder: Path, settings: Mapping[str, Any], texts: str) -> None:
    """Writes ``settings.json``, or finds it there with the same content.

    Args:
        folder: the run's.
        settings: JSON values.
        texts: what tells them from others.
    """
    path = folder / "settings.json"
    mine = {"settings": settings, "texts": texts}
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file; name a folder for the run")
    if path.exists():
        differences = _differences(_read(path), mine)
        if differences:
            raise ValueError(
                f"{folder} holds a run with other settings or texts ({differences}); give the same ones to continue it,"
                f" or name another folder"
            )
        if not (folder / "result.json").exists():  # there is more to do, and to write
            check_writable(folder / "checkpoint.safetensors")
        for name in ("checkpoint.safetensors", "model", "result.json"):
            remove_leftovers(folder / name)
        return
    remove_leftovers(path)
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is there already and holds no run; name another folder")
    try:
        write_whole(path, json.dumps(mine, indent=1) + "\n")
    except OSError as error:
        raise type(error)(f"{folder} cannot be written to: {error.strerror}") from None


def _read(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text())
        if not isinstance(found, dict):
            raise ValueError("no record")
        return {"settings": dict(found["settings"]), "texts": found["texts"]}
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged ({error}); name another folder, or remove this one") from None


def _differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """In words; empty if there are none."""
    before, now = there["settings"], here["settings"]
    found = [
        f"{name} is {before.get(name)!r} there and {now.get(name)!r} here"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]
    if there["texts"] != here["texts"]:
        found.append("the texts differ")
    return ", ".join(found)
