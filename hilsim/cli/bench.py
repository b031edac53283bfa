"""``hilsim bench``: measure how many sensors this machine carries."""

import asyncio
import dataclasses
import json
import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hilsim.cli.rigs import RigArgument
from hilsim.cli.terminal.live_line import LiveLine
from hilsim.config.places import rig_path
from hilsim.errors import CommandFaultError
from hilsim.limits import SENSORS

if TYPE_CHECKING:
    from hilsim.cli.diagnosis.fleet import Fleet, FleetTrial
    from hilsim.cli.diagnosis.ray_speed import RaySpeed

_RAYS_PER_BEAM = (1, 7)

_EXAMPLES = """\b
Examples:
  hilsim bench                       with the demo's VLP-16 in its street
  hilsim bench my.toml               with the first sensor of my.toml, in its scene
  hilsim bench --seconds 60 --json
"""


@click.command(epilog=_EXAMPLES)
@click.argument("rig", type=RigArgument(), required=False)
@click.option("--seconds", type=click.FloatRange(1.0, 3600.0), default=10.0, show_default=True, help="Duration of each trial.")
@click.option("--most", type=click.IntRange(1, SENSORS.bound), default=SENSORS.bound, show_default=True, help="Largest number of sensors to try.")
@click.option("--rays/--no-rays", "casts", default=True, help="Also measure rays a second, or only sensors.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def bench(*, rig: Path | None, seconds: float, most: int, casts: bool, as_json: bool) -> None:
    """Measure what this machine carries: rays a second by the size of the scene, and how many sensors like the first of RIG (by default the demo's).

    The cost of one sensor is measured; as many as should fit beside other work are then rendered and sent over real sockets on this machine, with one
    and with seven rays a beam. Exits with 1 if not even one is carried. Takes about a minute, and compiles missing kernels first.
    """
    from hilsim.cli.diagnosis.fleet import fleet_rig, measure_fleet  # noqa: PLC0415
    from hilsim.cli.diagnosis.machine import processor_text, usable_cores  # noqa: PLC0415
    from hilsim.cli.diagnosis.ray_speed import ray_speeds  # noqa: PLC0415
    from hilsim.cli.warm import warmed  # noqa: PLC0415 - imports Numba

    path = rig or rig_path("demo")
    for rays in _RAYS_PER_BEAM:
        asyncio.run(warmed(fleet_rig(path, 1, rays, (1, 2))))
    cores, line = usable_cores(), LiveLine(is_watched=sys.stderr.isatty())
    machine = {"processor": processor_text(), "cores": cores, "system": platform.platform(), "load": os.getloadavg()[0]}
    speeds = tuple(ray_speeds(cores, line.step)) if casts else ()
    fleets = tuple(measure_fleet(path, rays, seconds, line.step, most) for rays in _RAYS_PER_BEAM)
    line.erase()
    if as_json:
        click.echo(
            json.dumps({"machine": machine, "rays": [dataclasses.asdict(speed) for speed in speeds], "fleets": list(map(_table, fleets))}, indent=2)
        )
    else:
        click.echo(f"{machine['processor']}, {cores} core(s) for this process, {machine['system']}, load {machine['load']:.1f} before")
        if speeds:
            _print_speeds(speeds, cores)
        _print_fleets(fleets, cores)
    if not any(fleet.carried for fleet in fleets):
        raise CommandFaultError


def _table(fleet: "Fleet") -> dict[str, Any]:
    trials = [dataclasses.asdict(trial) | {"holds": trial.holds} for trial in fleet.trials]
    of_one = {"us_per_packet": fleet.load.cost_ns / 1e3, "packets_per_s": fleet.load.rate_hz, "cores": fleet.load.share}
    return {
        "model": fleet.model,
        "rays_per_beam": fleet.load.rays,
        "one": of_one,
        "beside_others": fleet.beside_others,
        "alone": fleet.alone,
        "carried": fleet.carried,
        "trials": trials,
    }


def _print_speeds(speeds: "tuple[RaySpeed, ...]", cores: int) -> None:
    click.secho(f"\nmillion rays a second   triangles   built in   rays a beam   one core   {cores} core(s)", bold=True)
    for speed in speeds:
        click.echo(
            f"{speed.scene:21} {speed.triangles:11,} {speed.build_s:8.2f} s {speed.rays_per_beam:13}"
            f" {speed.one_core_mrays_per_s:10.1f} {speed.all_cores_mrays_per_s:11.1f}"
        )


def _print_fleets(fleets: "tuple[Fleet, ...]", cores: int) -> None:
    for fleet in fleets:
        load = fleet.load
        rays = f"{load.rays} ray{'s' if load.rays > 1 else ''} a beam"
        click.secho(f"\n{fleet.model}, {rays}", bold=True)
        click.echo(f"  one takes {load.cost_ns / 1e3:.0f} us a packet, {load.rate_hz:.0f} packets a second: {load.share:.2f} of a core")
        click.echo(f"  of {cores} core(s), {fleet.beside_others} should fit beside other work, {fleet.alone} if nothing else runs")
        for trial in fleet.trials:
            click.echo(f"  {_told(trial)}")
        if fleet.carried:
            more = ", and no more were tried (--most)" if fleet.carried < fleet.beside_others and fleet.trials[0].holds else ""
            click.secho(f"  this machine carries {fleet.carried}{more}", fg="green", bold=True)
        else:
            click.secho("  this machine carries none: use fewer rays a beam (sub_rays), a smaller scene, or more cores", fg="red", bold=True)


def _told(trial: "FleetTrial") -> str:
    """Result of a trial in one line."""
    given_up = ", with fewer rays a beam to keep up" if trial.rays_given_up else ""
    return (
        f"tried {trial.sensors} for {trial.seconds:.0f} s: {trial.packets:,} packets, {trial.left_out_packets:,} left out{given_up},"
        f" late {trial.lateness_p50_us:.0f} us (median), {trial.lateness_p99_us:,.0f} us (p99), {trial.used_cores:.2f} cores, {trial.scheduling}"
    )
