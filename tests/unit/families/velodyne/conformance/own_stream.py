"""What hilsim's own emulator sends: a VLP-16, or another model, in a room with gaps between its walls."""

from hilsim.capture.datagram import CapturedDatagram
from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.emulator.batch import Flow
from hilsim.emulator.lidar import LidarEmulator
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.sensor.time_input import GpsSetting
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import fixed_track
from hilsim.world.platforms.platform import build_platform
from hilsim.world.scene.materials import Material
from hilsim.world.scene.primitives import box
from hilsim.world.scene.world import SceneObject, build_world
from tests.lidars import lidar_setting

UTC_EPOCH_NS = 1_767_229_199_000_000_000  # one second before the top of an hour
WALLS = [((10.5, 0, 2), (1, 14, 6)), ((-10.5, 0, 2), (1, 14, 6)), ((0, 6.5, 2), (9, 1, 6)), ((0, -6.5, 2), (22, 1, 6)), ((0, 0, -1.5), (22, 14, 1))]


YARD = [((20, 3, 0), (2, 5, 3)), ((-7, -9, 0), (4, 2, 3)), ((3, 14, 0), (4, 2, 3)), ((0, 0, -2.3), (300, 300, 1))]
"""Open ground with little on it under an open sky."""


def flow(port):
    return Flow(name=f"lidar/{port}", source="192.168.1.201", source_port=port, destination="192.168.1.77", destination_port=port)


def emulate(span_ns=4_000_000_000, places=WALLS, profile="vlp16", **setting):
    """Some seconds of it, as datagrams at their deadlines; ``places`` are middles and sizes of boxes."""
    spec = parse_table(VelodyneSpec, read_toml(profiles_directory() / "sensors" / f"{profile}.toml"), profile)
    materials = [Material(name=f"wall {number}", reflectivity=12 + 15 * number) for number in range(len(places))]
    lidar = LidarEmulator(
        setting=lidar_setting(spec, **{"gps": GpsSetting(latitude_deg=36.8, longitude_deg=-2.4)} | setting),
        world=build_world(
            [
                SceneObject(mesh=box(size, material), placement=Pose(position_m=place))
                for (place, size), material in zip(places, materials, strict=True)
            ]
        ),
        platform=build_platform(fixed_track(Pose(position_m=(0.113, 0.047, 0.0)))),
        seed=2026,
        utc_epoch_ns=UTC_EPOCH_NS,
        data_flow=flow(2368),
        position_flow=flow(8308),
    )
    batches = [lidar.data_span(0, span_ns), lidar.position_span(0, span_ns)]
    rows = sorted((int(batch.deadline_ns[row]), number, row) for number, batch in enumerate(batches) for row in range(batch.size.size))
    for frame, (deadline_ns, number, row) in enumerate(rows, start=1):
        batch = batches[number]
        yield CapturedDatagram(
            host_stamp_ns=UTC_EPOCH_NS + deadline_ns,
            source=batch.flow.source,
            source_port=batch.flow.source_port,
            destination=batch.flow.destination,
            destination_port=batch.flow.destination_port,
            payload=batch.payload[row, : batch.size[row]].tobytes(),
            link=None,
            is_ethernet=False,
            frame=frame,
        )
