"""``python -m tests.runs.words [FOLDER...]``: words and fragments of the project's former dialect (docs/how-we-write.md).

It reads docstrings, comments and messages of Python files, names of tests, and pages.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIALECT = re.compile(
    r"\b(told|said|nobody|somebody|wanted|unwanted|spoilt|spoils?|borne|lets? out|stands(?! still\b| in for\b| idle\b| on\b)|stands?(?= as| where| for\b| in the| in a\b| behind| before| beside))\b",
    re.IGNORECASE,
)
_UNREAD = ("docs/how-we-write.md", "tests/unit/test_words.py", "docs/reference/", "tests/runs/words.py", "CHANGELOG.md", "LICENSE")
"""Quotes the dialect; is generated from what is read elsewhere; quotes it; history."""
FRAGMENT = re.compile(
    r"(Of|What|Whose|Who|How|Which|Such|Those|That (is|are|was|were|has|have)|The same(?=[.;]| of| as| in )|See there|As (it|they)|(Where|When)(?= [^,]*$))\b",
)
"""Start of a docstring, or of an entry of ``Attributes:``, ``Args:`` …, that is a clause and neither a noun phrase nor a sentence."""
_ENTRY = re.compile(r" {4,}\w+: (.*)")
_RESULT = re.compile(r" *(Returns|Yields):")


def prose_of_python(text):
    """``(line number, text)`` of each docstring, comment, string with a space in it, and name of a test."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            found.append((node.lineno, node.value))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
            found.append((node.lineno, node.name.replace("_", " ")))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sorted([*found, *((token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT)])


def prose_of_page(text):
    """``(line number, text)`` of each line of a page, without its code spans."""
    return [(number, re.sub(r"`[^`]*`", "", line)) for number, line in enumerate(text.splitlines(), 1)]


def findings(path):
    """``(line number, the word, its surroundings)`` of each word of the dialect in a file."""
    prose = prose_of_python(path.read_text()) if path.suffix == ".py" else prose_of_page(path.read_text())
    for number, text in prose:
        flat = " ".join(text.split())
        for match in DIALECT.finditer(flat):
            yield number, match[0].strip(), flat[max(match.start() - 50, 0) : match.end() + 40]


def fragments(path):
    """``(line number, text)`` of each docstring's first line, and of each entry below it, that starts as a fragment."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            first, *rest = node.value.value.splitlines() or [""]
            starts = [(node.lineno, first)]
            for number, (before, line) in enumerate(pairwise(["", *rest]), node.lineno + 1):
                if (entry := _ENTRY.fullmatch(line)) is not None:
                    starts.append((number, entry[1]))
                elif _RESULT.fullmatch(before) is not None:
                    starts.append((number, line.strip()))
            yield from ((number, text) for number, text in starts if FRAGMENT.match(text))


def read_files(folders):
    """Files of the project, below some folders, in which people read."""
    listed = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [Path(name) for name in listed if name.endswith((".py", ".md")) and not name.startswith(_UNREAD)]


if __name__ == "__main__":
    count = 0
    for path in read_files(sys.argv[1:]):
        for number, word, around in findings(ROOT / path):
            count += 1
            sys.stdout.write(f"{path}:{number}: {word}: {around}\n")
        for number, text in fragments(ROOT / path) if str(path).startswith("hilsim/") else ():
            count += 1
            sys.stdout.write(f"{path}:{number}: fragment: {text}\n")
    sys.stdout.write(f"{count} found\n")
    sys.exit(int(count > 0))
