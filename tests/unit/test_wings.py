"""What is left out of an installation: the rest works."""

import subprocess
import sys

import pytest

HIDE = """
import sys
from importlib.abc import MetaPathFinder

hidden = sys.argv[1]

class Hide(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == hidden or name.startswith(hidden + "."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hide())
import hilsim.daemon.service
import hilsim.offline.record
from hilsim.cli import main

sys.argv = ["hilsim", "check", "demo", "--no-cost"]
main()
"""
"""Imports what sends and what records, and checks a rig, without a package."""


@pytest.mark.parametrize("package", ["hilsim.show", "hilsim.read", "hilsim.parts"])
def test_what_sends_works_without_a_wing(package):
    found = subprocess.run([sys.executable, "-c", HIDE, package], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert "sound; 1 sensor(s)" in found.stdout + found.stderr


def test_a_replay_says_what_it_lacks(tmp_path):
    replay = HIDE.replace('"check", "demo", "--no-cost"', f'"replay", {str(tmp_path / "none.pcap")!r}')
    found = subprocess.run([sys.executable, "-c", replay, "hilsim.parts"], capture_output=True, text=True, check=False)
    assert (found.returncode, "the part that replays must be installed" in found.stderr) == (1, True), found.stderr
