"""Build what runs from a rig: world, platform and emulated lidars with their flows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hilsim.assembly.backgrounds import SensorBackground, check_places, load_backgrounds, platform_pose
from hilsim.assembly.moved import ObjectSlots, moved_scene
from hilsim.config.part_kind import carrier, parts_of
from hilsim.config.rig import Rig, takes_timed_changes
from hilsim.config.script import ChangeSpec
from hilsim.config.tables.platform import PlatformSpec
from hilsim.config.tables.sensor import SensorSpec
from hilsim.emulator.batch import Flow
from hilsim.emulator.families.base import FlowLayout
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.overlay import Overlay
from hilsim.emulator.plan import HEARD_ROWS, no_sentences
from hilsim.emulator.setting import LidarSetting
from hilsim.protocols.ethernet import PAYLOAD_ONLY, Framing, LinkStyle, build_framing, mac_of
from hilsim.world.assets.library import is_in_library
from hilsim.world.assets.scenes import scene_objects, scene_sdf, sdf_stamps
from hilsim.world.assets.street.street import street_platform_track
from hilsim.world.assets.trajectories import load_trajectory
from hilsim.world.geometry.poses import Pose, mounting
from hilsim.world.geometry.tracks import PoseTrack, fixed_track
from hilsim.world.platforms.disturbance import NO_DISTURBANCE, Disturbance, build_disturbance
from hilsim.world.platforms.live import LivePose
from hilsim.world.platforms.platform import Platform, live_platform, platform_state
from hilsim.world.platforms.platform import build_platform as platform_on
from hilsim.world.scene.materials import Material
from hilsim.world.scene.world import SceneObject, World, build_world, world_materials

if TYPE_CHECKING:
    from hilsim.world.sdf.specs import SdfScene

AssetSignature = tuple[tuple[str, int, int], ...]
"""Names, times of change and sizes of files."""


@dataclass(frozen=True, kw_only=True)
class Scenery:
    """World and platform shared by all sensors of a rig.

    Attributes:
        world: World that the sensors see.
        platform: Carries the sensors.
        notes: Notes on the files read, for the user (materials not named in the rig …).
        objects: Objects of the world, by their ids.
        materials: Material of each row of the world's materials.
        overlays: Captured backgrounds, by the sensor's index in the rig.
        sdf: The scene's SDF file; None without.
        worlds: Worlds that replace ``world``, by the sensor's index in the rig: for sensors at the pose of a lidar within a solid.
        still_at: Pose of a fixed platform; None: it moves.
        live: Poses of a platform that a part moves; None without.
        unseen: Ids of the objects that are missing in each of ``worlds``.
        slots: Slots of objects that a part moves; None without one.
    """

    world: World
    platform: Platform
    notes: tuple[str, ...] = ()
    objects: tuple[SceneObject, ...] = ()
    materials: tuple[Material, ...] = ()
    overlays: Mapping[int, Overlay] = field(default_factory=dict)
    sdf: "SdfScene | None" = None
    worlds: Mapping[int, World] = field(default_factory=dict)
    still_at: Pose | None = None
    live: LivePose | None = None
    unseen: Mapping[int, frozenset[int]] = field(default_factory=dict)
    slots: ObjectSlots | None = None

    @property
    def object_names(self) -> tuple[str, ...]:
        """Name of each object, by its id."""
        return tuple(thing.name for thing in self.objects)


def build_scenery(rig: Rig, *, until_ns: int | None = None) -> Scenery:
    """World and platform of a rig.

    Args:
        rig: The rig.
        until_ns: Rig time up to which a part moves the platform now, for rendering without a clock; None: another thread moves it, or it stays.

    Raises:
        AssetError: naming every file that cannot be used.
        ConfigError: a background does not belong to its sensor, or a part cannot move the platform.
    """
    sdf = scene_sdf(rig.spec.scene, rig.directory)
    objects, notes = scene_objects(rig.spec.scene, rig.directory, sdf)
    moved = moved_scene(rig, objects)
    objects = [*objects, *moved.objects]
    world = build_world(objects, live=moved.keys)
    backgrounds = load_backgrounds(rig)
    live, carrying = moved.live, carrier(rig.spec)
    if live is not None:
        platform = live_platform(live, _disturbance(rig))
    elif carrying is None:
        platform = build_platform(rig.spec.platform, rig, backgrounds)
    elif until_ns is None:
        live = carrying.motion(rig, world, None, ())
        platform = live_platform(live, _disturbance(rig))
    else:
        platform = platform_on(carrying.motion(rig, world, until_ns, ()), _disturbance(rig))
    unseen = _solids_around(rig, sdf, objects)
    is_still = rig.spec.platform.kind in {"fixed", "background"} and rig.spec.platform.disturbance is None
    return Scenery(
        world=world,
        live=live,
        platform=platform,
        still_at=pose_at_start(platform) if is_still else None,
        overlays={background.sensor: background.overlay for background in backgrounds},
        sdf=sdf,
        worlds={number: build_world(objects, around, live=moved.keys) for number, around in unseen.items()},
        unseen=unseen,
        slots=moved.slots,
        notes=notes,
        objects=tuple(objects),
        materials=world_materials(objects),
    )


def _solids_around(rig: Rig, sdf: "SdfScene | None", objects: Sequence[SceneObject]) -> dict[int, frozenset[int]]:
    """Ids of the solids that a lidar of the SDF file begins within, and does not see, for each sensor that stands in for one."""
    found: dict[int, frozenset[int]] = {}
    if sdf is None or rig.spec.scene.sdf_sees != "collisions":
        return found
    from hilsim.world.sdf.solids import containing  # noqa: PLC0415 - most rigs need it not

    at = {lidar.name: np.array([lidar.pose.position_m]) for lidar in sdf.lidars}
    placed = [(shape, shape.pose) for shape in sdf.collisions]
    for number, sensor in enumerate(rig.spec.sensor):
        around = containing(placed, at[sensor.sdf_sensor]) if sensor.sdf_sensor else {}
        if around:
            found[number] = frozenset(row for row, thing in enumerate(objects) if thing.name in around)
    return found


def build_platform(spec: PlatformSpec, rig: Rig, backgrounds: Sequence[SensorBackground] = ()) -> Platform:
    """The platform of a rig.

    Raises:
        AssetError: its trajectory file cannot be used.
        ConfigError: it is not at the place where its sensors' backgrounds were captured.
    """
    return platform_on(_track(spec, rig, backgrounds), _disturbance(rig))


def _disturbance(rig: Rig) -> Disturbance:
    disturbance = rig.spec.platform.disturbance
    return build_disturbance(disturbance, rig.spec.seed, 0) if disturbance else NO_DISTURBANCE


def carried_scenery(rig: Rig, scenery: Scenery, until_ns: int, changes: Sequence[tuple[ChangeSpec, World]]) -> Scenery:
    """Scenery of a rig whose platform a part moves until a rig time, with timed changes, each with the world after it.

    Raises:
        ConfigError: the part cannot move it without a clock.
    """
    carrying = carrier(rig.spec)
    if carrying is None:
        raise AssertionError("a platform must be moved by a part")
    return replace(scenery, live=None, platform=platform_on(carrying.motion(rig, scenery.world, until_ns, changes), _disturbance(rig)))


def _track(spec: PlatformSpec, rig: Rig, backgrounds: Sequence[SensorBackground]) -> PoseTrack:
    match spec.kind:
        case "fixed" | "background":
            body = mounting(spec.position_m, spec.rotation_deg) if spec.kind == "fixed" else platform_pose(rig, backgrounds)
            check_places(rig, backgrounds, body)
            return fixed_track(body)
        case "trajectory":
            return load_trajectory(rig.directory / spec.file, loop=spec.loop)
        case "street":
            return street_platform_track(rig.spec.scene)
        case _:
            raise AssertionError(f'platform.kind "{spec.kind}" has no track of its own')


class SensorFlow(NamedTuple):
    """A stream of a sensor's datagrams, and how its headers are filled."""

    flow: Flow
    style: LinkStyle


