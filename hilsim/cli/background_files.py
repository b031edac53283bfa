"""The files of a background map: all of them or none, and never over others unasked."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hilsim.background.generator import Generated
from hilsim.background.rig import rig_text
from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.errors import AssetError
from hilsim.scene.background import BackgroundMap
from hilsim.sensor.specs import LidarSpec

RIG_SUFFIX = ".toml"


def _write_archive(map_: BackgroundMap, path: Path) -> None:
    """Placeholder until ``hilsim.background.archive`` is here."""
    np.savez_compressed(path, distance_mm=map_.distance_mm, intensity=map_.intensity, flags=map_.flags, hit_count=map_.hit_count)


WRITERS: dict[str, Callable[[BackgroundMap, Path], None]] = {".npz": _write_archive}
"""By what follows the name."""


def sensor_profiles() -> dict[str, LidarSpec]:
    """Shipped profiles by the model's name.

    Raises:
        ConfigError: one cannot be used.
    """
    paths = sorted((profiles_directory() / "sensors").glob("*.toml"))
    specs = (parse_table(LidarSpec, read_toml(path), str(path)) for path in paths)
    return {spec.model: spec for spec in specs}


def profile_names() -> dict[str, str]:
    """Names of the shipped profiles by the model's name."""
    return {parse_table(LidarSpec, read_toml(path), str(path)).model: path.stem for path in (profiles_directory() / "sensors").glob("*.toml")}


def file_of(name: Path, suffix: str) -> Path:
    """NAME with what follows it; a dot in NAME is part of it."""
    return name.with_name(name.name + suffix)


def check_free(name: Path, *, force: bool) -> None:
    """Refuse to replace files.

    Raises:
        AssetError: there are some, or there is no such directory.
    """
    if not name.parent.is_dir():
        raise AssetError(f"{name}: the directory {name.parent} must exist")
    there = [str(path) for path in (file_of(name, suffix) for suffix in (*WRITERS, RIG_SUFFIX)) if path.exists()]
    if there and not force:
        raise AssetError(f"{', '.join(there)}: must not exist yet; replace with --force")


def write_files(found: Generated, name: Path, *, force: bool) -> tuple[Path, ...]:
    """Write everything beside its place, then put it there; gives the files.

    Raises:
        AssetError: a file cannot be written, or exists meanwhile.
    """
    suffixes = list(WRITERS)
    try:
        with tempfile.TemporaryDirectory(dir=name.parent, prefix=f".{name.name}-") as directory:
            ready = Path(directory) / name.name
            for suffix, write in WRITERS.items():
                write(found.map, file_of(ready, suffix))
            text = _rig(found, name.name)
            if text is not None:
                file_of(ready, RIG_SUFFIX).write_text(text, encoding="utf-8")
                suffixes.append(RIG_SUFFIX)
            check_free(name, force=force)
            for suffix in suffixes:
                file_of(ready, suffix).replace(file_of(name, suffix))
            if text is None:
                file_of(name, RIG_SUFFIX).unlink(missing_ok=True)
    except OSError as error:
        raise AssetError(f"{name}: cannot be written: {error.strerror}") from error
    return tuple(file_of(name, suffix) for suffix in suffixes)


def _rig(found: Generated, name: str) -> str | None:
    """The rig that shows the map; None for a model without a profile."""
    profile = profile_names().get(found.map.model)
    if profile is None:
        return None
    spec = sensor_profiles()[found.map.model]
    steps = round(found.sensor.rate_rpm / spec.rate_step_rpm) * spec.rate_step_rpm
    rate_rpm = min(max(steps, spec.rate_min_rpm), spec.rate_max_rpm)
    return rig_text(
        name, profile, rate_rpm=rate_rpm, has_pose=found.map.pose is not None, captures=tuple(capture.name for capture in found.partial.captures)
    )
