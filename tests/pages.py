"""The pages of the documentation, and the blocks of code on them."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_FENCE = re.compile(r"^( *)```(\w*)$")


@dataclass(frozen=True, kw_only=True)
class Block:
    """Text between two fences of a page."""

    page: Path
    language: str
    """The word behind the opening fence; empty where there is none."""
    number: int
    """Of those in its language on its page, counted from 0."""
    line: int
    """Number of its first line."""
    text: str
    """Without the indentation of its fence."""

    @property
    def key(self) -> tuple[str, int]:
        """What tables of tests call it by."""
        return self.page.name, self.number

    @property
    def place(self) -> str:
        """For a person."""
        return f"{self.page.name}:{self.line}"


def blocks_of(page: Path, language: str | None = None) -> list[Block]:
    """The blocks of a page in one language, or all of them, in order."""
    found: list[Block] = []
    opened: tuple[str, str, int] | None = None  # indentation, language and first line of the block that the line is in
    kept: list[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").split("\n"), 1):
        fence = _FENCE.match(line)
        if fence and opened is None:
            opened, kept = (fence[1], fence[2], number + 1), []
        elif fence and opened is not None:
            _, tongue, first = opened
            earlier = sum(block.language == tongue for block in found)
            found.append(Block(page=page, language=tongue, number=earlier, line=first, text="\n".join(kept) + "\n"))
            opened = None
        elif opened is not None:
            kept.append(line.removeprefix(opened[0]))
    return [block for block in found if language in {None, block.language}]


def blocks(language: str | None = None) -> list[Block]:
    """The same of all pages."""
    return [block for page in PAGES for block in blocks_of(page, language)]


def by_page(found, page=lambda each: each, name=lambda each: each.name):
    """Parameters of a test, one each: those of the README run in ``make test`` too, the others in ``make test-all``."""
    return [pytest.param(each, id=name(each), marks=() if page(each).name == "README.md" else pytest.mark.extended) for each in found]
