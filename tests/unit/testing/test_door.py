"""What ``import hilsim.testing`` gives, and what it costs."""

import subprocess
import sys
from typing import get_args

import pytest

import hilsim.testing
from hilsim.testing.flight_controller.flying.scripts import SCRIPTS
from hilsim.testing.flight_controller.process import Script


@pytest.mark.parametrize("name", hilsim.testing.__all__)
def test_every_public_name_can_be_had(name):
    assert getattr(hilsim.testing, name) is not None
    assert name in dir(hilsim.testing)


def test_another_name_is_no_attribute():
    with pytest.raises(AttributeError, match=r"module 'hilsim\.testing' has no attribute 'Nothing'"):
        _ = hilsim.testing.Nothing


def test_the_controllers_module_needs_neither_pymavlink_nor_numba_nor_numpy():
    program = "import sys, hilsim.testing as t; t.FlightController; print(*({'numba', 'numpy', 'pymavlink'} & {*sys.modules}))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.split() == []


def test_the_scripts_that_can_be_asked_for_are_those_that_there_are():
    assert set(get_args(Script)) == set(SCRIPTS)
