"""Events of a rig, of a capture, and of packets as they come, in the order of time."""

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.api.emulator import Emulator
from hilsim.api.packet import Packet, captured_packets, datagrams_of
from hilsim.api.points import Scan as RigScan
from hilsim.capture.batches import gathered
from hilsim.capture.metadata import NONE, given_metadata
from hilsim.config.rig import Rig
from hilsim.config.tables.classes import ClassSpec
from hilsim.emulator.inertial import STANDARD_GRAVITY_MPS2
from hilsim.errors import CaptureError
from hilsim.protocols.nmea_reading import read_sentence
from hilsim.protocols.recognise import recognise
from hilsim.read.scans.part import ScansPart
from hilsim.read.scans.points import further_fields
from hilsim.read.scans.scan import Scan, ScanPackets
from hilsim.read.scans.streams import SensorStreams
from hilsim.registry import family_part
from hilsim.sensor.echoes import EchoChoice
from hilsim.show.outputs.classes import classes_of_rig
from hilsim.show.outputs.events import (
    FIRST,
    LAST,
    SECOND,
    STRONGEST,
    UNKNOWN,
    BodyPose,
    Event,
    Fix,
    OutputScan,
    SceneShapes,
    SourceInfo,
    first_time_ns,
    output_points,
)
from hilsim.show.outputs.formats import Shapes
from hilsim.show.outputs.scene import too_large
from hilsim.world.geometry.frames import BODY_FROM_SENSOR
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import conjugate, multiply, rotation_vector

_NEAR_NS = 30_000_000_000
"""Most by which the clock of a sensor that counts UTC differs from the host's; beyond, it counts something else."""
_POSE_NS = 20_000_000
"""Time between the poses of a rig's body."""
_SHAPES_NS = 100_000_000
"""Time between the poses of a rig's moving objects."""
_PACKETS_AT_ONCE = 1024
_TYPES = {"unknown": UNKNOWN, "first": FIRST, "strongest": STRONGEST, "last": LAST, "second": SECOND}
"""``return_type`` by name; the other return of a Velodyne's pair is the strongest or the second strongest."""
_TYPES_BY_MODE = {
    mode: np.array([_TYPES[name] for name in names], np.uint8)
    for mode, names in (
        ("unknown", ("unknown",)),
        ("first", ("first",)),
        ("strongest", ("strongest",)),
        ("last", ("last",)),
        ("dual", ("last", "second")),
    )
}
NO_CLASSES: Mapping[str, ClassSpec] = MappingProxyType({})
SENSOR_FROM_ROS = Pose(orientation=conjugate(BODY_FROM_SENSOR))
"""A sensor's ROS axes (x forward, y left) in its sensor frame (x right, y forward)."""


def rig_events(
    rig: Rig,
    duration_s: float,
    *,
    with_packets: bool,
    shapes: Shapes = "none",
    threads: int | None = None,
    classes: Mapping[str, ClassSpec] = NO_CLASSES,
    script: Path | None = None,
) -> tuple[SourceInfo, Iterator[Event]]:
    """Events of a rig within ``duration_s`` of rig time, with ground truth.

    Args:
        rig: The rig.
        duration_s: Length of rig time.
        with_packets: Whether packets are among the events, which renders them once more.
        shapes: When the scene's objects are among the events: never, ten times a second, or at the stamp of each scan, before it.
        threads: Number of rendering threads; None: one a core.
        classes: Classes by label, which replace the rig's.
        script: File of timed changes.

    Raises:
        HilsimError: the rig cannot be emulated, or a label has no class; also while the events are taken.
    """
    emulator = Emulator(rig, threads=threads, script=script)
    names, labels = emulator.object_names(), emulator.object_labels()
    info = SourceInfo(
        name=rig.name,
        mounts={lidar.name: lidar.setup.body_from_sensor @ SENSOR_FROM_ROS for lidar in rig.lidars},
        models={lidar.name: lidar.spec.model for lidar in rig.lidars},
        objects=names,
        labels=labels,
        classes=classes_of_rig(rig, classes, names, labels),
        is_simulated=True,
    )
    streams = [_rig_scans(emulator, duration_s, with_shapes=shapes == "scans"), _rig_poses(emulator, duration_s)]
    if shapes == "steps":
        streams.append(_rig_shapes(emulator, duration_s, info))
    if with_packets:
        streams.append(_rig_packets(emulator, duration_s))
    return info, (event for _, _, event in heapq.merge(*(_ranked(stream, rank) for rank, stream in enumerate(streams)), key=lambda each: each[:2]))


def _ranked(stream: Iterator[tuple[int, Event]], rank: int) -> Iterator[tuple[int, int, Event]]:
    for time_ns, event in stream:
        yield time_ns, rank, event


