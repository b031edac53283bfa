"""Angles of a unit from its calibration text, which PTC command 0x05 answers and the vendor gives as a file: channel, elevation and azimuth (deg), a channel a line."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from hilsim.errors import CaptureError
from hilsim.families.hesai.specs import HesaiSpec
from hilsim.read.analysis.calibration import CalibrationPart

_COLUMNS = ("channel", "elevation", "azimuth")
_LARGEST_ERROR_DEG = 5.0
_KEYS = ("elevation_error_deg", "azimuth_error_deg")


class _Text(NamedTuple):
    """A text: its name in errors, and line, elevation and azimuth by channel."""

    name: str
    channels: dict[int, tuple[int, float, float]]


class _Calibration(NamedTuple):
    """A unit: name of its text, model, and for each channel how far its elevation and azimuth are beyond the model's."""

    name: str
    model: str
    errors_deg: tuple[tuple[float, float], ...]


def _read(lines: Iterable[str], name: str, _: str) -> _Text:
    channels: dict[int, tuple[int, float, float]] = {}
    rows = [(number, line.strip()) for number, line in enumerate(lines, 1) if line.strip()]
    header = next((place for place, (_, line) in enumerate(rows) if line.lower().startswith(("channel", "laser"))), -1)
    for number, line in rows[header + 1 :]:  # before the header there may be a mark and a version
        if (number, line) == rows[-1] and "," not in line:
            continue  # a hash of the lines before
        fields = line.split(",")
        if len(fields) != len(_COLUMNS):
            raise CaptureError(f"{name}: line {number} must be channel, elevation and azimuth, got {line!r}")
        values = []
        for column, field in zip(_COLUMNS, fields, strict=True):
            try:
                values.append((int if column == "channel" else float)(field))
            except ValueError:
                raise CaptureError(f"{name}: line {number}: {column} must be a number, got {field.strip()!r}") from None
        channel, elevation, azimuth = values
        if channel in channels:
            raise CaptureError(f"{name}: line {number}: channel must be given once, got {channel} again")
        channels[int(channel)] = number, elevation, azimuth
    return _Text(name, channels)


def _calibrate(texts: Sequence[_Text], spec: HesaiSpec) -> _Calibration:
    (name, channels), *others = texts
    if others:
        raise CaptureError(f"{others[0].name}: must be the only text of the unit, got {name} too")
    if set(channels) != set(range(1, spec.laser_count + 1)):
        raise CaptureError(
            f"{name}: channels must be 1 to {spec.laser_count} of a {spec.model}, got {', '.join(map(str, sorted(channels))) or 'none'}"
        )
    errors = []
    for channel, *model_deg in zip(range(1, spec.laser_count + 1), spec.elevations_deg, spec.azimuths_deg, strict=True):
        number, *found_deg = channels[channel]
        for column, found, expected in zip(_COLUMNS[1:], found_deg, model_deg, strict=True):
            if not abs(found - expected) <= _LARGEST_ERROR_DEG:
                raise CaptureError(
                    f"{name}: line {number}: {column} must be within {_LARGEST_ERROR_DEG:g} deg of a {spec.model}'s {expected:g}, got {found:g}"
                )
        errors.append((round(found_deg[0] - model_deg[0], 6), round(found_deg[1] - model_deg[1], 6)))
    return _Calibration(name, spec.model, tuple(errors))


def _lines(found: _Calibration) -> list[tuple[str, bool]]:
    columns = zip(_KEYS, zip(*found.errors_deg, strict=True), strict=True)
    ranges = [(f"laser.{key}  {min(errors):+.3f} to {max(errors):+.3f} deg", True) for key, errors in columns]
    return [(f"{found.name}: {len(found.errors_deg)} channels of a {found.model}", True), *ranges]


def _unit(found: _Calibration) -> dict[str, Any]:
    return {"model": found.model, "laser": [dict(zip(_KEYS, errors, strict=True)) for errors in found.errors_deg]}


def _unit_toml(found: _Calibration, version: str) -> str:
    rows = (f"    {{ {_KEYS[0]} = {elevation!r}, {_KEYS[1]} = {azimuth!r} }},\n" for elevation, azimuth in found.errors_deg)
    head = f"# Angles of a {found.model}, as hilsim {version} has read them with `hilsim calibrate` from {found.name}: beyond the model's, channel 1 first.\n"
    return f'{head}model = "{found.model}"\nlaser = [\n{"".join(rows)}]\n'


PART = CalibrationPart(
    read=_read,
    reads_text=True,
    model=lambda _: "",
    calibrate=_calibrate,
    lines=_lines,
    to_json=lambda found: {"model": found.model, "captures": [{"name": found.name}], "unit": _unit(found), "figures": []},
    unit_toml=_unit_toml,
)
