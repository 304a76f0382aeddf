"""Text files in blocks of whole words; what is no text is refused with file and place."""

from collections.abc import Iterator
from pathlib import Path

from imm.progress import Progress

BLOCK = 1 << 22
"""Bytes read at once: a block's words are Python objects for a moment, about fifteen times as large."""


def blocks(path: Path, progress: Progress | None = None, size: int = BLOCK) -> Iterator[bytes]:
    """The bytes of a UTF-8 file, cut between words; ends with a line end, whether the file does or not."""
    check_file(path)
    total = path.stat().st_size
    done = 0
    rest = b""
    with path.open("rb") as file:
        while read := file.read(size):
            block = rest + read
            if done == 0:
                block = block.removeprefix(b"\xef\xbb\xbf")
            cut = max(block.rfind(b" "), block.rfind(b"\n")) + 1
            rest = block[cut:]
            done += len(read)
            if cut:
                _check(block[:cut], path, done - len(block))
                yield block[:cut]
            if progress is not None:
                progress(done, max(total, done))
    if done == 0:
        raise ValueError(f"{path} is empty")
    if rest:
        _check(rest, path, done - len(rest))
        yield rest + b"\n"
    elif not block.endswith(b"\n"):
        yield b"\n"


def check_file(path: Path) -> None:
    """Refuses a folder, and what is not there."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a text file")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")


def check_read_again(path: Path) -> None:
    """Refuses a pipe too, for those who read a text more than once."""
    check_file(path)
    if not path.is_file():
        raise ValueError(f"{path} is a pipe, and this text is read more than once: give a file")


def words_in(path: Path) -> list[str]:
    """All words of a file, as separated by white space."""
    return [word.decode() for block in blocks(path) for word in block.split()]


def _check(block: bytes, path: Path, begin: int) -> None:
    if b"\0" in block:
        raise ValueError(
            f"{path}: byte {begin + block.index(0)} is zero, so this is no UTF-8 text, perhaps UTF-16; convert it first"
        )
    try:
        block.decode()
    except UnicodeDecodeError as error:
        wrong = block[error.start]
        raise ValueError(
            f"{path}: byte {begin + error.start} (0x{wrong:02x}) is not UTF-8; convert the file to UTF-8 first"
        ) from None
