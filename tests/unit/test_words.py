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


def test_docstrings_and_their_entries_start_with_no_fragment():
    paths = [path for path in words.read_files(["hilsim"]) if path.suffix == ".py"]
    assert len(paths) > 600
    assert [f"{path}:{number}: {text}" for path in paths for number, text in words.fragments(words.ROOT / path)] == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('"""Of the grid."""', 1),
        ('"""Where packets go."""', 1),
        ('"""How many rays."""', 1),
        ('"""Whose packets, and which."""', 1),
        ('"""Where a ray meets ground, use it."""', 0),
        ('"""Wherever."""', 0),
        ('"""Make it.\n\n    Args:\n        spec: As it is.\n        seed: Of the rig.\n        size: Size of the grid.\n    """', 2),
        ('"""Make it.\n\n    Returns:\n        What came of it.\n    """', 1),
        ('"""The same triangles."""', 0),
        ('x = "Of the grid."', 0),
    ],
)
def test_fragments_are_found_in_docstrings(tmp_path, text, count):
    path = tmp_path / "a.py"
    path.write_text(text + "\n")
    assert len(list(words.fragments(path))) == count
