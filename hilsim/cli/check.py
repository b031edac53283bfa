"""``hilsim check``: validate a rig and print its effective configuration."""

import dataclasses
import json
import os
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hilsim.cli.rigs import RigArgument, changes, changing, loaded
from hilsim.config.part_tables import part_kind
from hilsim.config.places import SDF_SUFFIXES
from hilsim.registry import OWN_PARTS

if TYPE_CHECKING:
    from hilsim.assembly.build import Scenery
    from hilsim.config.rig import Rig


@click.command()
@click.argument("rig", type=RigArgument())
@changing
@click.option("--json", "as_json", is_flag=True, help="Print the effective configuration as JSON.")
@click.option(
    "--cost/--no-cost", default=None, help="Measure what rendering costs on this machine, or not. Default: only if kernels are already compiled."
)
def check(rig: Path, *, to: str, settings: tuple[str, ...], as_json: bool, cost: bool | None) -> None:
    """Validate RIG with everything it names, and print the effective configuration."""
    from hilsim.assembly.build import triangle_count  # noqa: PLC0415 - compiles kernels
    from hilsim.config.part_kind import parts_of, sees_scene  # noqa: PLC0415
    from hilsim.daemon.parts import RigContext  # noqa: PLC0415
    from hilsim.emulator.planning import build_lidar_plan  # noqa: PLC0415

    checked = loaded(rig, changes(settings, to))
    context = RigContext(rig=checked)
    scenery = context.scenery(checked) if checked.spec.sensor or sees_scene(checked.spec) else None
    for setting in checked.lidars:
        build_lidar_plan(setting, seed=checked.spec.seed, utc_epoch_ns=0)
    is_scenery = _is_scenery_alone(checked, scenery)
    running = [kind for kind, specs in parts_of(checked.spec) if not is_scenery and not any(kind.runner(checked, each, ()) for each in specs)]
    parts = [part for kind in running if (part := kind.part(context)) is not None]  # of one that has a runner the daemon runs nothing
    for part in parts:
        part.prepare()
    if as_json:
        click.echo(json.dumps(effective(checked), indent=2))
        return
    click.echo("\n".join(_lines(effective(checked))))
    for note in (
        *(scenery.notes if scenery else ()),
        *_mesh_notes(checked, scenery),
        *_address_notes(checked),
        *(note for part in parts for note in part.check_notes()),
        *_machine_notes(checked),
    ):
        click.secho(f"note: {note}", fg="yellow", err=True)
    if is_scenery:
        click.secho(f"note: {rig} has no lidar: it cannot run by itself, but only as the scene of a rig ([scene] sdf)", fg="yellow", err=True)
    if scenery is not None and checked.lidars and cost is not False:
        _say_cost(checked, scenery, is_wanted=cost is True)
    seen = f", {triangle_count(scenery.world):,} triangles" if scenery else ""
    others = f", {len(checked.spec.serial_devices)} serial device(s)" if checked.spec.serial_devices else ""
    others += "".join(f", {part.summary}" for part in parts if part.summary)
    click.secho(f"{rig}: sound; {len(checked.lidars)} sensor(s){seen}{others}", fg="green", err=True)


def _is_scenery_alone(rig: "Rig", scenery: "Scenery | None") -> bool:
    """Whether the rig is a world or model without a lidar, which is valid, but can only be used by another rig."""
    return rig.path.suffix.lower() in SDF_SUFFIXES and scenery is not None and scenery.sdf is not None and not scenery.sdf.lidars


def _mesh_notes(rig: "Rig", scenery: "Scenery | None") -> list[str]:
    """Size in the world of each mesh that does not move, and the axis of its file that is upright there."""
    from hilsim.world.assets.meshes import has_y_up  # noqa: PLC0415
    from hilsim.world.geometry.poses import Pose  # noqa: PLC0415
    from hilsim.world.geometry.rotations import matrix_from_quaternion  # noqa: PLC0415

    placed = {each.name: each for each in scenery.objects if isinstance(each.placement, Pose)} if scenery is not None else {}
    notes = []
    for spec in rig.spec.scene.mesh:
        if (found := placed.get(spec.name)) is not None and isinstance(found.placement, Pose):
            vertices = found.mesh.vertices_m @ matrix_from_quaternion(found.placement.orientation).T
            x_m, y_m, z_m = vertices.max(axis=0) - vertices.min(axis=0)
            axis = "y" if has_y_up(spec, rig.directory / spec.file) else "z"
            notes.append(f'{spec.file}: {x_m:.3g} m along x, {y_m:.3g} along y, {z_m:.3g} high; {axis} of the file is upright (up = "{spec.up}")')
    return notes


