"""Writes the generated pages of ``docs/reference/``: ``python -m tools.reference`` (``make docs``)."""

import re
import textwrap
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import click

from tools.api_reference import api_reference
from tools.configuration_reference import configuration_reference
from tools.control_reference import control_reference
from tools.faults_reference import faults_reference
from tools.metrics_reference import generate_metrics_reference

DIRECTORY = Path(__file__).resolve().parent.parent / "docs" / "reference"

PAGES: dict[str, Callable[[], str]] = {
    "configuration.md": configuration_reference,
    "control-requests.md": control_reference,
    "faults.md": faults_reference,
    "metrics.md": generate_metrics_reference,
    "python-api.md": api_reference,
}


_LONGEST = 160
_CODE_OR_ADDRESS = re.compile(r"`[^`]*`|\]\([^)]*\)")
_END_OF_SENTENCE = re.compile(r"(?<=[\w)\]])[.?!][)\]*\"']* +(?=\S)")


def generated_page(name: str) -> str:
    """A page as it is written: each sentence of its text on a line of its own, none longer than 160 characters."""
    return "\n".join(_lines(PAGES[name]().split("\n")))


def _lines(lines: list[str]) -> Iterator[str]:
    in_block = False
    for line in lines:
        in_block ^= line.startswith("```")
        if in_block or line.startswith(("```", "|", "#")):
            yield line
        else:
            yield from _sentences(line)


def _sentences(line: str) -> Iterator[str]:
    """The sentences of a line of text; those behind the first of an entry of a list are indented as its text is."""
    masked = _CODE_OR_ADDRESS.sub(lambda match: "x" * len(match[0]), line)
    begins = [0, *(match.end() for match in _END_OF_SENTENCE.finditer(masked)), len(line)]
    indent = "  " if line.startswith("- ") else ""
    for number, (start, stop) in enumerate(pairwise(begins)):
        first = indent if number else ""
        yield from textwrap.wrap(
            line[start:stop].rstrip(), _LONGEST, initial_indent=first, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        ) or [""]


def main() -> None:
    """Write every page."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    for name in PAGES:
        (DIRECTORY / name).write_text(generated_page(name), encoding="utf-8")
        click.echo(DIRECTORY / name)


if __name__ == "__main__":
    main()
