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
from hilsim.families.velodyne.calibration.calibrate import calibrate as learn
from hilsim.families.velodyne.calibration.recording import Recording, read_recording
from hilsim.families.velodyne.calibration.report import render_lines, to_json, unit_toml
from hilsim.families.velodyne.specs import VelodyneSpec
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
    """Learn a Velodyne unit from CAPTUREs of it, made while it stood still: its lasers, its encoder, its clock.

    A minute in front of walls and a floor is enough. Each figure is printed with its number of samples, or with the reason why it was not learned.
    """
    recordings = [_read(path, sensor, as_json=as_json) for path in captures]
    calibration = learn(recordings, _model(recordings[0], profile))
    if output is not None:
        output.write_text(unit_toml(calibration, __version__), encoding="utf-8")
    if as_json:
        click.echo(json.dumps(to_json(calibration)))
        return
    for text, is_learned in render_lines(calibration):
        click.secho(text, fg=None if is_learned else "yellow")
    if output is not None:
        click.echo(f'written to {output}; use it in a rig with [[sensor]] unit = "{output.name}"')


def _read(path: Path, sensor: str, *, as_json: bool) -> Recording:
    file = CaptureFile(path)
    with watched(file) as datagrams:
        recording = read_recording(datagrams, name=path.name, sensor=sensor)
    if not as_json:
        for note in file.notes.lines():
            click.secho(f"note: {path.name}: {note}", fg="yellow", err=True)
    return recording


def _model(recording: Recording, profile: str) -> VelodyneSpec:
    """Specification of the model that a recording shows.

    Raises:
        CaptureError: no shipped profile is of that model, or the named one is of none with a rotating head.
        ConfigError: the named profile has faults.
    """
    names = [profile] if profile else shipped_names("sensors")
    for name in names:
        path = find_profile("sensors", name, Path())
        spec = parse_profile(read_profile(path), str(path))
        if isinstance(spec, VelodyneSpec) and (profile or spec.model == recording.model.name):
            return spec
    raise CaptureError(f"{recording.name}: the profile must be of a {recording.model.name}, got {' or '.join(names)}")
