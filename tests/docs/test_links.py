"""Links between pages lead somewhere, and files that the design page names are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("docs/**/*.md")), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s#]+)", page.read_text()):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), target


def test_the_files_of_the_design_page_are_there():
    page = (ROOT / "docs" / "reference" / "design.md").read_text()
    names = re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", page)
    assert len(names) > 30
    for name in names:
        assert any((folder / name).exists() for folder in (ROOT, ROOT / "src" / "imm")), name
