"""Metadata of sensors in files beside a capture, or in files that a user names: what packets alone do not tell.

The module ``metadata_files`` of the folder of each family that has metadata reads and writes them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hilsim.registry import family_part, family_parts

NONE: Mapping[str, Any] = MappingProxyType({})
"""Metadata of no family."""


def given_metadata(paths: Sequence[Path] = (), capture: Path | None = None) -> Mapping[str, Any]:
    """Metadata by family, of the families that have some: ``given_metadata`` of the module ``metadata_files`` of their folders.

    Args:
        paths: Files that a user names, which are read at once; without any, those beside the capture, read with its first packet of such a sensor.
        capture: Path of the capture; None: there is none.

    Raises:
        CaptureError: a file cannot be read, or is no metadata; the text has a line for each.
    """
    return {family: module.given_metadata(paths, capture) for family, module in family_parts("metadata_files").items()}


def known_metadata(sensors: Mapping[str, Sequence[Any]]) -> Mapping[str, Any]:
    """Metadata by family of sensors whose metadata are known, such as those of a rig (``LidarFamily.metadata``)."""
    return {family: _files(family).known_metadata(some) for family, some in sensors.items()}


def write_beside(capture: Path, sensors: Mapping[str, Sequence[Any]]) -> None:
    """Write the metadata of a capture's sensors, by family, into files beside it, in place of those of a former capture of that name.

    Raises:
        CaptureError: a file of that name is no metadata, which is kept, or one cannot be written.
    """
    for family, some in sensors.items():
        _files(family).write_beside(capture, some)


def metadata_beside(capture: Path, sensors: Mapping[str, Sequence[Any]]) -> tuple[Path, ...]:
    """Files beside a capture that hold the metadata of its sensors, by family."""
    return tuple(path for family in sensors for path in _files(family).metadata_beside(capture))


def _files(family: str) -> Any:
    return family_part(family, "metadata_files")
