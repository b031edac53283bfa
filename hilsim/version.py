"""The version of hilsim; the build reads it here."""

import importlib.metadata

__version__ = "0.1.0"


def foreign_distribution() -> str | None:
    """Version of an unrelated distribution named ``hilsim`` that would shadow this one, or None."""
    try:
        return importlib.metadata.version("hilsim")
    except importlib.metadata.PackageNotFoundError:
        return None
