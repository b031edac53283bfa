"""``hilsim calibrate``: learn one's own sensor from captures of it."""

import json
import os
from pathlib import Path
from typing import Any

import click

from hilsim.capture.pcap import CaptureFile
from hilsim.cli.terminal.progress import watched
from hilsim.config.places import shipped_names
from hilsim.config.profiles import find_profile, read_profile
from hilsim.config.sensor_profiles import parse_profile
from hilsim.errors import CaptureError
from hilsim.read.analysis.calibration import CalibrationPart
from hilsim.registry import family_parts
from hilsim.sensor.specs import LidarSpec
from hilsim.version import __version__


class UnitFile(click.ParamType[Path]):
    """The file of a unit to write, checked before captures are read."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Convert to a path."""
        path = Path(value)
        if path.suffix.lower() != ".toml":
            self.fail(f"must end in .toml, got {path}", param, ctx)
        if path.is_dir() or not path.parent.is_dir():
            self.fail(f"must be a file in an existing directory, got {path}", param, ctx)
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            self.fail(f"must be a writable file, got {path}", param, ctx)
        return path


@click.command()
@click.argument("captures", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path), metavar="CAPTURE...")
@click.option("-o", "--output", type=UnitFile(), help="Write the unit's file, which a rig names with `unit`.")
@click.option("--profile", default="", metavar="NAME", help="Profile of the model; by default the shipped one of the captures' model.")
@click.option(
    "--sensor",
    default="",
    metavar="ADDRESS",
    help="Address of the sensor, with :PORT where several have one; needed if there are several in a capture.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def calibrate(*, captures: tuple[Path, ...], output: Path | None, profile: str, sensor: str, as_json: bool) -> None:
    """Learn a Velodyne unit from CAPTUREs of it, made while it stood still: its lasers, its encoder, its clock. Of a Hesai (--profile), its calibration text.

    A minute in front of walls and a floor is enough. Each figure is printed with its number of samples, or with the reason why it was not learned.
    """
    parts = family_parts("calibration")
    named = getattr(_profile(profile), "family", "") if profile else ""
    family = named if named in parts else next(iter(parts))  # captures are of one family
    part: CalibrationPart = parts[family].PART
    recordings = [_read(part, path, sensor, as_json=as_json) for path in captures]
    calibration = part.calibrate(recordings, _model(family, part.model(recordings[0]), captures[0].name, profile))
    if output is not None:
        output.write_text(part.unit_toml(calibration, __version__), encoding="utf-8")
    if as_json:
        click.echo(json.dumps(part.to_json(calibration)))
        return
    for text, is_learned in part.lines(calibration):
        click.secho(text, fg=None if is_learned else "yellow")
    if output is not None:
        click.echo(f'written to {output}; use it in a rig with [[sensor]] unit = "{output.name}"')


def _read(part: CalibrationPart, path: Path, sensor: str, *, as_json: bool) -> Any:
    if part.reads_text:
        return part.read(_text_lines(path), path.name, sensor)
    file = CaptureFile(path)
    with watched(file) as datagrams:
        recording = part.read(datagrams, path.name, sensor)
    if not as_json:
        for note in file.notes.lines():
            click.secho(f"note: {path.name}: {note}", fg="yellow", err=True)
    return recording


def _text_lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise CaptureError(f"{path}: cannot be opened: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CaptureError(f"{path}: must be a calibration text, got byte 0x{error.object[error.start]:02x} at {error.start}") from None


def _profile(name: str) -> LidarSpec:
    path = find_profile("sensors", name, Path())
    return parse_profile(read_profile(path), str(path))


def _model(family: str, model: str, name: str, profile: str) -> LidarSpec:
    """Specification of the model that a recording shows.

    Args:
        family: Family of the model.
        model: Name of the model.
        name: Name of the recording in errors.
        profile: Profile that the user names; empty: the shipped one of the model.

    Raises:
        CaptureError: no shipped profile is of that model, or the named one is of another family.
        ConfigError: the named profile has faults.
    """
    names = [profile] if profile else shipped_names("sensors")
    for each in names:
        spec = _profile(each)
        if getattr(spec, "family", "") == family and (profile or spec.model == model):
            return spec
    raise CaptureError(f"{name}: the profile must be of a {model}, got {' or '.join(names)}")
