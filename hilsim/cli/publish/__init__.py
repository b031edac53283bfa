"""The command ``hilsim publish``."""

from hilsim.cli.publish.command import publish

__all__ = ["publish"]
