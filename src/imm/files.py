"""Files and folders that appear whole or not at all."""

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

UNFINISHED = ".unfinished"
"""How the names of files and folders end while they are written."""


def digest(*parts: Any) -> str:
    """A short name for what decides the content of a file or folder; of JSON values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def write_whole(path: Path, content: str | bytes) -> None:
    """Writes beside the place and moves there at the end: a reader never sees half a file."""
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def remove_leftovers(path: Path) -> None:
    """Removes what a killed process left while it was writing ``path``."""
    path = path.resolve()
    name = re.compile(rf"\.{re.escape(path.name)}\.\w+{re.escape(UNFINISHED)}")  # as tempfile made it
    for left in path.parent.iterdir() if path.parent.is_dir() else ():
        if name.fullmatch(left.name):
            shutil.rmtree(left) if left.is_dir() else left.unlink()


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """The same for what is written bit by bit: the file is there when the block ends, not before."""
    with whole_path(path) as beside, beside.open("wb") as file:
        yield file


@contextmanager
def whole_path(path: Path) -> Iterator[Path]:
    """The same for what others write: where to write the file, which is at ``path`` when the block ends.

    What a link points to is replaced, not the link. A pipe or a device is refused: it would be gone.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file")
    if path.exists() and not path.is_file():
        raise FileExistsError(f"{path} is a pipe or a device, which no file can take the place of; name a file")
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    # A folder of its own: safetensors writes under yet another name first, which a killed process leaves too.
    with _beside(path) as folder:
        new = folder / path.name
        with _told(path):
            yield new
        _as_others(new)
        _sync(new)
        new.replace(path)
        _sync_folder(path.parent)


@contextmanager
def whole_folder(path: Path, replaces: str) -> Iterator[Path]:
    """A folder to fill, which is at ``path`` when the block ends, not before.

    Args:
        path: where it goes, or a link to that. A folder that is there is replaced if it is empty or holds a file
            called ``replaces``; any other is refused: it may be somebody's work.
        replaces: the name of a file that tells a folder of this kind.
    """
    check_replaceable(path, replaces)
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    with _beside(path) as beside:
        new, old = beside / "new", beside / "old"
        new.mkdir()
        with _told(path):
            yield new
        for file in new.rglob("*.safetensors"):
            _as_others(file)  # safetensors makes them for their owner only
        for part in new.rglob("*"):
            _sync_folder(part) if part.is_dir() else _sync(part)
        _sync_folder(new)
        if path.exists():
            path.rename(old)
        try:
            new.rename(path)
        except BaseException:
            if old.exists():
                old.rename(path)
            raise
        _sync_folder(path.parent)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A folder for what will be at ``path``, on the same disk; it is gone when the block ends."""
    folder = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=UNFINISHED))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Where nothing can be written, as on a full disk, the error names the file; that of safetensors too."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            raise OSError(f"{path} cannot be written: {error.strerror}") from None
        raise
    except Exception as error:
        from safetensors import SafetensorError  # few need it

        if isinstance(error, SafetensorError):
            raise OSError(f"{path} cannot be written: {first_line(error)}") from None
        raise


def _sync(path: Path) -> None:
    """Waits until a file is on the disk: else its name may be there after a power cut, and what it stands for not."""
    if os.name != "posix":
        return  # elsewhere what is only read cannot be synced
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_folder(path: Path) -> None:
    """The same for a folder's list of names; not every disk can, and not every folder may be read."""
    with suppress(OSError):
        _sync(path)


def _as_others(file: Path) -> None:
    """Lets those read a file who may read what this user makes."""
    mask = os.umask(0)
    os.umask(mask)
    file.chmod(0o666 & ~mask)


def check_replaceable(path: Path, replaces: str) -> None:
    """Refuses what :func:`whole_folder` would, for those who work long before they write."""
    if path.exists() and not (path.is_dir() and ((path / replaces).exists() or not any(path.iterdir()))):
        raise FileExistsError(f"{path} is there already and holds no {replaces}; name another folder")


def check_writable(path: Path) -> None:
    """Refuses a place where nothing can be written, for those who work long before they write."""
    near = next(folder for folder in path.absolute().parents if folder.exists())
    try:
        tempfile.TemporaryFile(dir=near).close()
    except OSError as error:
        raise OSError(f"{path} cannot be written, {near} takes no file: {error.strerror}; name another place") from None


def check_file(path: Path) -> None:
    """Refuses a folder where a file is to be read; what reads safetensors would not name it."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, and a file should be there")


def first_line(error: Exception) -> str:
    """Of what a library says of a file, for a message of one line."""
    return str(error).strip().partition("\n")[0]
