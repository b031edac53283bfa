"""Settings of lidars: the table of each, with its profile."""

from pathlib import Path
from typing import Any

from hilsim.config.parse import parse_table
from hilsim.config.profiles import find_profile, read_profile
from hilsim.config.sensor_profiles import profile_family
from hilsim.config.tables.sensor import SensorSpec
from hilsim.config.toml_file import read_toml
from hilsim.emulator.families.base import LidarFamily
from hilsim.emulator.setting import LidarSetting
from hilsim.errors import ConfigError, require
from hilsim.faults.specs import FaultSpec
from hilsim.sensor.optics.weather import WeatherSpec
from hilsim.sensor.setup import DRAWN, IDEAL
from hilsim.sensor.specs import PulseState
from hilsim.sensor.unit.spec import UnitSpec
from hilsim.world.assets.mesh_parts import is_file


def sensor_lidar(
    sensor: SensorSpec, weather: WeatherSpec, number: int, rig_path: Path, place: str = "", faults: tuple[FaultSpec, ...] = ()
) -> LidarSetting:
    """Setting of a sensor with its profile.

    Args:
        sensor: Table of the sensor in the rig.
        weather: Weather of the rig.
        number: Number of its random stream.
        rig_path: Path of the rig file.
        place: Location of the sensor in it, for messages; empty: ``sensor[number]``.
        faults: Faults that befall it.

    Raises:
        ConfigError: the profile is missing or invalid.
        ValueError: profile and rig are inconsistent; faults joined by "; ".
    """
    place = place or f"sensor[{number}]"
    try:
        profile = find_profile("sensors", sensor.profile, rig_path.parent)
    except ConfigError as error:
        raise ConfigError(f"{rig_path}: {place}.{error}") from error
    where = f"{profile}" if not sensor.override else f"{profile} with {rig_path}: {place}.override"
    table = read_profile(profile) | sensor.override
    family = profile_family(table, where)
    spec = parse_table(family.profile, table, where)
    rules = list(family(spec, sensor).port_rules(sensor.network.data_port, sensor.network.position_port))
    if sensor.web is not None:
        rules += family(spec, sensor).web_rules(sensor.web, sensor.network)
    rules += _time_rules(sensor, family, spec.model)
    unit = _unit(sensor.unit, rig_path, place)
    pulse = PulseState(pps="absent") if sensor.time_input is not None and sensor.time_input.pps else None
    try:
        setting = LidarSetting(
            name=sensor.name,
            stream=number,
            spec=spec,
            setup=sensor,
            weather=weather,
            family_class=family,
            unit=unit,
            pulse=pulse,
            faults=faults,
        )
    except ValueError as error:
        rules += [(False, fault) for fault in str(error).split("; ")]
    require(*rules)
    return setting


def _unit(name: str, rig_path: Path, place: str) -> UnitSpec:
    """Contents of the file of a sensor's unit; empty for a drawn or an ideal one.

    Raises:
        ConfigError: there is no such file, or it has faults.
    """
    if name in {DRAWN, IDEAL} or not name.endswith(".toml"):
        return UnitSpec()  # any other word is a fault of the setup, reported with the others
    path = rig_path.parent / name
    if not is_file(path):
        raise ConfigError(f"{rig_path}: {place}.unit: {path}: no such file")
    return parse_table(UnitSpec, read_toml(path), str(path))


def _time_rules(sensor: SensorSpec, family: type[LidarFamily[Any]], model: str) -> list[tuple[bool, str]]:
    """Rules of what is connected to a sensor's GPS input."""
    given = sensor.time_input
    if given is None:
        return []
    return [
        (family.has_pulse_input, f"time_input must not be given for a {model}: it has no such input"),
        (sensor.clock.sync == "auto", f'clock.sync must be "auto" with time_input, got "{sensor.clock.sync}"'),
        (sensor.gps is None or not given.nmea, "gps must not be given with time_input.nmea: sentences come from outside"),
    ]
