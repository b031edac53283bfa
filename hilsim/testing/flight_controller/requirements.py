"""Check of the flight controller's additional dependencies."""

from importlib.util import find_spec

from hilsim.errors import HilsimError


def require_pymavlink() -> None:
    """Search for pymavlink without importing it.

    Raises:
        HilsimError: pymavlink is not installed.
    """
    if find_spec("pymavlink") is None:
        message = 'hilsim.testing.FlightController must have pymavlink, got none; pip install pymavlink (in a checkout: pip install -e ".[testing]")'
        raise HilsimError(message)
