"""Steps of an emulator: a program's own loop gives poses and gets packets, points and what each return hit."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hilsim.api.labelled import labelled_points
from hilsim.api.packet import Packet
from hilsim.emulator.batch import DatagramBatch, Flow
from hilsim.emulator.truth import Truth
from hilsim.errors import require
from hilsim.offline.merging import Merged, merged
from hilsim.offline.snapshot import Motion, TrackedObject
from hilsim.offline.stepper import Poses, Stepper
from hilsim.protocols.ethernet import HEADER_SIZE
from hilsim.protocols.osi import LIGHT_MPS, NO_OBJECT, Reflection, encode_reflections
from hilsim.world.geometry.poses import Pose

Moving: TypeAlias = Motion | Pose
"""A pose with velocities, or alone."""
Timed: TypeAlias = Moving | Sequence[tuple[float, Moving]]
"""A pose at a step's end, or several with their rig times in seconds."""
Objects: TypeAlias = Mapping[str, Timed] | Iterable[TrackedObject]
"""Poses of the rig's objects by name, or objects with their shapes and poses."""

HIT_DTYPE = np.dtype(
    [
        ("time", "<i8"),
        ("channel", "u1"),
        ("return", "u1"),
        ("range", "<f4"),
        ("instance", "<i4"),
        ("label", "<i2"),
        ("object_id", "<u8"),
    ]
)
"""A return of ``Step.hits``.

Attributes:
    time: Rig time of the firing in nanoseconds.
    channel: Laser, in firing order.
    return: Type of the return, as in the ground truth of ``hilsim record``.
    range: Metres from the sensor, without noise and rounding.
    instance: Number of the object among ``Emulator.object_names``; -1 for rain, dust or noise.
    label: Label of the object.
    object_id: Number of the object at its source; 2^64 - 1 for the rig's own objects and where there is none.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Packets of one stretch of rig time.

    Attributes:
        until_ns: End of the stretch.
        packets: Packets whose last firing is within the stretch, of all sensors, in the order of their deadlines.
        points: Points of each lidar's packets by its name, ``POINT_DTYPE[n]``; empty unless requested.
        hits: Returns of each lidar's packets by its name, ``HIT_DTYPE[n]``; empty unless requested.
        reflections: Hits as ASAM OSI messages: a ``SensorView`` with a ``lidar_sensor_view`` for each lidar; empty unless requested.
    """

    until_ns: int
    packets: tuple[Packet, ...]
    points: Mapping[str, npt.NDArray[Any]]
    hits: Mapping[str, npt.NDArray[Any]]
    reflections: Mapping[str, bytes]


def committed(stepper: Stepper, until_ns: int, platform: Timed | None, objects: Objects, removed: Iterable[str]) -> None:
    """Commit the poses of a step; arguments and errors as in ``Emulator.step``."""
    stepper.commit(
        until_ns,
        _timed(platform, until_ns) if platform is not None else (),
        list(_objects(objects, until_ns)),
        removed,
    )


def _timed(given: Timed, until_ns: int) -> Poses:
    if isinstance(given, Motion | Pose):
        return [(until_ns, _motion(given))]
    return [(round(time_s * 1e9), _motion(moving)) for time_s, moving in given]


def _motion(given: Moving) -> Motion:
    return given if isinstance(given, Motion) else Motion(position_m=given.position_m, orientation=given.orientation)


def _objects(objects: Objects, until_ns: int) -> Iterator[tuple[TrackedObject, Poses]]:
    if isinstance(objects, Mapping):
        for name, given in objects.items():
            poses = _timed(given, until_ns)
            if poses:
                yield TrackedObject(id=NO_OBJECT, name=name, motion=poses[-1][1]), poses
        return
    for thing in objects:
        yield thing, [(until_ns, thing.motion)]


def stepped(stepper: Stepper, until_ns: int, *, points: bool, truth: bool) -> Step:
    """Render a step whose poses are committed."""
    batches: list[DatagramBatch] = []
    found: dict[str, npt.NDArray[Any]] = {}
    hits: dict[str, npt.NDArray[Any]] = {}
    for batch, known in stepper.render(until_ns, with_truth=points or truth):
        batches.append(batch)
        if known is None:
            continue
        lidar = known.packets.lidar
        name = lidar.setting.name
        if points:
            _, found[name] = labelled_points(lidar, known.packets.first, batch, known.truth)
        if truth:
            hits[name] = _hits(known.truth, stepper.object_ids())
    return Step(
        until_ns=until_ns,
        packets=tuple(packets_of(merged(batches))) if batches else (),
        points=found,
        hits=hits,
        reflections={name: encode_reflections(until_ns, list(_reflections(rows))) for name, rows in hits.items()},
    )


def _hits(truth: Truth, ids: npt.NDArray[np.uint64]) -> npt.NDArray[Any]:
    hits = np.zeros(truth.time_ns.size, HIT_DTYPE)
    hits["time"], hits["channel"], hits["return"] = truth.time_ns, truth.channel, truth.return_type
    hits["range"], hits["instance"], hits["label"] = truth.range_m, truth.object_id, truth.label
    known = np.append(ids, np.uint64(NO_OBJECT))  # the last row is for what is no object
    is_object = (truth.object_id >= 0) & (truth.object_id < ids.size)
    hits["object_id"] = known[np.where(is_object, truth.object_id, ids.size)]
    return hits


def _reflections(hits: npt.NDArray[Any]) -> Iterator[Reflection]:
    """Reflections of returns; the signal level is the loss over the distance, relative to 1 m."""
    for range_m, number in zip(hits["range"].tolist(), hits["object_id"].tolist(), strict=True):
        level_db = -20.0 * math.log10(range_m) if range_m > 0.0 else 0.0
        yield Reflection(level_db, 2.0 * range_m / LIGHT_MPS, None if number == NO_OBJECT else number)


def packets_of(batch: Merged) -> Iterator[Packet]:
    """Datagrams of whole frames one by one."""
    named = [_named(flow) for flow in batch.flows]
    for time_ns, number, size, row in zip(batch.deadline_ns.tolist(), batch.flow.tolist(), batch.size.tolist(), batch.payload, strict=True):
        sensor, stream, source, destination = named[number]
        frame = row[:size].tobytes()
        yield Packet(
            time_ns=time_ns,
            sensor=sensor,
            stream=stream,
            source=source,
            destination=destination,
            payload=frame[HEADER_SIZE:],
            headers=frame[:HEADER_SIZE],
        )


def _named(flow: Flow) -> tuple[str, str, tuple[str, int], tuple[str, int]]:
    sensor, _, stream = flow.name.partition("/")
    return sensor, stream, (flow.source, flow.source_port), (flow.destination, flow.destination_port)


def step_ns(until_s: float) -> int:
    """End of a step in nanoseconds.

    Raises:
        ValueError: it is not finite, or below 0.
    """
    require((0.0 <= until_s < math.inf, f"until_s must be 0 or more, got {until_s}"))
    return round(until_s * 1e9)
