"""What the shells ask for when tab is pressed."""

import os

import pytest

from hilsim.cli.rigs import rigs_beginning
from tests.unit.cli.test_help import imported_by


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("bench.toml", "demo2.toml", "drive.pcap", ".hidden.toml"):
        (tmp_path / name).touch()
    (tmp_path / "rigs").mkdir()
    (tmp_path / "rigs" / "roof.toml").touch()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("d", ["demo", "demo2.toml"]),
        ("b", ["bench.toml"]),
        ("ri", ["rigs/"]),
        ("rigs/", ["rigs/roof.toml"]),
        ("rigs/x", []),
        (".h", [".hidden.toml"]),
        ("nowhere/", []),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_rig_is_a_shipped_one_or_a_toml_file(typed, offered):
    assert rigs_beginning(typed) == offered


@pytest.mark.usefixtures("folder")
def test_without_a_letter_everything_but_hidden_files_is_offered():
    assert {"demo", "cepton", "bench.toml", "rigs/"} <= set(rigs_beginning(""))
    assert ".hidden.toml" not in rigs_beginning("")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("hilsim ru", "run"),
        ("hilsim run d", "demo"),
        ("hilsim check cep", "cepton"),
        ("hilsim warm px", "px4"),
        ("hilsim run --read", "--ready-file"),
    ],
)
def test_a_shell_is_answered_without_a_slow_library(words, offered):
    asked = {"_HILSIM_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    slow, text = imported_by(environment=os.environ | asked)
    assert offered in [line.partition(",")[2] for line in text.splitlines()]
    assert slow == set()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell):
    slow, text = imported_by(environment=os.environ | {"_HILSIM_COMPLETE": f"{shell}_source"})
    assert "_HILSIM_COMPLETE" in text
    assert slow == set()