class SensorFlows(NamedTuple):
    """Flows of a sensor: data, and position packets or sensor information (``info`` may have no packets)."""

    data: SensorFlow
    info: SensorFlow


def sensor_flows(sensor: SensorSpec, setting: LidarSetting) -> SensorFlows:
    """Destinations of a sensor's packets."""
    layouts = setting.family.flows(sensor.network.data_port, sensor.network.position_port)
    return SensorFlows(*(SensorFlow(_flow(sensor, layout), layout.style) for layout in layouts))


def rig_metadata(rig: Rig) -> dict[str, list[Any]]:
    """Metadata of a rig's sensors as they begin, by family, of those that have some, with the ports that their packets go to."""
    found: dict[str, list[Any]] = {}
    for sensor, setting in zip(rig.spec.sensor, rig.lidars, strict=True):
        data, position = (each.flow for each in sensor_flows(sensor, setting))
        ports = {"data_port": data.destination_port, "position_port": position.destination_port}
        metadata = setting.family.metadata(setting.stream, destination=data.destination, **ports)
        if metadata is not None:
            found.setdefault(setting.family.name, []).append(metadata)
    return found


def pose_at_start(platform: Platform) -> Pose:
    """World from body at rig time 0."""
    position_m, orientation = platform_state(platform, 0)
    return Pose(position_m=position_m, orientation=orientation)


