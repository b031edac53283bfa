"""A rig that a program's own loop drives: it gives poses, and gets the packets of the next stretch of rig time. There is no clock.

Poses become keys (``pose_keys``), and packets come from the kernels that record a rig, so the bytes depend on the keys alone.
A packet comes out with the step that ends at or after its last firing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.assembly.build import Scenery, build_lidar, build_scenery
from hilsim.assembly.changed import RigState, follow
from hilsim.assembly.network import network_faults
from hilsim.config.part_kind import carrier, parts_of
from hilsim.config.rig import Rig
from hilsim.daemon.precompile import compile_beside
from hilsim.emulator.batch import DatagramBatch
from hilsim.emulator.fused import render_data_packets, render_info_packet
from hilsim.emulator.lidar import LaterLidar, LidarEmulator
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.schedule import stop_sequence_of
from hilsim.emulator.truth import Truth, packets_with_truth
from hilsim.emulator.workspace import Workspace, allocate_workspace
from hilsim.errors import ConfigError, require
from hilsim.limits import MOVED_OBJECTS, STEPPED_POSES
from hilsim.offline.pose_keys import BodyKeys, KeyBuffer, ObjectKeys, PlatformKeys
from hilsim.offline.snapshot import Motion, TrackedObject
from hilsim.offline.spans import OfflineRig, OfflineSource
from hilsim.protocols.osi import NO_OBJECT
from hilsim.sensor.clock import rig_from_device
from hilsim.sensor.position_stream import next_position
from hilsim.world.assets.scenes import primitive
from hilsim.world.geometry.live_keys import LivePlacement, build_live_keys
from hilsim.world.geometry.poses import mounting
from hilsim.world.platforms.disturbance import NO_DISTURBANCE, build_disturbance
from hilsim.world.platforms.live import LivePose, build_live_pose
from hilsim.world.platforms.platform import Platform, live_platform
from hilsim.world.scene.materials import DEFAULTS
from hilsim.world.scene.mesh import Mesh
from hilsim.world.scene.object_specs import ObjectSpec
from hilsim.world.scene.shape_specs import BoxSpec, CylinderSpec, SphereSpec
from hilsim.world.scene.world import SceneObject

PLATFORM_STATES = 1 << 15
"""States of the platform that are kept, twice as many as renderers use: position packets ask for poses of 1.1 s ago."""
SPEED_MPS = 100.0
"""Largest speed of an object."""
Poses = Sequence[tuple[int, Motion]]
"""Rig times and motions of a body in a step, in order."""


class SteppedPackets(NamedTuple):
    """Data packets of a lidar in a step.

    Attributes:
        lidar: The lidar, with its changes within the packets.
        first: Index of the first packet.
        stop: Index after the last packet.
    """

    lidar: LidarEmulator
    first: int
    stop: int


class SteppedTruth(NamedTuple):
    """Ground truth of data packets.

    Attributes:
        packets: The packets.
        truth: Their returns.
    """

    packets: SteppedPackets
    truth: Truth


@dataclass
class _Stream:
    """Progress of one lidar."""

    lidar: LidarEmulator
    later: list[LaterLidar] = field(default_factory=list)
    next_packet: int = 0
    workspace: Workspace | None = None
    infos: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    _ready_ns: int = -1
    _next_info: tuple[int, int, int] = (0, 0, -1)

    def __post_init__(self) -> None:
        self.next_packet = self.lidar.first_data_packet(0)
        self.infos = np.zeros(self.lidar.plan.position.period_ns.size, np.int64)
        self._next_info = self._following_info()

    @property
    def changing(self) -> LidarEmulator:
        """The lidar with the changes that it has not passed."""
        return replace(self.lidar, later=tuple(self.later)) if self.later else self.lidar

    @property
    def info_ns(self) -> int:
        """Rig time of the next position or information packet."""
        return self._next_info[2]

    def take(self, until_ns: int) -> SteppedPackets:
        """Data packets whose last firing is at or before a rig time."""
        first = self.next_packet
        if self._ready_ns > until_ns and not self.later:
            return SteppedPackets(self.lidar, first, first)
        lidar = self.changing
        while True:
            self._ready_ns = last_firing_ns(lidar.at_packet(self.next_packet).plan if self.later else lidar.plan, self.next_packet)
            if self._ready_ns > until_ns:
                return SteppedPackets(lidar, first, self.next_packet)
            self.next_packet += 1

    def settle(self) -> None:
        """Let the newest change that has begun be the lidar itself."""
        while self.later and self.changing.at_packet(self.next_packet) is not self.lidar:
            self.lidar = self.later.pop(0).lidar
            self.workspace = None

    def render(self, taken: SteppedPackets) -> DatagramBatch:
        """Render data packets."""
        lidar, count = taken.lidar, taken.stop - taken.first
        if lidar.later:
            return lidar.data_packets(taken.first, count)
        plan = lidar.plan
        if self.workspace is None:
            self.workspace = allocate_workspace(plan, plan.sequences_per_packet, is_opaque=lidar.world.is_opaque)
        size = np.zeros(count, np.int32)
        datagrams = np.zeros((count, lidar.data_framing.header_size + lidar.data_size), np.uint8)
        render_data_packets(plan, lidar.platform, lidar.world, lidar.data_framing, taken.first, self.workspace, size, datagrams)
        stamp = np.array([packet_end_ns(plan, packet) for packet in range(taken.first, taken.stop)], np.int64)
        return DatagramBatch(lidar.data_flow, stamp + plan.data_latency_ns, stamp, size, datagrams)

    def _following_info(self) -> tuple[int, int, int]:
        """Schedule, device time and rig time of the next position or information packet."""
        plan = self.lidar.plan
        schedule, device_ns = next_position(plan.position, self.infos)
        return int(schedule), int(device_ns), int(rig_from_device(plan.clock, device_ns))

    def render_infos(self, until_ns: int) -> DatagramBatch:
        """Render position or information packets that are assembled at or before a rig time."""
        lidar, plan = self.lidar, self.lidar.plan
        width = lidar.position_framing.header_size + plan.info_size
        rows, sizes, stamps = [], [], []
        while self._next_info[2] <= until_ns:
            schedule, device_ns, stamp_ns = self._next_info
            if stamp_ns + plan.position.latency_ns + plan.data_latency_ns >= 0:
                row = np.zeros(width, np.uint8)
                sizes.append(int(render_info_packet(plan, lidar.platform, lidar.position_framing, int(self.infos.sum()), device_ns, row)))
                rows.append(row)
                stamps.append(stamp_ns)
            self.infos[schedule] += 1
            self._next_info = self._following_info()
        stamp = np.array(stamps, np.int64)
        payload = np.array(rows, np.uint8).reshape(len(rows), width)
        return DatagramBatch(lidar.position_flow, stamp + plan.position.latency_ns + plan.data_latency_ns, stamp, np.array(sizes, np.int32), payload)


def _stop_sequence(plan: LidarPlan, packet: int) -> int:
    """``emulator.schedule.stop_sequence_of``; of a whole turn without handing a kernel the whole plan, which takes longer than the sum."""
    if plan.field_of_view is not None and plan.field_of_view.is_limited:
        return int(stop_sequence_of(plan, packet))
    return int(plan.origin_sequence) + (packet + 1 - int(plan.origin_packet)) * int(plan.sequences_per_packet)


def packet_end_ns(plan: LidarPlan, packet: int) -> int:
    """Rig time at which the last firing sequence of a data packet ends."""
    return int(rig_from_device(plan.clock, _stop_sequence(plan, packet) * int(plan.sequence_ns)))


def last_firing_ns(plan: LidarPlan, packet: int) -> int:
    """Rig time of the last firing of a data packet."""
    last = _stop_sequence(plan, packet) - 1
    return int(rig_from_device(plan.clock, last * int(plan.sequence_ns) + int(plan.firing_offset_ns.max())))


class Stepper:
    """A rig's lidars and other sources of packets, driven from outside.

    Attributes:
        rig: The rig.
        now_ns: End of the stretch of rig time that has been released.
        objects: Keys of the objects that have been given poses, by name.
        state: The rig with all objects.
    """

    def __init__(self, rig: Rig, *, utc_epoch_ns: int, is_carried: bool = False) -> None:
        """Build the scene and the lidars.

        Args:
            rig: The rig. Where a part moves the platform, its poses come from outside, and it waits at the pose that the rig gives until the first one;
                objects that a part moves are there from the start, unseen until their first poses; and the part's recording is written.
            utc_epoch_ns: UTC of rig time 0.
            is_carried: Whether the platform's poses come from outside whatever its kind; the first step must then have one.

        Raises:
            AssetError: a file of the scene cannot be used.
            CaptureError: the recording cannot be created.
            ConfigError: the rig has a vehicle or replays poses, or it has captured backgrounds and a platform from outside.
        """
        if (carrying := carrier(rig.spec)) is not None:
            raise ConfigError(f"{rig.path}: a rig that is stepped must have no [{carrying.table}]: the program that steps it moves the platform")
        if network_faults(rig, ()):
            raise ConfigError(
                f"{rig.path}: faults of the network must not be given for a rig that is stepped: its packets go to the program, got some"
            )
        recorders = [found for kind, specs in parts_of(rig.spec) for each in specs if (found := kind.step(rig, each)) is not None]
        compile_beside(rig)
        self.rig, self.now_ns = rig, -1
        standing: Motion | None = None
        scenery = build_scenery(rig)
        if scenery.live is not None:
            pose = mounting(rig.spec.platform.position_m, rig.spec.platform.rotation_deg)
            standing, is_carried = Motion(position_m=pose.position_m, orientation=pose.orientation), True
        self._record = recorders[0]() if recorders else None
        self._live = build_live_keys(int(MOVED_OBJECTS.bound))
        self._buffer = KeyBuffer(self._live)
        worlds = {number: world._replace(live=self._live) for number, world in scenery.worlds.items()}
        scenery = replace(scenery, world=scenery.world._replace(live=self._live), worlds=worlds)
        self.platform: PlatformKeys | None = None
        if is_carried:
            if scenery.overlays:
                raise ConfigError(f"{rig.path}: a platform with captured backgrounds must stand still, got poses from outside")
            self._live_pose = build_live_pose(PLATFORM_STATES)
            self.platform = PlatformKeys(self._live_pose, self._record)
            scenery = replace(scenery, platform=self._carried(self._live_pose), still_at=None)
        self._scenery, self._standing = scenery, standing
        self.state = RigState.at_start(rig, scenery)
        self.objects: dict[str, ObjectKeys] = {}
        self._ids: dict[str, int] = {}
        self._declared: dict[str, tuple[Mesh, int]] = {}
        self._streams = [_Stream(build_lidar(rig, number, scenery, utc_epoch_ns=utc_epoch_ns, frames=True)) for number in range(len(rig.lidars))]
        offline = OfflineRig(rig=rig, utc_epoch_ns=utc_epoch_ns, scenery=scenery, lidars=(), first_scenery=scenery)
        self._sources: list[OfflineSource] = [source for _, source in offline.sources()]
        numbers = scenery.slots.ids if scenery.slots is not None else ()
        for name, placement in ((each.name, each.placement) for each in scenery.objects if isinstance(each.placement, LivePlacement)):
            self._ids[name] = numbers[placement.slot]
            self.objects[name] = ObjectKeys(self._buffer, placement.slot, placement.speed_mps, name, self._ids[name], self._record)
        self._meshes: dict[tuple[object, ...], Mesh] = {}

    def _carried(self, live: LivePose) -> Platform:
        disturbance = self.rig.spec.platform.disturbance
        return live_platform(live, build_disturbance(disturbance, self.rig.spec.seed, 0) if disturbance else NO_DISTURBANCE)

    @property
    def scenery(self) -> Scenery:
        """Scene and platform at the start."""
        return self._scenery

    @property
    def object_names(self) -> tuple[str, ...]:
        """Names of the objects, by the numbers that points have as ``instance``."""
        return tuple(thing.name for thing in self.state.objects)

    def object_ids(self) -> npt.NDArray[np.uint64]:
        """Number that each object has at its source, by its number here; ``NO_OBJECT`` for the rig's own objects."""
        return np.array([self._ids.get(thing.name, NO_OBJECT) for thing in self.state.objects], np.uint64)

    def declare(self, number: int, name: str, mesh: Mesh, label: int) -> None:
        """Declare an object by its surface; it becomes part of the scene with its first pose.

        Args:
            number: Number of the object at its source.
            name: Name of the object.
            mesh: Surface in the object's own frame.
            label: Label of the object.
        """
        self._declared[name] = mesh, label
        self._ids[name] = number

    def commit(
        self,
        until_ns: int,
        platform: Poses = (),
        objects: Iterable[tuple[TrackedObject, Poses]] = (),
        removed: Iterable[str] = (),
        faults: list[str] | None = None,
    ) -> None:
        """Commit the poses up to a rig time; bodies without a pose stay where they are.

        Args:
            until_ns: End of the stretch that may then be rendered.
            platform: Poses of the platform after the stretch before, up to this one's end.
            objects: Objects and their poses. An object with a name that the rig has not is new, and must have a size.
            removed: Names of objects that are not seen from the end on.
            faults: Where the faults of single poses are put, which are then left out; None: they are raised.

        Raises:
            ConfigError: an object is unknown, or there are too many.
            ValueError: a time or a pose is out of bounds.
        """
        listed = [(thing, poses) for thing, poses in objects if poses]
        if self.platform is not None and self.platform.newest is None and not platform and self._standing is not None:
            self.platform.commit(0, self._standing)
        self._check(until_ns, platform, listed)
        self._introduce([thing for thing, _ in listed], min((poses[0][0] for _, poses in listed), default=until_ns))
        try:
            self._move(until_ns, platform, listed, removed, faults)
        finally:
            self._buffer.flush()

    def _move(
        self, until_ns: int, platform: Poses, listed: Sequence[tuple[TrackedObject, Poses]], removed: Iterable[str], faults: list[str] | None
    ) -> None:
        if self.platform is not None:
            _commit(self.platform, platform, faults)
            self.platform.stay(until_ns)
        for thing, poses in listed:
            _commit(self.objects[thing.name], poses, faults)
        for name in removed:
            if name not in self.objects:
                raise ConfigError(f'name of a removed object must be one that had a pose, got "{name}"')
            self.objects[name].vanish(until_ns)
        for keys in self.objects.values():
            keys.stay(until_ns)

    def _check(self, until_ns: int, platform: Poses, listed: Sequence[tuple[TrackedObject, Poses]]) -> None:
        times = [[time_ns for time_ns, _ in poses] for poses in (platform, *(poses for _, poses in listed))]
        least = max(self.now_ns, -1)
        names = [thing.name for thing, _ in listed]
        require(
            (until_ns > self.now_ns, f"a step must end after the one before at {self.now_ns} ns, got {until_ns} ns"),
            (not platform or self.platform is not None, "platform must be given from the first step on, or never"),
            (
                self.platform is None or bool(platform) or self.platform.newest is not None,
                "platform must be given in the first step",
            ),
            (len(set(names)) == len(names), "an object must be listed once in a step"),
            *(STEPPED_POSES.rule(len(of_one)) for of_one in times[:1000]),
            *(
                (least < time_ns <= until_ns, f"a pose's time must be after {least} ns and at most {until_ns} ns, got {time_ns} ns")
                for of_one in times
                for time_ns in of_one
                if not least < time_ns <= until_ns
            ),
        )

    def _introduce(self, things: Sequence[TrackedObject], from_ns: int) -> None:
        """Let objects that have had no pose be moved by keys, from a rig time on."""
        new = [thing for thing in things if thing.name not in self.objects]
        if not new:
            return
        MOVED_OBJECTS.enforce(len(self.objects) + len(new), str(self.rig.path), ConfigError)
        former = self.state
        for thing in new:
            placement = LivePlacement(len(self.objects), SPEED_MPS)
            if self.state.has(thing.name):
                self.state = self.state.placed(thing.name, placement)
            elif thing.name in self._declared:
                mesh, label = self._declared[thing.name]
                self.state = self.state.with_object(SceneObject(mesh=mesh, placement=placement, label=label, name=thing.name))
            else:
                if thing.size_m is None:
                    raise ConfigError(f'an object without a size must be one of the rig\'s, got "{thing.name}"')
                made = SceneObject(mesh=self._mesh(thing), placement=placement, label=int(thing.kind), name=thing.name)
                self.state = self.state.with_object(made)
            number = self._ids.setdefault(thing.name, thing.id)
            self.objects[thing.name] = ObjectKeys(self._buffer, placement.slot, SPEED_MPS, thing.name, number, self._record)
        for place, stream in enumerate(self._streams):
            follow(stream.later, stream.lidar, former, self.state, place, from_ns)

    def _mesh(self, thing: TrackedObject) -> Mesh:
        """Surface of an object; objects of one size and class share it."""
        key = thing.shape, thing.size_m, thing.material
        if key not in self._meshes:
            materials = {**DEFAULTS, **self.rig.spec.scene.material_table()}
            self._meshes[key] = primitive(_shape(thing), materials[thing.material])
        return self._meshes[key]

    def render(self, until_ns: int, *, with_truth: bool = False) -> Iterator[tuple[DatagramBatch, SteppedTruth | None]]:
        """Yield the packets whose last firing is at or before a rig time, a batch for each flow; commit the poses up to there first.

        Args:
            until_ns: Rig time.
            with_truth: Whether to yield the ground truth of data packets with them.
        """
        self.now_ns = until_ns
        for stream in self._streams:
            taken = stream.take(until_ns)
            if taken.stop > taken.first and with_truth:
                packets, truth = packets_with_truth(taken.lidar, taken.first, taken.stop - taken.first)
                yield packets, SteppedTruth(taken, truth)
            elif taken.stop > taken.first:
                yield stream.render(taken), None
            if stream.info_ns <= until_ns:
                yield stream.render_infos(until_ns), None
            stream.settle()
        for source in self._sources:
            for batch in source.span(until_ns + 1):
                yield batch, None


def _commit(keys: BodyKeys, poses: Poses, faults: list[str] | None) -> None:
    for time_ns, motion in poses:
        try:
            keys.commit(time_ns, motion)
        except ValueError as error:
            if faults is None:
                raise
            faults.append(str(error))


def _shape(thing: TrackedObject) -> ObjectSpec:
    if thing.size_m is None:
        raise AssertionError("an object that is made must have a size")
    diameter, _, height = thing.size_m
    match thing.shape:
        case "box":
            return BoxSpec(size_m=thing.size_m, material=thing.material)
        case "cylinder":
            return CylinderSpec(radius_m=0.5 * diameter, height_m=height, material=thing.material)
        case "sphere":
            return SphereSpec(radius_m=0.5 * diameter, material=thing.material)
