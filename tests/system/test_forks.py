"""The commands that tests start are forks of one process, whatever a test has imported before (``tests.commands``)."""

import pytest

import hilsim
from tests import commands

pytestmark = pytest.mark.system


def version(tmp_path):
    """What the process of a command is, its exit status, and what it printed."""
    with (tmp_path / "out.txt").open("w+") as output:
        process = commands.start("--version", stdout=output, stderr=output)
        status = process.wait(60)
        output.seek(0)
        return type(process), status, output.read()


@pytest.mark.parametrize("module", ["sklearn", "pymavlink.mavutil", "hilsim.compilation"])
def test_a_command_is_forked_before_and_after_an_import_that_sets_variables(module, tmp_path):
    before = version(tmp_path)
    pytest.importorskip(module, reason=f"{module} is not installed")
    after = version(tmp_path)
    assert after == before == (commands.Fork, 0, f"hilsim, version {hilsim.__version__}\n")
