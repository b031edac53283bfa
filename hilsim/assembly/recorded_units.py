"""From a replay with ``overlay = true`` to the objects in its recorded points: the recorded unit, its place, and what there is to see."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hilsim.assembly.build import Scenery
from hilsim.assembly.editing import EditableWorld
from hilsim.assets.trajectories import load_trajectory
from hilsim.background.survey import survey
from hilsim.capture.batches import CaptureBatches
from hilsim.capture.pcap import CaptureFile
from hilsim.capture.sensor_names import SensorNames
from hilsim.config.profiles import find_profile, read_profile
from hilsim.config.rig import Rig
from hilsim.config.sensor_profiles import parse_profile
from hilsim.emulator.insertion.insertion import Inserter
from hilsim.emulator.insertion.unit import BYTE_CLASSES, RANGE_CLASSES_M, RecordedUnit, build_cepton_unit, build_velodyne_unit
from hilsim.errors import CaptureError, ConfigError
from hilsim.families.cepton.recognition import CeptonKind
from hilsim.families.velodyne.protocol.models import BY_NAME, Model
from hilsim.families.velodyne.recognition import VelodyneKind
from hilsim.geometry.live_keys import NO_LIVE_KEYS, LiveKeys
from hilsim.geometry.poses import Pose, extrinsics
from hilsim.geometry.tracks import PoseTrack, fixed_track
from hilsim.limits import INSERTED_OBJECTS
from hilsim.protocols.recognise import PacketKind, recognise
from hilsim.replay.flows import find_rule
from hilsim.replay.inserting.unit_noise import UnitStatistics, measure_cepton, measure_velodyne
from hilsim.replay.specs import ReplaySpec
from hilsim.scene.world import SceneObject, build_world
from hilsim.sensor.optics.beam import build_beam
from hilsim.sensor.response import Response, build_response
from hilsim.sensor.signal.spec import SignalSpec
from hilsim.sensor.specs import LidarSpec

_STREAMS = 20_000
"""First random stream of recorded units, above those of sensors and of rovers' lidars."""
_PROFILES = {"VLP-16": "vlp16", "Puck Hi-Res": "vlp16", "HDL-32E": "hdl32e"}
_OTHER_PROFILE = "vlp16"
_MEASURED_PACKETS = 4000
_POINTS = VelodyneKind.DATA, CeptonKind.STDV


def moving_world(objects: Sequence[SceneObject], live: LiveKeys = NO_LIVE_KEYS) -> EditableWorld:
    """The objects of a scene as a world of which each is a mover, also what stands still: recorded firings are compared with the objects one by one.

    Raises:
        ConfigError: there are too many.
    """
    INSERTED_OBJECTS.enforce(len(objects), "scene", ConfigError)
    movers = [replace(thing, placement=fixed_track(thing.placement)) if isinstance(thing.placement, Pose) else thing for thing in objects]
    return EditableWorld.of(movers, build_world(movers, live=live))


@dataclass(frozen=True, kw_only=True)
class _Recording:
    """A capture's beginning: the model of the one sensor whose points are replayed, None for a Cepton, and its first payloads."""

    model: Model | None
    payloads: list[bytes]


def has_overlay(rig: Rig) -> bool:
    """Whether the scene of a rig is put into recorded points."""
    return any(replay.overlay for replay in rig.spec.replay)


def build_inserter(rig: Rig, number: int, scenery: Scenery) -> Inserter:
    """Objects for the points of ``rig.spec.replay[number]``, which has ``overlay = true``.

    Args:
        rig: The rig.
        number: Index of the replay.
        scenery: Scenery of the rig.

    Raises:
        AssetError: a file cannot be used.
        CaptureError: the capture cannot be read, or its sensor's model is not known.
        ConfigError: a key of the replay cannot be met.
    """
    spec = rig.spec.replay[number]
    where = f"{rig.path}: replay[{number}]"
    recording = _read(rig, spec, where)
    mount = extrinsics(spec.mount_position_m, spec.mount_rotation_deg)
    unit = _unit(rig, spec, _STREAMS + number, recording, mount, where)
    return Inserter(unit, _track(rig, spec, scenery, where), moving_world(scenery.objects, scenery.world.live).world)


