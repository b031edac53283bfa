"""The command ``hilsim calibrate``."""

from hilsim.cli.calibrate.command import calibrate

__all__ = ["calibrate"]
