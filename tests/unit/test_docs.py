"""Pages can be found, and their links lead somewhere."""

import json
import re

from tests.pages import PAGES, ROOT, blocks

DOCS = ROOT / "docs"
_PICTURE = re.compile(r'<img src="([^"]+)"')
_LARGEST_PICTURE_BYTES = 400_000
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#]+)(?:#[^)]*)?\)")


def _targets(page):
    return [(page.parent / target).resolve() for target in _LINK.findall(page.read_text(encoding="utf-8"))]


def test_the_index_links_every_page():
    linked = set(_targets(DOCS / "index.md"))
    pages = {page.resolve() for page in DOCS.rglob("*.md")} - {(DOCS / "index.md").resolve()}
    assert sorted(page for page in pages if page not in linked and page.parent not in linked) == []


def test_every_link_between_pages_leads_to_a_file():
    assert [(page.name, target.name) for page in PAGES for target in _targets(page) if not target.exists()] == []


def test_the_readme_shows_a_picture_that_loads_fast():
    (picture,) = [ROOT / source for source in _PICTURE.findall((ROOT / "README.md").read_text(encoding="utf-8"))]
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < _LARGEST_PICTURE_BYTES


def test_the_readme_links_the_index():
    assert (DOCS / "index.md").resolve() in _targets(ROOT / "README.md")


GENERATED = {"configuration.md", "control-requests.md", "conformance-rules.md", "limits.md", "metrics.md", "python-api.md"}
"""Of their tables a row is what the code says of one key, rule, bound or metric."""
_LONGEST, _LONGEST_ROW = 160, 200
_FENCE = re.compile(r"^ *```")
_CODE = re.compile(r"`[^`]*`")
_ADDRESS = re.compile(r"\]\([^)]*\)")
_NUMBER_OF_A_LIST = re.compile(r"^ *\d+\. ")
_ANOTHER_SENTENCE = re.compile(r"[^\W_][)\]*\"']*[.?!][)\]*\"']* +\S")


def _lines():
    """Page, number and text of every line, and whether it is of a block of code, a row of a table, a heading or text."""
    for page in PAGES:
        in_block = False
        for number, line in enumerate(page.read_text(encoding="utf-8").split("\n"), 1):
            is_fence = bool(_FENCE.match(line))
            in_block ^= is_fence
            kind = "block" if in_block or is_fence else {"|": "row", "#": "heading"}.get(line.lstrip()[:1], "text")
            yield page.name, number, line, kind


def test_no_line_of_text_or_code_is_longer_than_160_characters():
    assert [(page, number, len(line)) for page, number, line, kind in _lines() if kind in {"text", "block"} and len(line) > _LONGEST] == []


def test_no_row_of_a_written_table_is_longer_than_200_characters():
    rows = [(page, number, len(line)) for page, number, line, kind in _lines() if kind == "row" and page not in GENERATED]
    assert [row for row in rows if row[2] > _LONGEST_ROW] == []


def _sentences_begun(line):
    """How often another sentence begins on a line of text."""
    plain = _ADDRESS.sub("]", _CODE.sub("code", _NUMBER_OF_A_LIST.sub("", line)))
    return len(_ANOTHER_SENTENCE.findall(plain))


def test_each_sentence_begins_a_line():
    assert [(page, number, line) for page, number, line, kind in _lines() if kind == "text" and _sentences_begun(line)] == []


LANGUAGES = {
    "python": "run by test_docs_code.py",
    "toml": "made a rig of, or what else it is, by test_docs_toml.py",
    "sh": "run by tests/system/test_docs_shell.py",
    "text": "what a program printed, a drawing, or a line of a docstring: nothing that could run",
    "json": "what a program printed",
    "ini": "a change of the systemd unit",
}


def test_every_block_says_what_it_is():
    assert [(block.place, block.language) for block in blocks() if block.language not in LANGUAGES] == []


def test_every_block_of_json_can_be_read():
    assert all(json.loads(block.text) for block in blocks("json"))
