"""The command ``hilsim background``."""

from hilsim.cli.background.command import background

__all__ = ["background"]