def _track(rig: Rig, spec: ReplaySpec, scenery: Scenery, where: str) -> PoseTrack:
    """World from carrier, over capture time."""
    if spec.trajectory:
        return load_trajectory(rig.directory / spec.trajectory)
    if scenery.still_at is None:
        raise ConfigError(f"{where}.trajectory must be given for an overlay of a rig whose platform moves, got none")
    return fixed_track(scenery.still_at)


def _read(rig: Rig, spec: ReplaySpec, where: str) -> _Recording:
    path = rig.directory / spec.file
    payloads: dict[tuple[str, PacketKind], list[bytes]] = {}
    read, names = 0, SensorNames()
    for datagram in CaptureFile(path).datagrams():
        name = names.of(datagram)
        kind = recognise(datagram.payload)
        if kind in _POINTS and find_rule(spec.flow, datagram.flow) is not None:
            payloads.setdefault((name, kind), []).append(datagram.payload)
            read += 1
            if read >= _MEASURED_PACKETS:
                break
    if len(payloads) != 1:
        found = ", ".join(f"{address} ({kind})" for address, kind in payloads) or "none"
        raise CaptureError(
            f"{path}: an overlay must have the points of one Velodyne, or STDV points of one Cepton, got {found}: choose one by {where}.flow"
        )
    (address, kind), chosen = next(iter(payloads.items()))
    sensor = next(each for each in survey(iter(CaptureBatches(path)), address) if each.address == address and each.source.kind is kind)
    model = BY_NAME.get(sensor.source.model)
    if kind is VelodyneKind.DATA and model is None:
        raise CaptureError(f"{path}: an overlay must have a model whose lasers are known ({', '.join(BY_NAME)}), got {sensor}")
    return _Recording(model=model, payloads=chosen)


def _unit(rig: Rig, spec: ReplaySpec, stream: int, recording: _Recording, mount: Pose, where: str) -> RecordedUnit:
    model = recording.model
    if model is None and not spec.profile:
        raise ConfigError(f"{where}.profile must be given for an overlay of a Cepton's points, got none")
    profile = _profile(rig, spec.profile or _PROFILES.get(model.name if model else "", _OTHER_PROFILE), where)
    profile = replace(profile, signal=SignalSpec())  # the model's grid would be right only with the unit's own correction, which is not known
    beam = build_beam(replace(profile.beam, receiver_offset_mm=0.0), spec.sub_rays)
    if model is None:
        response = build_response(profile, seed=rig.spec.seed, stream=stream)
        return build_cepton_unit(response, beam, mount, _noise_m(measure_cepton(recording.payloads), response))
    statistics = measure_velodyne(recording.payloads, model.geometry)
    response = _velodyne_response(build_response(profile, seed=rig.spec.seed, stream=stream), model)
    return build_velodyne_unit(
        model.geometry,
        response,
        beam,
        mount,
        _noise_m(statistics, response),
        stamps_last_firing=model.stamps_last_firing,
        no_return=np.array(statistics.no_return, np.uint8),
    )


def _profile(rig: Rig, name: str, where: str) -> LidarSpec:
    try:
        path = find_profile("sensors", name, rig.directory)
    except ConfigError as error:
        raise ConfigError(f"{where}.{error}") from error
    return parse_profile(read_profile(path), str(path))


def _velodyne_response(response: Response, model: Model) -> Response:
    """Response of a profile with the unit and the limits of a model's ranges."""
    unit_m = model.geometry.distance_unit_mm * 1e-3
    return response._replace(
        unit_m=unit_m, range_min_m=model.floor_raw * unit_m, range_max_m=model.farthest_raw * unit_m, code_max=model.limit_raw, is_cepton=False
    )


def _noise_m(statistics: UnitStatistics, response: Response) -> npt.NDArray[np.float64]:
    """Range noise as measured, or the profile's for strong echoes where the recording is too short."""
    if statistics.noise_m is not None:
        return statistics.noise_m
    return np.full((len(BYTE_CLASSES) + 1, len(RANGE_CLASSES_M) + 1), response.noise_m)
