"""The command ``hilsim export``."""

from hilsim.cli.export.command import export

__all__ = ["export"]
