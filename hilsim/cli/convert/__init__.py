"""The command ``hilsim convert``."""

from hilsim.cli.convert.command import convert

__all__ = ["convert"]
