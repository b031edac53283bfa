"""``python -m tests.runs.words [FOLDER...]``: words of the project's former dialect (docs/how-we-write.md), where people read them.

Read are docstrings, comments and messages of Python files, names of tests, and pages.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIALECT = re.compile(
    r"\b(told|said|nobody|somebody|wanted|unwanted|spoilt|spoils?|borne|lets? out|stands(?! still\b| in for\b| idle\b)|stands?(?= as| where| for\b| in the| in a\b| behind| before| beside))\b",
    re.IGNORECASE,
)
_UNREAD = ("docs/how-we-write.md", "tests/unit/test_words.py", "docs/reference/", "tests/runs/words.py", "CHANGELOG.md", "LICENSE")
"""Quotes the dialect; is generated from what is read elsewhere; quotes it; history."""


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
    sys.stdout.write(f"{count} found\n")
    sys.exit(int(count > 0))
