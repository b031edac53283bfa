"""Write the files of a background map, either all or none, and replace others only with ``--force``."""

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from hilsim.config.profiles import find_profile, profiles_directory, read_profile
from hilsim.config.sensor_profiles import parse_profile
from hilsim.errors import AssetError
from hilsim.read.analysis.ground import Ground
from hilsim.read.background.files.archive import write_archive
from hilsim.read.background.files.bitmap import write_bitmap
from hilsim.read.background.files.cloud import write_ply
from hilsim.read.background.files.grey import write_grey
from hilsim.read.background.generator import Generated
from hilsim.read.background.rig import rig_text
from hilsim.sensor.specs import LidarSpec
from hilsim.world.scene.background import BackgroundMap

RIG_SUFFIX = ".toml"


class NamedProfile(NamedTuple):
    """A sensor profile.

    Attributes:
        name: Name of a shipped profile, or path of another, as in a rig.
        spec: Contents of the profile.
    """

    name: str
    spec: LidarSpec


def shipped_profiles() -> dict[str, NamedProfile]:
    """Shipped sensor profiles by the model's name.

    Raises:
        ConfigError: a profile cannot be used.
    """
    paths = sorted((profiles_directory() / "sensors").glob("*.toml"))
    found = (NamedProfile(path.stem, parse_profile(read_profile(path), str(path))) for path in paths)
    return {profile.spec.model: profile for profile in found}


def named_profile(name: str) -> NamedProfile:
    """Load the profile of ``--profile``: the name of a shipped one, or a path relative to the working directory.

    Raises:
        ConfigError: the profile does not exist or cannot be used.
    """
    path = find_profile("sensors", name, Path())
    return NamedProfile(name, parse_profile(read_profile(path), str(path)))


def file_of(name: Path, suffix: str) -> Path:
    """Path of NAME with a suffix; a dot in NAME belongs to it."""
    return name.with_name(name.name + suffix)


def writers(grey: str) -> dict[str, Callable[[BackgroundMap, Path], None]]:
    """Functions that write each file, by its suffix; ``grey`` is one of ``GREY_KINDS``."""
    return {".npz": write_archive, ".bmp": write_bitmap, f"-grey.{grey}": write_grey, ".ply": write_ply}


def check_free(name: Path, *, force: bool, grey: str) -> None:
    """Raise an error if files would be replaced.

    Raises:
        AssetError: a file exists, or the directory does not.
    """
    if not name.parent.is_dir():
        raise AssetError(f"{name}: the directory {name.parent} must exist")
    there = [str(path) for path in (file_of(name, suffix) for suffix in (*writers(grey), RIG_SUFFIX)) if path.exists()]
    if there and not force:
        raise AssetError(f"{', '.join(there)}: must not exist yet; replace with --force")


def write_files(found: Generated, name: Path, *, force: bool, grey: str, profile: NamedProfile | None = None) -> tuple[Path, ...]:
    """Write all files in a temporary directory, then move them to their place; returns their paths.

    Args:
        found: Map to write.
        name: Beginning of the files' names.
        force: Whether to replace existing files.
        grey: File type of the grey picture.
        profile: Profile of the sensor for the rig; None: the shipped one of the map's model.

    Raises:
        AssetError: a file cannot be written, or exists meanwhile.
    """
    suffixes = list(writers(grey))
    try:
        with tempfile.TemporaryDirectory(dir=name.parent, prefix=f".{name.name}-") as directory:
            ready = Path(directory) / name.name
            text = _rig(found, name, profile or shipped_profiles().get(found.map.model))
            for suffix, write in writers(grey).items():
                write(_in_world(found) if suffix == ".ply" and text is not None else found.map, file_of(ready, suffix))
            if text is not None:
                file_of(ready, RIG_SUFFIX).write_text(text, encoding="utf-8")
                suffixes.append(RIG_SUFFIX)
            check_free(name, force=force, grey=grey)
            for suffix in suffixes:
                file_of(ready, suffix).replace(file_of(name, suffix))
            if text is None:
                file_of(name, RIG_SUFFIX).unlink(missing_ok=True)
    except OSError as error:
        raise AssetError(f"{name}: cannot be written: {error.strerror}") from error
    return tuple(file_of(name, suffix) for suffix in suffixes)


def _rig(found: Generated, name: Path, profile: NamedProfile | None) -> str | None:
    """Text of the rig that shows the map; None for a model without a profile."""
    if profile is None:
        return None
    return rig_text(
        name.name,
        _as_rigs_say(profile.name, name.parent),
        rate_rpm=found.sensor.source.settable_rate_rpm(profile.spec),
        has_pose=found.map.pose is not None,
        captures=tuple(capture.name for capture in found.partial.captures),
        ground=found.ground if isinstance(found.ground, Ground) else None,
    )


def _in_world(found: Generated) -> BackgroundMap:
    """The map with the pose that the rig gives it: its own, else above the ground that it shows."""
    if found.map.pose is not None or not isinstance(found.ground, Ground):
        return found.map
    return replace(found.map, pose=found.ground.pose)


def _as_rigs_say(profile: str, rig_directory: Path) -> str:
    """Name of a profile, or its path relative to the rig."""
    is_path = profile.endswith(".toml") or "/" in profile
    return os.path.relpath(profile, rig_directory) if is_path else profile
