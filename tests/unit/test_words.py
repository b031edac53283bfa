"""What people read is written in the field's terms (docs/how-we-write.md)."""

import pytest

from tests.runs import words


@pytest.mark.parametrize("folder", ["hilsim", "tests", "bench", "tools", "examples", "docs", "README.md", "CONTRIBUTING.md"])
def test_prose_uses_no_word_of_the_former_dialect(folder):
    found = [
        f"{path}:{number}: {word}: {around}" for path in words.read_files([folder]) for number, word, around in words.findings(words.ROOT / path)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", '"""What the driver is told."""\n'),
        ("a.py", "x = 1  # nobody reads it\n"),
        ("a.py", "raise ValueError('a field that nobody wanted')\n"),
        ("a.py", "def test_a_fault_is_said_once(): ...\n"),
        ("a.md", "The sensor stands behind the wall.\n"),
    ],
    ids=["docstring", "comment", "message", "name of a test", "page"],
)
def test_words_are_found_wherever_people_read(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    assert len(list(words.findings(path))) >= 1


def test_code_and_standstills_are_no_prose(tmp_path):
    page, module = tmp_path / "a.md", tmp_path / "a.py"
    page.write_text("`told = 1`; the machine stands still, and hilsim stands in for a lidar.\n")
    module.write_text("told = said = 1\nassert told == said\n")
    assert list(words.findings(page)) == list(words.findings(module)) == []
