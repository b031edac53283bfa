"""Check the Python distribution from which this program is installed."""

import importlib.metadata


def foreign_distribution() -> str | None:
    """Version of an unrelated distribution named ``hilsim`` that would shadow this one, or None."""
    try:
        return importlib.metadata.version("hilsim")
    except importlib.metadata.PackageNotFoundError:
        return None
