"""The replays of a rig without a clock."""

from collections.abc import Iterator, Sequence

from hilsim.assembly.changed import inserted_worlds
from hilsim.config.part_kind import has_overlay
from hilsim.config.script import ReplayChange, Script
from hilsim.offline.spans import OfflineRig
from hilsim.parts.replays.actions.timed import Action
from hilsim.parts.replays.flows import LoopbackSources, taken_addresses
from hilsim.parts.replays.inserting.recorded_units import build_inserter
from hilsim.parts.replays.offline import OfflineReplay, TimedAction
from hilsim.parts.replays.recorded.plan import begin_times_ns
from hilsim.parts.replays.specs import ReplaySpec


def offline_replays(offline: OfflineRig, threads: int) -> Iterator[tuple[str, OfflineReplay]]:
    """Names and replays of a rig, each at its beginning; a number of threads puts objects into captures.

    Raises:
        AssetError: a file cannot be used.
        CaptureError: a capture cannot be replayed.
        ConfigError: a key of a replay cannot be met.
    """
    rig, scenery = offline.rig, offline.first_scenery
    specs: Sequence[ReplaySpec] = rig.spec.part("replay")
    sources = LoopbackSources(taken=taken_addresses(rig))
    inserters = [build_inserter(rig, number, scenery) if spec.overlay and scenery else None for number, spec in enumerate(specs)]
    replays = [
        OfflineReplay(spec, rig.directory / spec.file, sources, utc_epoch_ns=offline.utc_epoch_ns, inserter=inserter, threads=threads)
        for spec, inserter in zip(specs, inserters, strict=True)
    ]
    begins_ns = begin_times_ns([(spec, replay.first_ns) for spec, replay in zip(specs, replays, strict=True)])
    changes = inserted_worlds(rig, scenery, offline.script) if offline.script and scenery and has_overlay(rig.spec) else []
    for spec, replay, begin_ns in zip(specs, replays, begins_ns, strict=True):
        replay.begin_ns = begin_ns
        replay.actions.extend(_actions(spec, offline.script))
        replay.later_worlds.extend((change.sensor_ns(spec.name), world) for change, world in changes if spec.overlay)
        yield spec.name, replay


def _actions(spec: ReplaySpec, script: Script | None) -> Iterator[TimedAction]:
    """Pauses and seeks of a replay that a script lists, in their order."""
    changes = [change for change in script.changes if isinstance(change, ReplayChange) and change.concerns(spec.name)] if script is not None else []
    for change in sorted(changes, key=lambda change: change.sensor_ns(spec.name)):
        at_ns = change.sensor_ns(spec.name)
        if change.pause:
            yield TimedAction(at_ns, Action.PAUSE)
        if change.seek_s is not None:
            yield TimedAction(at_ns, Action.SEEK, round(change.seek_s * 1e9))
        if change.pause is False:
            yield TimedAction(at_ns, Action.RESUME)
