"""Prints, as constraints for pip, the lowest version of every package that ``pyproject.toml`` admits.

``python tools/lowest.py > lowest.txt``; see ``make test-lowest``. torch is the exception: it is the pinned one, because
another version brings gigabytes of libraries for graphics cards.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
PINNED = "torch"


def lowest(project: dict[str, object], pinned: str) -> Iterator[str]:
    """Yields ``name==version`` for each requirement of a project and its extras that has a lower bound.

    Args:
        project: the table ``[project]`` of ``pyproject.toml``.
        pinned: the line of ``constraints.txt`` that takes the place of torch's lower bound.
    """
    extras = project.get("optional-dependencies", {})
    for line in {*project["dependencies"], *(each for extra in extras.values() for each in extra)}:
        requirement = Requirement(line)
        for bound in requirement.specifier:
            if bound.operator == ">=":
                yield pinned if requirement.name == PINNED else f"{requirement.name}=={bound.version}"


def main() -> None:
    """Prints the constraints in order."""
    (pinned,) = [line for line in (ROOT / "constraints.txt").read_text().split() if line.startswith(f"{PINNED}==")]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    print("\n".join(sorted(set(lowest(project, pinned)))))


if __name__ == "__main__":
    main()
