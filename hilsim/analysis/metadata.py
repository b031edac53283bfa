"""Metadata of sensors in files beside a capture, or in files that a user names: what packets alone do not tell."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hilsim.registry import family_parts


def given_metadata(paths: Sequence[Path] = (), capture: Path | None = None) -> Mapping[str, Any]:
    """Metadata by family, of the families that have some: ``given_metadata`` of the module ``metadata_files`` of their folders.

    Args:
        paths: Files that a user names, which are read at once; without any, those beside the capture, read with its first packet of such a sensor.
        capture: Path of the capture; None: there is none.

    Raises:
        CaptureError: a file cannot be read, or is no metadata; the text has a line for each.
    """
    return {family: module.given_metadata(paths, capture) for family, module in family_parts("metadata_files").items()}