def _flow(sensor: SensorSpec, layout: FlowLayout) -> Flow:
    network = sensor.network
    return Flow(
        name=f"{sensor.name}/{layout.name}",
        source=network.source,
        source_port=layout.source_port,
        destination=network.destination,
        destination_port=layout.destination_port,
    )


def source_mac(sensor: SensorSpec, setting: LidarSetting) -> str:
    """The sensor's MAC address: the rig's word, the unit's, or the model's prefix and the sensor's number."""
    if sensor.network.source_mac:
        return sensor.network.source_mac
    if setting.unit.mac:
        return setting.unit.mac
    number = setting.stream + 1
    return f"{setting.spec.mac_prefix}:10:{number >> 8:02x}:{number & 0xFF:02x}"


def network_stack(sensor: SensorSpec, setting: LidarSetting) -> str:
    """``SinkFlow.stack`` of a sensor's flows: its name where an ordinary IPv4 stack sends its packets, else empty."""
    return sensor.name if setting.family.has_network_stack else ""


def flow_framing(of: SensorFlow, sensor: SensorSpec, setting: LidarSetting) -> Framing:
    """Whole frames of a flow, with the real sensor's headers."""
    flow = of.flow
    return build_framing(
        of.style,
        flow.key,
        source_mac=source_mac(sensor, setting),
        destination_mac=sensor.network.destination_mac or mac_of(flow.destination, broadcast=sensor.network.broadcast),
    )


def build_lidar(rig: Rig, number: int, scenery: Scenery, *, utc_epoch_ns: int, frames: bool) -> LidarEmulator:
    """The emulated lidar of ``rig.spec.sensor[number]``.

    Args:
        rig: The rig.
        number: Index of the sensor.
        scenery: Result of ``build_scenery``.
        utc_epoch_ns: UTC of rig time 0.
        frames: Whole Ethernet frames rather than payloads.
    """
    sensor, setting = rig.spec.sensor[number], rig.lidars[number]
    flows = sensor_flows(sensor, setting)
    world = scenery.worlds.get(number, scenery.world)
    return LidarEmulator(
        setting=setting,
        world=world,
        platform=scenery.platform,
        seed=rig.spec.seed,
        utc_epoch_ns=utc_epoch_ns,
        overlay=scenery.overlays.get(number),
        heard=no_sentences(HEARD_ROWS) if sensor.time_input is not None and sensor.time_input.nmea else None,
        others=(*rig.lidars[:number], *rig.lidars[number + 1 :]) if sensor.interference else (),
        may_change=takes_timed_changes(rig),
        data_flow=flows.data.flow,
        position_flow=flows.info.flow,
        data_framing=flow_framing(flows.data, sensor, setting) if frames else PAYLOAD_ONLY,
        position_framing=flow_framing(flows.info, sensor, setting) if frames else PAYLOAD_ONLY,
    )


def asset_files(rig: Rig) -> tuple[Path, ...]:
    """Every file the rig's scene and platform name."""
    scene = rig.spec.scene
    names = [mesh.file for mesh in scene.mesh] + [terrain.file for terrain in scene.terrain] + [background.file for background in scene.background]
    names += [scene.sdf] if scene.sdf else []
    names += [item.file for item in scene.sdf_motion if item.file]
    if rig.spec.platform.file:
        names.append(rig.spec.platform.file)
    names += [name for kind, specs in parts_of(rig.spec) for each in specs for name in kind.files(each)]
    return tuple(rig.directory / name for name in names if not is_in_library(name))


def triangle_count(world: World) -> int:
    """Triangles of a world, repeated geometries counted once."""
    return int(np.shape(world.corners)[0])


def asset_signature(rig: Rig) -> AssetSignature:
    """Names, times and sizes of the files a rig reads, with those that its SDF file brings: whether they must be read again."""
    found = []
    for path in asset_files(rig):
        state = Path(path).stat() if Path(path).exists() else None
        found.append((str(path), state.st_mtime_ns if state else 0, state.st_size if state else 0))
    return (*found, *sdf_stamps(rig.spec.scene, rig.directory))
