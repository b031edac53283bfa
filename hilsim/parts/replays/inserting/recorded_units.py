"""Emulators that insert objects into the points of a replay with ``overlay = true``: the recorded unit, its pose and its scene."""

from dataclasses import replace

import numpy as np

from hilsim.assembly.build import Scenery
from hilsim.assembly.editing import moving_world
from hilsim.capture.pcap import CaptureFile
from hilsim.capture.sensor_names import SensorNames
from hilsim.config.profiles import find_profile, read_profile
from hilsim.config.rig import Rig
from hilsim.config.sensor_profiles import parse_profile
from hilsim.emulator.insertion.insertion import Inserter
from hilsim.emulator.insertion.part import InsertionPart, RecordedSensor
from hilsim.emulator.insertion.unit import BYTE_CLASSES, RANGE_CLASSES_M, RecordedUnit
from hilsim.errors import CaptureError, ConfigError
from hilsim.parts.replays.flows import find_rule
from hilsim.parts.replays.inserting.unit_noise import measured_noise_m
from hilsim.parts.replays.specs import ReplaySpec
from hilsim.protocols.recognise import PacketKind, recognise
from hilsim.registry import family_parts
from hilsim.sensor.optics.beam import build_beam
from hilsim.sensor.response import build_response
from hilsim.sensor.signal.spec import SignalSpec
from hilsim.sensor.specs import LidarSpec
from hilsim.world.assets.trajectories import load_trajectory
from hilsim.world.geometry.poses import Pose, extrinsics
from hilsim.world.geometry.tracks import PoseTrack, fixed_track

_STREAMS = 20_000
"""First random stream of recorded units, above those of sensors and of parts."""
_MEASURED_PACKETS = 4000


def build_inserter(rig: Rig, number: int, scenery: Scenery) -> Inserter:
    """Objects for the points of a replay with ``overlay = true``.

    Args:
        rig: The rig.
        number: Number of its table.
        scenery: Scenery of the rig.

    Raises:
        AssetError: a file cannot be used.
        CaptureError: the capture cannot be read, or its sensor's model is not known.
        ConfigError: a key of the replay cannot be met.
    """
    spec: ReplaySpec = rig.spec.part("replay")[number]
    where = f"{rig.path}: replay[{number}]"
    mount = extrinsics(spec.mount_position_m, spec.mount_rotation_deg)
    unit = _unit(rig, spec, _STREAMS + rig.settings["replay"][number], mount, where)
    return Inserter(unit, _track(rig, spec, scenery, where), moving_world(scenery.objects, scenery.world.live).world)


def _track(rig: Rig, spec: ReplaySpec, scenery: Scenery, where: str) -> PoseTrack:
    """World from carrier, over capture time."""
    if spec.trajectory:
        return load_trajectory(rig.directory / spec.trajectory)
    if scenery.still_at is None:
        raise ConfigError(f"{where}.trajectory must be given for an overlay of a rig whose platform moves, got none")
    return fixed_track(scenery.still_at)


def _read(rig: Rig, spec: ReplaySpec, where: str) -> tuple[RecordedSensor, InsertionPart]:
    """The one sensor whose points are replayed, by the capture's beginning, and its family's part."""
    path = rig.directory / spec.file
    parts = {family: module.PART for family, module in family_parts("insertion").items()}
    payloads: dict[tuple[str, PacketKind], list[bytes]] = {}
    read, names = 0, SensorNames()
    for datagram in CaptureFile(path).datagrams():
        name, kind = names.of(datagram), recognise(datagram.payload)
        if kind.facts.is_decoded and kind.facts.family in parts and find_rule(spec.flow, datagram.flow) is not None:
            payloads.setdefault((name, kind), []).append(datagram.payload)
            read += 1
            if read >= _MEASURED_PACKETS:
                break
    if len(payloads) != 1:
        found = ", ".join(f"{name} ({parts[kind.facts.family].packets})" for name, kind in payloads) or "none"
        known = " or ".join(part.packets for part in parts.values())
        raise CaptureError(f"{path}: an overlay must have {known}, of one sensor, got {found}: choose one by {where}.flow")
    ((name, kind), chosen) = next(iter(payloads.items()))
    part = parts[kind.facts.family]
    try:
        return part.recorded(chosen), part
    except CaptureError as error:
        raise CaptureError(f"{path}: {name}: {error}") from error


def _unit(rig: Rig, spec: ReplaySpec, stream: int, mount: Pose, where: str) -> RecordedUnit:
    recorded, part = _read(rig, spec, where)
    if not (spec.profile or recorded.profile):
        raise ConfigError(f"{where}.profile must be given for an overlay of {part.packets}, got none")
    profile = _profile(rig, spec.profile or recorded.profile, where)
    profile = replace(profile, signal=SignalSpec())  # the model's grid would be right only with the unit's own correction, which is not known
    response = build_response(profile, seed=rig.spec.seed, stream=stream)
    noise_m = measured_noise_m(recorded.ranges)
    if noise_m is None:  # the profile's for strong echoes
        noise_m = np.full((len(BYTE_CLASSES) + 1, len(RANGE_CLASSES_M) + 1), response.noise_m)
    return recorded.unit(response, build_beam(replace(profile.beam, receiver_offset_mm=0.0), spec.sub_rays), mount, noise_m)


def _profile(rig: Rig, name: str, where: str) -> LidarSpec:
    try:
        path = find_profile("sensors", name, rig.directory)
    except ConfigError as error:
        raise ConfigError(f"{where}.{error}") from error
    return parse_profile(read_profile(path), str(path))
