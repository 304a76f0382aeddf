"""How a package is had that only some parts of imm need."""

from pathlib import Path


def install(extra: str) -> str:
    """Returns the command that installs an extra: in a clone of the repository it keeps the editable install."""
    in_clone = (Path(__file__).parents[2] / "pyproject.toml").exists()
    return f"pip install -e '.[{extra}]'" if in_clone else f"pip install 'imm[{extra}]'"