def _address_notes(rig: "Rig") -> list[str]:
    """Source addresses that this host lacks, and those that several sensors have."""
    from hilsim.cli.diagnosis.addresses import examine_addresses  # noqa: PLC0415

    by_source = defaultdict(list)
    for sensor in rig.spec.sensor:
        by_source[sensor.network.source, sensor.network.data_port].append(sensor.name)
    missing = [each for each in examine_addresses(rig) if each.verdict == "bad" and each.subject.startswith("address of ")]
    return [
        *dict.fromkeys(f"{each.fact}, so hilsim run fails here: {each.advice}" for each in missing),
        *(
            f"{' and '.join(names)} send from one address, {source}, to one port, by which tools tell sensors apart: give each its own (network.source)"
            for (source, _), names in by_source.items()
            if len(names) > 1
        ),
    ]


def _machine_notes(rig: "Rig") -> list[str]:
    """Remarks on settings of the rig that this machine cannot apply, although another may."""
    cores, requested = sorted(os.sched_getaffinity(0)), rig.spec.transmit.cpu
    notes = [f"{host} is {address}" for host, address in rig.hosts]
    notes += [
        f"packets of {sensor} are sent from {source}, because no other host receives packets from a loopback address"
        for sensor, source in rig.sources
    ]
    if requested >= 0 and requested not in cores:
        notes.append(f"transmit.cpu must be one this process may use ({', '.join(map(str, cores))}), got {requested}: hilsim run would fail here")
    return notes


def _say_cost(rig: "Rig", scenery: "Scenery", *, is_wanted: bool) -> None:
    """Print on stderr whether the rig fits this machine."""
    from hilsim.daemon.precompile import is_compiled  # noqa: PLC0415
    from hilsim.daemon.streaming.capacity import measure_capacity  # noqa: PLC0415 - compiles kernels

    if not is_wanted and not is_compiled(rig):
        click.secho(
            "note: the cost of rendering is unknown, because not all kernels of this rig are compiled yet (--cost compiles them)",
            fg="yellow",
            err=True,
        )
        return
    capacity = measure_capacity(rig, scenery)
    click.secho(f"note: {capacity.sentence}", fg=None if capacity.is_civil else "yellow", err=True)


def effective(rig: "Rig") -> dict[str, Any]:
    """The rig with all defaults and profile values, including those that depend on the model."""
    table = dataclasses.asdict(rig.spec)
    for entry, sensor, lidar in zip(table["sensor"], rig.spec.sensor, rig.lidars, strict=True):
        entry["clock"]["sync"] = "pps" if lidar.follows_pulse else "free"
        entry["network"] |= lidar.family.effective_ports(sensor.network.data_port, sensor.network.position_port)
        entry.update(lidar.family.effective_setup())
        entry["model"] = dataclasses.asdict(lidar.spec)
        del entry["override"]
    given = table.pop("parts")
    for kind in filter(None, map(part_kind, {**OWN_PARTS, **given})):
        entries = given.get(kind.table, ())
        table[kind.table] = entries if kind.is_list else next(iter(entries), None)
    table["sink"] = [{"kind": sink.kind, "name": sink.name, **dataclasses.asdict(sink.settings)} for sink in rig.sinks]
    return table


def _lines(value: Any, path: str = "") -> list[str]:
    """Lines ``key = value``, one for each setting; short lists are on one line."""
    if isinstance(value, dict) and value:
        return [line for key, part in value.items() for line in _lines(part, f"{path}.{key}" if path else str(key))]
    if isinstance(value, (list, tuple)) and any(isinstance(part, dict) for part in value):
        return [line for index, part in enumerate(value) for line in _lines(part, f"{path}[{index}]")]
    return [f"{path} = {json.dumps(value)}"]
