"""One self-contained HTML page from a folder of results."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, select_autoescape
from markupsafe import Markup

from imm.experiments import STUDIES, write_whole
from imm.report.tables import departure, records


def write_page(folder: Path) -> Path:
    """Gathers every ``result.json`` below a folder into ``index.html``; figures and tables are inside it."""
    found = sorted(
        path
        for path in folder.glob("**/result.json")
        if "runs" not in path.relative_to(folder).parts  # of training
    )
    if not found:
        raise ValueError(f"there is no result.json below {folder}: run `imm reproduce NAME --out {folder}` first")
    sections = []
    for path in found:
        try:
            sections.append(_section(path))
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is not a result of `imm reproduce`: {error!r}") from None
    target = folder / "index.html"
    write_whole(target, environment().get_template("page.html").render(sections=sections))
    return target


def _section(path: Path) -> dict[str, Any]:
    """What the page shows of one result."""
    result = json.loads(path.read_text())
    table, drawing = records(result), path.parent / "figure.png"
    study = next((study for study in STUDIES if study.name == result["name"]), None)  # the demo is none of them
    return {
        "name": result["name"],
        "title": result["title"],
        "departure": departure(study.changed(result["settings"])) if study else "",
        "columns": list(table[0]),
        "rows": table,
        "settings": json.dumps(result["settings"], indent=1, ensure_ascii=False),
        "seconds": result["seconds"],
        "versions": ", ".join(f"{name} {version}" for name, version in result["versions"].items()),
        "figure": picture(drawing.read_bytes(), "png", result["name"]) if drawing.exists() else "",
    }


def picture(content: bytes, kind: str, about: str) -> Markup:
    """Returns an image element with the drawing inside: as an image, nothing in the drawing can run."""
    return Markup('<img alt="{}" src="data:image/{};base64,{}">').format(about, kind, b64encode(content).decode())


def environment() -> Environment:
    """Where templates are, and that what they show is escaped."""
    return Environment(loader=PackageLoader("imm.report"), autoescape=select_autoescape(default=True))
