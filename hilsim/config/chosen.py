"""Part of a rig that one of several daemons runs: sensors, replays and parts chosen by their names (``hilsim run --only``)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from hilsim.config.part_kind import parts_of
from hilsim.config.places import did_you_mean
from hilsim.config.rig import Rig
from hilsim.config.script import ChangeSpec, ReplayChange, Script, SensorChange
from hilsim.errors import ConfigError


def chosen(rig: Rig, names: Iterable[str]) -> Rig:
    """Part of a rig with the sensors, replays and parts of some names; the whole rig for no names.

    What is chosen sends the bytes that it sends in the whole rig: numbers, random streams and MAC addresses stay those of the whole rig. Changes of a script
    that concern nothing chosen are left out; range sensors and lidars of a Gazebo world belong to no name and always run.

    Args:
        rig: The whole rig.
        names: Names of sensors, replays and parts.

    Raises:
        ConfigError: a name is unknown, or the rest of the rig cannot run without what is not chosen; the message names all faults, one per line.
    """
    only = frozenset(names)
    if not only:
        return rig
    faults = [f"{rig.path}: {fault}" for fault in _faults(rig, only)]
    if faults:
        raise ConfigError("\n".join(faults))
    spec = rig.spec
    backgrounds = tuple(each for each in spec.scene.background if not each.sensor or each.sensor in only)
    return replace(
        rig,
        spec=replace(
            spec,
            scene=replace(spec.scene, background=backgrounds),
            sensor=tuple(sensor for sensor in spec.sensor if sensor.name in only),
            parts=_kept(rig, spec.parts, only),
        ),
        lidars=tuple(lidar for lidar in rig.lidars if lidar.name in only),
        settings=_kept(rig, rig.settings, only),
        sources=tuple((name, source) for name, source in rig.sources if name in only),
        script=_chosen_script(rig, only),
    )


def _faults(rig: Rig, only: frozenset[str]) -> Iterator[str]:
    spec = rig.spec
    known = _names(rig)
    for name in sorted(only - set(known)):
        hint = did_you_mean(name, known)
        yield f'--only must name sensors, replays or parts of the rig ({", ".join(known)}), got "{name}"{hint}'
    for kind, _ in parts_of(spec):
        if kind.undivided:
            yield f"--only must not be given for a rig with a [{kind.table}]: {kind.undivided}"
    apart = [each.sensor for each in spec.scene.background if each.sensor and each.sensor not in only]
    if spec.platform.kind == "background" and apart:
        yield f'--only must name {", ".join(apart)} too: platform.kind "background" is where the backgrounds of its sensors were captured'


def _kept(rig: Rig, entries: Mapping[str, tuple[Any, ...]], only: frozenset[str]) -> dict[str, tuple[Any, ...]]:
    """Entries of parts that are chosen or have no name, by the names of their tables."""
    kept = {
        kind.table: tuple(entry for each, entry in zip(specs, entries[kind.table], strict=True) if kind.name(each) in {"", *only})
        for kind, specs in parts_of(rig.spec)
    }
    return {table: chosen for table, chosen in kept.items() if chosen}


def _names(rig: Rig) -> list[str]:
    """Names of what can be chosen."""
    return [*rig.sensors, *filter(None, (kind.name(each) for kind, specs in parts_of(rig.spec) for each in specs))]


def _chosen_script(rig: Rig, only: frozenset[str]) -> Script | None:
    """Script without the changes of sensors and replays that are not chosen."""
    apart = frozenset(_names(rig)) - only
    return rig.script and rig.script._replace(changes=tuple(change for change in rig.script.changes if _target(change) not in apart))


def _target(change: ChangeSpec) -> str:
    """Name of the sensor or replay that a change concerns; empty: all."""
    if isinstance(change, SensorChange):
        return change.sensor
    return change.replay if isinstance(change, ReplayChange) else ""
