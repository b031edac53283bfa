"""The command ``hilsim dataset``."""

from hilsim.cli.dataset.command import dataset

__all__ = ["dataset"]
