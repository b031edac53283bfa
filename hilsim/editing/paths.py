"""Paths that do not leave a directory."""

from pathlib import Path


def outside(directory: Path, name: str) -> bool:
    """Whether a relative or absolute path leads out of a directory, also through links; True also for a name that no file can have."""
    try:
        return not (directory / name).resolve().is_relative_to(directory.resolve())
    except (OSError, ValueError):
        return True