def _rig_scans(emulator: Emulator, duration_s: float, *, with_shapes: bool) -> Iterator[tuple[int, Event]]:
    numbers = dict.fromkeys(emulator.sensors, 0)
    epoch_ns = emulator.utc_epoch_ns
    for scan in emulator.scans(0.0, duration_s):
        if with_shapes:
            yield scan.stop_ns, SceneShapes(stamp_ns=epoch_ns + scan.start_ns, shapes=emulator.shapes(scan.start_ns / 1e9))
        pose = emulator.sensor_pose(scan.start_ns / 1e9, scan.sensor) @ SENSOR_FROM_ROS
        number, numbers[scan.sensor] = numbers[scan.sensor], numbers[scan.sensor] + 1
        yield (
            scan.stop_ns,
            OutputScan(
                sensor=scan.sensor,
                number=number,
                stamp_ns=epoch_ns + scan.start_ns,
                is_sensor_time=True,
                points=output_points(scan.points, scan.start_ns, _rig_return_types(emulator, scan)),
                further=further_fields(scan.points, scan.points.dtype),
                is_labelled=True,
                pose=pose,
                world_m=emulator.world_points(scan.points, scan.sensor),
            ),
        )


def _rig_return_types(emulator: Emulator, scan: RigScan) -> npt.NDArray[np.uint8]:
    lidar = next(lidar for lidar in emulator.rig.lidars if lidar.name == scan.sensor)
    mode = "first" if lidar.family.choices == (EchoChoice.FIRST,) else lidar.setup.return_mode
    types: npt.NDArray[np.uint8] = _TYPES_BY_MODE[mode][scan.points["return"]]
    return types


