"""The pages: every link leads somewhere, every page can be come to from the README, and every room has its row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HOME = Path(__file__).parents[1]
PAGES = [HOME / "README.md", HOME / "CHANGELOG.md", HOME / "CONTRIBUTING.md", *sorted((HOME / "docs").glob("*.md"))]


def links(page: Path) -> list[tuple[Path, str]]:
    """The files that a page links to, each with the heading that is meant."""
    found = [target.partition("#") for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text())]
    local = [(path, heading) for path, _, heading in found if "://" not in path]
    return [((page.parent / path).resolve() if path else page, heading) for path, heading in local]


def headings(page: Path) -> set[str]:
    """Its headings, as links name them."""
    titles = re.findall(r"(?m)^#+ (.+)$", page.read_text())
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for target, heading in links(page):
        assert target.exists(), target
        assert not heading or heading in headings(target), (target, heading)


def test_the_readme_leads_to_every_page() -> None:
    assert set(PAGES[1:]) <= {target for target, _ in links(PAGES[0])}


def test_every_room_has_its_row() -> None:
    rooms = {path.parent.name for path in (HOME / "ckpt_tui").glob("*/__init__.py")}
    assert set(re.findall(r"(?m)^\| `(\w+)/` \|", (HOME / "CONTRIBUTING.md").read_text())) == rooms
