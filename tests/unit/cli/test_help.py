"""The first thing that is seen: help that imports nothing, names every command in a whole sentence, and guesses at what was mistyped."""

import re
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from hilsim.cli import SUMMARIES, cli

SLOW = ("numba", "numpy", "pydantic", "matplotlib", "aiohttp", "structlog", "dpkt")


def imported_by(*arguments, environment=None):
    """Which of the slow libraries a command line imports, and what it prints."""
    program = (
        "import sys; sys.argv = ['hilsim', *sys.argv[1:]]; from hilsim.cli import main\n"
        "try: main()\n"
        f"finally: print(*(name for name in {SLOW} if name in sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True, env=environment)
    return set(done.stderr.split()), done.stdout


def test_help_imports_no_library_but_clicks():
    slow, text = imported_by("--help")
    assert slow == set()
    assert all(f"\n  {name} " in text for name in SUMMARIES)


@pytest.mark.parametrize("command", ["run", "check", "record", "doctor", "bench", "replay", "control", "warm"])
def test_a_commands_help_waits_for_no_library_either(command):
    assert imported_by(command, "--help")[0] == set()


def test_help_cuts_no_sentence():
    text = CliRunner().invoke(cli, ["--help"]).stdout
    assert "..." not in text.partition("Commands:")[2]
    told = " ".join(text.split())
    assert all(f"{name} {summary}" in told for name, summary in SUMMARIES.items())


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_summary_is_the_first_sentence_of_the_commands_own_help(name):
    command = cli.get_command(click.Context(cli), name)
    first = re.split(r"(?<=\.)\s", " ".join((command.help or "").split()), maxsplit=1)[0]
    assert SUMMARIES[name] == first


@pytest.mark.parametrize(("word", "meant"), [("rnu", "run"), ("chekk", "check"), ("Record", "record"), ("inspekt", "inspect")])
def test_a_mistyped_command_is_guessed(word, meant):
    done = CliRunner().invoke(cli, [word])
    assert done.exit_code == 2
    assert f'No such command "{word}"; did you mean "{meant}"?' in done.stderr


def test_a_word_like_no_command_is_not_guessed():
    assert "did you mean" not in CliRunner().invoke(cli, ["xyzzy"]).stderr


def test_help_of_run_shows_examples():
    text = CliRunner().invoke(cli, ["run", "--help"]).stdout
    assert "hilsim run demo --to" in text
    assert "hilsim run demo --set" in text


def test_running_a_rig_imports_nothing_that_only_draws_or_reads_files():
    program = (
        "import sys, hilsim.cli.terminal.screen, hilsim.daemon.service, hilsim.daemon.ready_file\n"
        "print(*(name for name in ('matplotlib', 'aiohttp', 'trimesh', 'rasterio', 'PIL', 'pyarrow', 'distributed') if name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip() == ""