def _rig_poses(emulator: Emulator, duration_s: float) -> Iterator[tuple[int, Event]]:
    if not emulator.sensors:
        return
    name = emulator.sensors[0]
    sensor_from_body = next(lidar.setup.body_from_sensor for lidar in emulator.rig.lidars if lidar.name == name).inverse()

    def pose_at(time_ns: int) -> Pose:
        return emulator.sensor_pose(time_ns / 1e9, name) @ sensor_from_body

    for time_ns in range(0, round(duration_s * 1e9), _POSE_NS):
        begin_ns = max(time_ns - _POSE_NS // 2, 0)
        before, now, after = pose_at(begin_ns), pose_at(time_ns), pose_at(begin_ns + _POSE_NS)
        yield time_ns, _moving(emulator.utc_epoch_ns + time_ns, now, (before, pose_at(begin_ns + _POSE_NS // 2), after))


def _moving(stamp_ns: int, pose: Pose, around: tuple[Pose, Pose, Pose]) -> BodyPose:
    """A pose with the velocity, the rates and the specific force that three poses, half a step apart, give."""
    half_s = _POSE_NS / 2e9
    before, middle, after = (np.array(each.position_m) for each in around)
    velocity = (after - before) / (2.0 * half_s)
    force = (after - 2.0 * middle + before) / half_s**2 + np.array([0.0, 0.0, STANDARD_GRAVITY_MPS2])
    turned = multiply(conjugate(around[0].orientation), around[2].orientation)
    x, y, z = rotation_vector(turned)
    vx, vy, vz = velocity.tolist()
    fx, fy, fz = force.tolist()
    return BodyPose(
        stamp_ns=stamp_ns,
        pose=pose,
        velocity_mps=(vx, vy, vz),
        rates_radps=(x / (2.0 * half_s), y / (2.0 * half_s), z / (2.0 * half_s)),
        force_mps2=Pose(orientation=pose.orientation).inverse().transform((fx, fy, fz)),
    )


def _rig_shapes(emulator: Emulator, duration_s: float, info: SourceInfo) -> Iterator[tuple[int, Event]]:
    """All objects at the beginning, then ten times a second those that move; the largest are left out where there are too many triangles."""
    shapes = emulator.shapes()
    if hidden := too_large(shapes):
        info.remarks.append(f"{len(hidden)} objects of the scene have too many triangles to be written")
    for time_ns in range(0, round(duration_s * 1e9), _SHAPES_NS):
        now = emulator.shapes(time_ns / 1e9) if time_ns else shapes
        shown = tuple(shape for shape in now if shape.name not in hidden and not (time_ns and shape.is_still))
        if shown:
            yield time_ns, SceneShapes(stamp_ns=emulator.utc_epoch_ns + time_ns, shapes=shown)


def _rig_packets(emulator: Emulator, duration_s: float) -> Iterator[tuple[int, Event]]:
    for packet in emulator.packets(0.0, duration_s):
        yield packet.time_ns, replace(packet, time_ns=emulator.utc_epoch_ns + packet.time_ns)


def capture_events(
    path: Path, *, sensor: str = "", duration_s: float | None = None, metadata: Mapping[str, Any] | None = None
) -> tuple[SourceInfo, Iterator[Event]]:
    """Events of a capture; its sensors are named by their addresses.

    Args:
        path: The capture.
        sensor: Address of the only sensor to take; empty: all.
        duration_s: Length to take from the first packet on; None: all.
        metadata: Metadata of sensors by family; None: of the files beside the capture.

    Raises:
        CaptureError: it cannot be read, or has no points; also while the events are taken.
    """
    info = SourceInfo(name=path.name)
    return info, _capture_events(path, info, sensor, duration_s, given_metadata(capture=path) if metadata is None else metadata)


def _capture_events(path: Path, info: SourceInfo, sensor: str, duration_s: float | None, metadata: Mapping[str, Any]) -> Iterator[Event]:
    begin_ns: int | None = None

    def chosen() -> Iterator[Packet]:
        nonlocal begin_ns
        for packet in captured_packets(path, sensor):
            begin_ns = packet.time_ns if begin_ns is None else begin_ns
            if duration_s is not None and packet.time_ns - begin_ns > duration_s * 1e9:
                return
            if not sensor or packet.sensor == sensor:
                yield packet

    has_points = False
    for event in packet_events(chosen(), info, metadata):
        has_points = has_points or isinstance(event, OutputScan)
        yield event
    if not has_points:
        of = f" of {sensor}" if sensor else ""
        raise CaptureError(
            f"{path}: no whole scan{of} found in packets of points that can be decoded, some of which need metadata (--metadata); hilsim inspect lists what a capture holds"
        )


def packet_events(packets: Iterable[Packet], info: SourceInfo, metadata: Mapping[str, Any] = NONE) -> Iterator[Event]:
    """Packets, and the scans that are complete with them; each packet comes before the scans that it completes.

    Args:
        packets: Packets in the order of their sending; ``time_ns`` is UTC by the host's clock.
        info: Extended by the sensors that are found.
        metadata: Metadata of sensors by family.
    """
    found: list[tuple[int, OutputScan]] = []

    def publish(scan: Scan, packets: ScanPackets) -> None:
        found.append((int(packets.stamp_ns[-1]), _scan_of(scan, packets)))

    def introduce(name: str) -> None:
        info.mounts.setdefault(name, Pose())

    streams = SensorStreams(publish, introduce, metadata=metadata)
    waiting = iter(packets)
    while some := list(islice(waiting, _PACKETS_AT_ONCE)):
        rows: dict[str, list[int]] = {}
        for row, packet in enumerate(some):
            rows.setdefault(packet.sensor, []).append(row)
        batch = gathered(list(datagrams_of(some)))
        for name, mine in rows.items():
            streams.add(name, batch, np.array(mine, np.intp))
        complete = deque(sorted(found, key=lambda each: (each[0], each[1].stamp_ns)))
        found.clear()
        for packet in some:
            while complete and complete[0][0] < packet.time_ns:
                yield complete.popleft()[1]
            yield packet
            if (fix := _fix(packet)) is not None:
                yield fix
        yield from (scan for _, scan in complete)
    streams.reset()  # counts the last turn, which nothing has ended
    info.remarks.extend(streams.remarks())


def _scan_of(scan: Scan, packets: ScanPackets) -> OutputScan:
    points = scan.points
    part = _part(packets.payloads[0])
    types = np.array([_TYPES[name] for name in part.returns(packets.payloads[0])], np.uint8)
    first_ns = first_time_ns(points, cycle_ns=part.stamp_cycle_ns)
    stamp_ns, is_sensor_time = utc_ns(first_ns, scan.stamp_ns, cycle_ns=part.stamp_cycle_ns)
    return OutputScan(
        sensor=scan.sensor,
        number=scan.number,
        stamp_ns=stamp_ns,
        is_sensor_time=is_sensor_time,
        host_stamp_ns=scan.stamp_ns,
        points=output_points(points, first_ns, types[points["return"]]),
        further=scan.further,
    )


def _part(payload: bytes) -> ScansPart:
    module = family_part(recognise(payload).facts.family, "scans")
    if module is None:
        raise AssertionError("a decoded packet must be of a family with scans")
    part: ScansPart = module.PART
    return part


def return_types(points: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """``return_type`` of the points of a scan whose return mode is not known but by them."""
    types: npt.NDArray[np.uint8] = _TYPES_BY_MODE["dual" if points["return"].any() else "unknown"][points["return"]]
    return types


def utc_ns(sensor_ns: int, host_ns: int, *, cycle_ns: int) -> tuple[int, bool]:
    """UTC of a sensor's stamp, and whether it is by the sensor's clock; by the host's, where that counts something else.

    Args:
        sensor_ns: Stamp, in nanoseconds.
        host_ns: UTC by the host's clock at about that time.
        cycle_ns: Time after which stamps begin again from 0, as a Velodyne's from each full hour; 0: they do not.
    """
    stamp_ns = sensor_ns
    if cycle_ns:
        begin_ns = host_ns // cycle_ns * cycle_ns
        stamp_ns = min((begin_ns + step * cycle_ns + sensor_ns for step in (-1, 0, 1)), key=lambda each: abs(each - host_ns))
    return (stamp_ns, True) if abs(stamp_ns - host_ns) <= _NEAR_NS else (host_ns, False)


def _fix(packet: Packet) -> Fix | None:
    if recognise(packet.payload).facts.stream != "position" or (read := _part(packet.payload).sentence) is None:
        return None
    sentence = read_sentence(read(packet.payload).strip())
    if sentence is None or not sentence.is_valid or sentence.degrees is None:
        return None
    return Fix(sensor=packet.sensor, stamp_ns=packet.time_ns, latitude_deg=sentence.degrees[0], longitude_deg=sentence.degrees[1])
