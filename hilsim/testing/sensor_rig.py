"""The rig of one sensor under test: a model by its name, a scene by its name or as tables. Imports nothing slow."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

from hilsim.config.places import did_you_mean, profiles_directory, rig_path, shipped_names
from hilsim.config.toml_file import read_toml
from hilsim.errors import ConfigError

SceneLike: TypeAlias = str | PathLike[str] | Mapping[str, Any]
"""``"room"``, ``"street"``, the name of a shipped rig or the path of a rig file whose world is used, or a mapping of the tables in ``[scene]``."""

_WORLD = ("scene", "weather", "platform", "seed")
_MOUNT = ("mount_position_m", "mount_rotation_deg")
_ROOF_M = 1.9
"""Families with a second port: of position packets, and of inertial packets."""
_LATE_LIMIT_US = 500_000.0
"""Late limit: for a test on a stalled machine, a late packet is better than none."""

__tracebackhide__ = True  # pytest leaves these frames out of a test's traceback


def _wall(x_m: float, y_m: float, length_m: float, width_m: float, material: str) -> dict[str, Any]:
    return {"position_m": [x_m, y_m, 0.5], "size_m": [length_m, width_m, 5.0], "material": material}


ROOM: dict[str, Any] = {
    "box": [
        _wall(10.5, 0.0, 1.0, 14.0, "plaster"),
        _wall(-10.5, 0.0, 1.0, 14.0, "brick"),
        _wall(0.0, 6.5, 22.0, 1.0, "concrete"),
        _wall(0.0, -6.5, 22.0, 1.0, "wood"),
        {"position_m": [0.0, 0.0, -1.5], "size_m": [22.0, 14.0, 1.0], "material": "asphalt"},
    ],
    "cylinder": [{"position_m": [4.0, 3.0, -1.0], "radius_m": 0.3, "height_m": 4.0, "material": "metal"}],
}
"""A room of 20 m by 12 m around the sensor, which is a metre above its floor, with a pillar; static, without a ceiling."""


@dataclass(frozen=True, kw_only=True)
class SensorRig:
    """A rig as a table.

    Attributes:
        table: Contents of a rig file.
        directory: Directory that its file names are relative to.
    """

    table: Mapping[str, Any]
    directory: Path

    @property
    def path(self) -> Path:
        """Substitute for the path of its file."""
        return self.directory / "rig"


def sensor_rig(model: str, scene: SceneLike, *, name: str, keys: Mapping[str, Any], tables: Mapping[str, Any]) -> SensorRig:
    """A rig of one sensor in a scene.

    Args:
        model: Shipped sensor profile (``"vlp16"``), or the path of one.
        scene: Scene around the sensor.
        name: Name of the sensor.
        keys: Keys of its ``[[sensor]]``.
        tables: Other tables and keys of the rig, which take precedence over the scene's.

    Raises:
        ConfigError: there is no such model or scene.
    """
    profile = _profile(model)
    world, mount, directory = _world(scene)
    rig = {
        "name": name,
        "transmit": {"late_limit_us": _LATE_LIMIT_US, "lock_memory": False},  # memory shared with the parent process stays shared
        **world,
        **tables,
        "sensor": [{"name": name, "profile": str(profile) if _is_path(model) else model, **mount, **keys}],
    }
    return SensorRig(table=rig, directory=directory)


def _world(scene: SceneLike) -> tuple[dict[str, Any], dict[str, Any], Path]:
    """Tables of the world, mounting of a sensor in it, and the directory that its file names are relative to."""
    if isinstance(scene, Mapping):
        return {"scene": dict(scene)}, {}, Path.cwd()
    named = fspath(scene)
    if named == "room":
        return {"scene": ROOM}, {}, Path.cwd()
    if named == "street":
        return {"scene": {"generator": "street"}, "platform": {"kind": "street"}}, {"mount_position_m": [0.0, 0.0, _ROOF_M]}, Path.cwd()
    try:
        path = rig_path(named).absolute()
    except ConfigError:
        names = ("room", "street", *shipped_names("rigs"))
        raise ConfigError(
            f'scene must be {", ".join(names)}, the path of a rig or a mapping of tables, got "{named}"{did_you_mean(named, names)}'
        ) from None
    rig = read_toml(path)
    mounted: dict[str, Any] = next(iter(rig.get("sensor", ())), {})
    return {key: rig[key] for key in _WORLD if key in rig}, {key: mounted[key] for key in _MOUNT if key in mounted}, path.parent


def has_position_port(model: str) -> bool:
    """Whether a model sends position packets to a port of their own.

    Raises:
        ConfigError: there is no such model.
    """
    from hilsim.config.lidar_settings import sensor_lidar  # noqa: PLC0415 - it imports NumPy, which a plug-in of pytest must not
    from hilsim.config.tables.sensor import SensorSpec  # noqa: PLC0415
    from hilsim.sensor.optics.weather import WeatherSpec  # noqa: PLC0415

    setting = sensor_lidar(SensorSpec(name="sensor", profile=str(_profile(model))), WeatherSpec(), 0, Path.cwd() / "rig.toml")
    data, position = setting.family.flows(None, None)
    return data.destination_port != position.destination_port


def _profile(model: str) -> Path:
    """Path of a sensor profile."""
    names = shipped_names("sensors")
    if not _is_path(model) and model not in names:
        raise ConfigError(
            f'model must be a shipped one ({", ".join(names)}) or the path of a profile, got "{model}"{did_you_mean(model, names, of_models=True)}'
        )
    return Path(model).absolute() if _is_path(model) else profiles_directory() / "sensors" / f"{model}.toml"


def _is_path(model: str) -> bool:
    return model.endswith(".toml") or "/" in model
