"""Pages can be found, and their links lead somewhere."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#]+)(?:#[^)]*)?\)")


def _targets(page):
    return [(page.parent / target).resolve() for target in _LINK.findall(page.read_text(encoding="utf-8"))]


def test_the_index_links_every_page():
    linked = set(_targets(DOCS / "index.md"))
    pages = {page.resolve() for page in DOCS.rglob("*.md")} - {(DOCS / "index.md").resolve()}
    assert sorted(page for page in pages if page not in linked and page.parent not in linked) == []


def test_every_link_between_pages_leads_to_a_file():
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    assert [(page.name, target.name) for page in pages for target in _targets(page) if not target.exists()] == []


def test_the_readme_links_the_index():
    assert (DOCS / "index.md").resolve() in _targets(ROOT / "README.md")
