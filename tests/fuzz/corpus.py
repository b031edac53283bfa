"""Sound inputs: small files by hilsim's own writers, by the libraries that others use, and the shipped profiles; real captures where they are at hand."""

import itertools
import json
import shutil
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import trimesh
from mcap.writer import CompressionType
from PIL import Image
from PIL.TiffImagePlugin import ImageFileDirectory_v2
from rosbags.rosbag1 import Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from hilsim.api.packet import Packet
from hilsim.capture.pcap import CaptureFile, PcapWriter
from hilsim.config.profiles import profiles_directory
from hilsim.families.cepton.protocol.info import encode_info_packet
from hilsim.families.hesai.interface.state import SETTINGS as HESAI_SETTINGS
from hilsim.families.hesai.protocol.ptc import encode_frame as encode_ptc
from hilsim.families.livox.interface.keys import KEYS
from hilsim.families.livox.protocol.commands import counted
from hilsim.families.ouster.protocol.metadata import metadata_document
from hilsim.faults.catalogue import FAULTS, REQUIRED
from hilsim.parts.external.messages import OBJECT_DTYPE, MessageKind, Shape, encode, poses_of
from hilsim.protocols.gazebo_discovery import Advertised, DiscoveryType, encode_discovery
from hilsim.read.background.files.archive import write_archive
from hilsim.show.outputs.bag import RosBag
from hilsim.show.outputs.events import SourceInfo
from hilsim.show.outputs.foxglove_log import McapFile
from tests.conftest import CAPTURES
from tests.livox_units import counted_keys
from tests.mavlink import mixture
from tests.ouster_sensors import sensor
from tests.pages import ROOT
from tests.support import ROOM
from tests.unit.assets import test_files_whole, test_submeshes
from tests.unit.background.backgrounds import AZIMUTH, IMAGE, told
from tests.unit.external.osi_bytes import GROUND_TRUTH, SENSOR_VIEW
from tests.unit.external.test_osi import write_mcap
from tests.unit.gazebo.worlds import scanner, thing, world_text
from tests.unit.rangefinders.test_sf45 import frame as sf45_frame
from tests.unit.replays.streams import CEPTON, POSITION, Recording, data_packet, position_packet, stdv_packet
from tests.unit.sdf import test_reading

_PACKETS_OF_A_REAL_CAPTURE = 60


def _toml(folder: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((profiles_directory() / folder).glob("*.toml"))]


def sensor_profiles(_: Path) -> list[bytes]:
    return _toml("sensors")


def vehicle_profiles(_: Path) -> list[bytes]:
    return _toml("vehicles")


def rigs(_: Path) -> list[bytes]:
    replay = b'name = "r"\n[[replay]]\nname = "a"\nfile = "a.pcap"\nloop = "plain"\n[[replay.flow]]\nmatch = "192.168.1.201"\n[record]\nfile = "a"\nrotate_mb = 2.0\n'
    return [*_toml("rigs"), ROOM.encode(), replay]


def small_rigs(_: Path) -> list[bytes]:
    """That are built in a moment."""
    return [ROOM.encode()]


def _mesh() -> trimesh.Trimesh:
    return trimesh.creation.box((1.0, 2.0, 3.0))


def meshes(suffix: str, folder: Path) -> list[bytes]:
    found = []
    for encoding in ("ascii", "binary") if suffix in {"ply", "stl"} else ("",):
        path = folder / f"sound.{suffix}"
        options = {"ply": {"encoding": encoding}, "stl": {"file_type": "stl_ascii" if encoding == "ascii" else "stl"}}.get(suffix, {})
        _mesh().export(path, **options)
        found.append(path.read_bytes())
    return found + generated(suffix, folder)


def generated(suffix: str, folder: Path) -> list[bytes]:
    """Files of the generators of ``test_files_whole``: concave polygons, strips, fans, either byte order."""
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        path = folder / f"generated.{suffix}"
        if suffix == "tif":
            kind, missing = ("<i2", "<f4", "<f8")[seed % 3], np.eye(6, 5, dtype=bool)
            test_files_whole.tiff(rng, path, np.where(missing, -9999, 7).astype(kind), missing, -9999.0)
        else:
            faces, middles, _, _ = test_files_whole.polygons(rng, 3 if suffix == "stl" else 9)
            getattr(test_files_whole, suffix.replace("glb", "gltf"))(rng, path, faces, middles)
        found.append(path.read_bytes())
    return found


def collada(folder: Path) -> list[bytes]:
    """By trimesh, and by hand with nodes within nodes and in place of others."""
    nested = test_submeshes.SCENE + '<node><instance_node url="#l"/></node>'
    test_submeshes.collada(folder, nested, f'<node id="l" name="inner">{test_submeshes.USE}</node>')
    return [*meshes("dae", folder), (folder / "a.dae").read_bytes()]


def worlds(folder: Path) -> list[bytes]:
    """The example, and one of few lines that holds every shape."""
    (folder / "a.obj").write_text("o left\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\no right\nf 1 3 2\n")
    pictures(folder)
    shapes = (
        "<heightmap><uri>sound.png</uri><size>8 8 1</size><pos>0 0 1</pos><sampling>2</sampling></heightmap>",
        "<mesh><uri>a.obj</uri><scale>1 1 2</scale><submesh><name>left</name><center>true</center></submesh></mesh>",
        "<sphere><radius>1</radius></sphere>",
        "<ellipsoid><radii>1 2 3</radii></ellipsoid>",
        "<plane><normal>0 0 1</normal></plane>",
        "<polyline><point>0 0</point><point>4 0</point><point>1 1</point><point>0 4</point><height>2</height></polyline>",
    )
    robot = test_reading.URDF.format(lidar=test_reading.LIDAR.format(kind="gpu_lidar")).replace("package://robo/arm.stl", "a.obj")
    models = [thing(f"model{number}", shape, f"{number} 0 0 0.1 0.2 0.3") for number, shape in enumerate(shapes)]
    return [
        (ROOT / "examples" / "warehouse.sdf").read_bytes(),
        world_text(*models, thing("robot", "", inner=scanner(noise="<noise><stddev>0.1</stddev></noise>"))).encode(),
        world_text(*models[:2]).replace("collision", "visual").encode(),
        robot.encode(),
    ]


def osi(_folder: Path) -> list[bytes]:
    """Messages of a simulator."""
    return [GROUND_TRUTH, SENSOR_VIEW]


def osi_mcaps(folder: Path) -> list[bytes]:
    """Traces in chunks of each kind, and without chunks."""
    found = []
    for number, options in enumerate(({"compression": each} for each in CompressionType), 1):
        path = folder / f"sound-{number}.mcap"
        write_mcap(path, [("truth", "osi3.GroundTruth", [GROUND_TRUTH] * 3), ("view", "osi3.SensorView", [SENSOR_VIEW])], **options)
        found.append(path.read_bytes())
    write_mcap(folder / "sound.mcap", [("truth", "osi3.GroundTruth", [GROUND_TRUTH] * 3)], use_chunking=False)
    return [*found, (folder / "sound.mcap").read_bytes()]


def osi_traces(_: Path) -> list[bytes]:
    return [b"".join(struct.pack("<I", len(each)) + each for each in messages) for messages in ([GROUND_TRUTH], [GROUND_TRUTH] * 3)]


_ADDRESS = ("127.0.0.1", 2368)
_PACKETS = [
    Packet(time_ns=number, sensor="a", stream="data", source=_ADDRESS, destination=_ADDRESS, payload=bytes(1206), headers=bytes(42))
    for number in range(3)
]


def packet_mcaps(folder: Path) -> list[bytes]:
    """Files of hilsim itself, of packets with headers and without."""
    found = []
    for packets in (_PACKETS, [replace(packet, headers=b"") for packet in _PACKETS]):
        output = McapFile(folder / "sound.mcap", SourceInfo(name="a"))
        for packet in packets:
            output.write(packet)
        output.close()
        found.append((folder / "sound.mcap").read_bytes())
    return found


def ros2_bags(storage: str, folder: Path) -> list[bytes]:
    """The file of a bag; its metadata stay beside it."""
    shutil.rmtree(folder / "bag", ignore_errors=True)
    output = RosBag(folder / "bag", SourceInfo(name="a"), storage=storage)
    for packet in _PACKETS:
        output.write(replace(packet, payload=data_packet(0, 0)))
    output.close()
    return [next(path for path in (folder / "bag").iterdir() if path.suffix != ".yaml").read_bytes()]


def bag_metadata(folder: Path) -> list[bytes]:
    ros2_bags("sqlite3", folder)
    return [(folder / "bag" / "metadata.yaml").read_bytes()]


def ros1_bags(folder: Path) -> list[bytes]:
    """Bags with plain and with compressed chunks."""
    store = get_typestore(Stores.ROS1_NOETIC)
    packet_text, scan_text = "time stamp\nuint8[1206] data\n", "std_msgs/Header header\nvelodyne_msgs/VelodynePacket[] packets\n"
    store.register(
        get_types_from_msg(packet_text, "velodyne_msgs/msg/VelodynePacket") | get_types_from_msg(scan_text, "velodyne_msgs/msg/VelodyneScan")
    )
    types = store.types
    now = types["builtin_interfaces/msg/Time"](sec=1, nanosec=2)
    packets = [types["velodyne_msgs/msg/VelodynePacket"](stamp=now, data=np.zeros(1206, np.uint8))] * 2
    scan = types["velodyne_msgs/msg/VelodyneScan"](header=types["std_msgs/msg/Header"](seq=1, stamp=now, frame_id="a"), packets=packets)
    found = []
    for compression in (None, *Writer.CompressionFormat):
        path = folder / "sound.bag"
        path.unlink(missing_ok=True)
        writer = Writer(path)
        if compression is not None:
            writer.set_compression(compression)
        with writer:
            connection = writer.add_connection("/a/velodyne_packets", "velodyne_msgs/msg/VelodyneScan", typestore=store)
            for number in range(3):
                writer.write(connection, number, store.serialize_ros1(scan, "velodyne_msgs/msg/VelodyneScan"))
        found.append(path.read_bytes())
    return found


def scripts(_: Path) -> list[bytes]:
    """Changes as TOML."""
    return [b"\n".join(b"[[change]]\n" + _toml_of(json.loads(line)["change"]) for line in json_requests(_) if b"change" in line)]


def _toml_of(change: dict[str, object]) -> bytes:
    table = {"at_s": 1.0} | change
    return "\n".join(f"{key} = {_toml_value(value)}" for key, value in table.items()).encode() + b"\n"


def _toml_value(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml_value, value))}]"
    return "{ " + ", ".join(f"{key} = {_toml_value(each)}" for key, each in value.items()) + " }" if isinstance(value, dict) else json.dumps(value)


def script_lines(_: Path) -> list[bytes]:
    """Changes as lines of JSON."""
    return [b"\n".join(json.dumps({"at_s": 1.0} | json.loads(line)["change"]).encode() for line in json_requests(_) if b"change" in line)]


def discovery(_folder: Path) -> list[bytes]:
    """Datagrams of every kind."""
    about = Advertised(topic="@/here@/scan", address="tcp://127.0.0.1:4000", process="p", node="n", message_type="gz.msgs.LaserScan")
    return [encode_discovery(kind, "p", about if kind in {DiscoveryType.ADVERTISE, DiscoveryType.SUBSCRIBE} else None) for kind in DiscoveryType]


def objects(folder: Path) -> list[bytes]:
    by_hand = b"mtllib a.mtl\nv 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0.5\nvn 0 0 1\nusemtl Red brick\nf 1/1/1 2//2 3 4\nf -4 -3 \\\n-2\n# end\n"
    (folder / "a.mtl").write_text("newmtl Red\n")
    return [*meshes("obj", folder), by_hand]


def gltf(folder: Path) -> list[bytes]:
    files = trimesh.exchange.gltf.export_gltf(trimesh.Scene(_mesh()))
    for name, data in files.items():
        if not name.endswith(".gltf"):
            (folder / name).write_bytes(data)
    return [next(data for name, data in files.items() if name.endswith(".gltf")), *generated("gltf", folder)]


def pictures(folder: Path) -> list[bytes]:
    heights = np.arange(64, dtype=np.uint16).reshape(8, 8) * 100
    Image.fromarray(heights).save(folder / "sound.png")
    return [(folder / "sound.png").read_bytes()]


def geotiffs(folder: Path) -> list[bytes]:
    tags = ImageFileDirectory_v2()
    for tag, kind, value in (
        (33550, 12, (2.0, 3.0, 0.0)),
        (33922, 12, (0.0, 0.0, 0.0, 691000.0, 5334000.0, 0.0)),
        (34735, 3, (1, 1, 0, 1, 1024, 0, 1, 1)),
        (42113, 2, "-9999"),
    ):
        tags[tag] = value
        tags.tagtype[tag] = kind
    found = []
    for values, how in itertools.product((np.uint16, np.float32), ("raw", "tiff_adobe_deflate", "tiff_lzw", "packbits")):
        Image.fromarray(np.arange(64, dtype=values).reshape(8, 8)).save(folder / "sound.tif", tiffinfo=tags, compression=how)
        found.append((folder / "sound.tif").read_bytes())
    return found + generated("tif", folder)


def trajectories(folder: Path) -> list[bytes]:
    rows = [(t / 10, t * 0.5, 1.0, 2.0, 1.0, 0.0, 0.0, 0.0) for t in range(12)]
    csv = b"time_s,x_m,y_m,z_m,qw,qx,qy,qz\n" + b"".join(",".join(map(str, row)).encode() + b"\n" for row in rows)
    angles = b"t,x,y,z,roll_deg,pitch_deg,yaw_deg\n" + b"".join(f"{t},{x},{y},{z},0,1,{t}\n".encode() for t, x, y, z, *_ in rows)
    tum = b"# time x y z qx qy qz qw\n" + b"".join(f"{t} {x} {y} {z} 0 0 0 1\n".encode() for t, x, y, z, *_ in rows)
    euroc = csv.replace(
        b"time_s,x_m,y_m,z_m,qw,qx,qy,qz", b"#timestamp [s], p_RS_R_x [m], p_RS_R_y [m], p_RS_R_z [m], q_RS_w [], q_RS_x [], q_RS_y [], q_RS_z []"
    )
    (folder / "times.txt").write_text("".join(f"{t}\n" for t in range(12)))
    kitti = b"".join(f"1 0 0 {x} 0 1 0 {y} 0 0 1 {z}\n".encode() for _, x, y, z, *_ in rows)
    return [csv, angles, tum, euroc, kitti]


def archives(folder: Path) -> list[bytes]:
    return [_written(write_archive, grid, folder / "sound.npz") for grid in (AZIMUTH, IMAGE)]


def _written(write, grid, path: Path) -> bytes:
    write(told(grid), path)
    return path.read_bytes()


def captures(folder: Path) -> list[bytes]:
    """PCAP files of some tens of packets: a Velodyne with its position packets, a Cepton; and the first packets of each real capture."""
    turning = Recording().add_turning(60)
    for number in range(4):
        turning.add(number * 20_000_000, POSITION, position_packet(number))
    cepton = Recording()
    for number in range(40):
        cepton.add(number * 1_000_000, CEPTON, stdv_packet(1000 * number, (number // 8 % 2,) * 6, sequence=number))
        if number % 10 == 0:
            cepton.add(number * 1_000_000, CEPTON, _information())
    files = [turning.write(folder / "turning.pcap"), cepton.write(folder / "cepton.pcap")]
    for real in sorted(CAPTURES.glob("*.pcap")):
        files.append(folder / f"real-{real.name}")
        with PcapWriter(files[-1]) as writer:
            for datagram in itertools.islice(CaptureFile(real), _PACKETS_OF_A_REAL_CAPTURE):
                writer.write(datagram.host_stamp_ns, (datagram.link or b"") + _headers(datagram) + datagram.payload)
    return [path.read_bytes() for path in files]


def _headers(datagram) -> bytes:
    """IPv4 and UDP headers, without checksums."""
    size = len(datagram.payload)
    source, destination = (bytes(map(int, address.split("."))) for address in (datagram.source, datagram.destination))
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + size, 0, 0x4000, 255, 17, 0, source, destination)
    return ip + struct.pack(">HHHH", datagram.source_port, datagram.destination_port, 8 + size, 0)


def mavlink(_: Path) -> list[bytes]:
    return [b"".join(mixture()), *mixture()]


def poses(_: Path) -> list[bytes]:
    """Messages of poses of every kind."""
    several = poses_of([0, 7, 9, 99], [(1.0, 2.0, 3.0)] * 4, [(1.0, 0.0, 0.0, 0.0)] * 4)
    several["flags"], several["velocity_mps"] = [0, 1, 3, 4], 2.0
    things = np.zeros(2, OBJECT_DTYPE)
    things["id"], things["shape"], things["size_m"], things["name"] = [7, 9], Shape.BOX, 1.0, [b"one", b"two"]
    kinds = [(MessageKind.POSES, several), (MessageKind.POSES, several[:1]), (MessageKind.OBJECTS, things), (MessageKind.REMOVE, things)]
    kinds += [(MessageKind.STEP, None), (MessageKind.DONE, None), (MessageKind.BYE, None)]
    return [encode(kind, records, time_ns=1_000_000 * number, sender=1, sequence=number) for number, (kind, records) in enumerate(kinds)]


def servos(_: Path) -> list[bytes]:
    return [struct.pack("<HHI16H", 18458, 400, 3, *[1500] * 16), struct.pack("<HHI32H", 29569, 1000, 4, *[1000] * 32)]


def sf45(_: Path) -> list[bytes]:
    stream = sf45_frame(27, struct.pack("<I", 0x101), write=True) + sf45_frame(30, struct.pack("<I", 5), write=True)
    return [stream, *(sf45_frame(command) for command in (0, 1, 27, 30, 66, 85, 96, 97, 98)), sf45_frame(98, struct.pack("<f", 90.0), write=True)]


def sentences(_: Path) -> list[bytes]:
    return [
        b"$GPRMC,081802.00,A,3649.7478558,N,00224.4542928,W,0.034,212.5,210116,0.0,E,A*2E\r\n",
        b"$GPGGA,172814.0,3723.46587704,N,12202.26957864,W,2,6,1.2,18.893,M,-25.669,M,2.0,0031*4F\r\n",
    ]


def _information() -> bytes:
    said = encode_info_packet(
        model=24, serial=7, firmware=(1, 2, 3, 4), model_name="by hand", part_number=1, power_up_us=10**15, sync_offset_us=10**15, returns=1
    )
    return said.tobytes()


def stdv_payloads(_: Path) -> list[bytes]:
    return [stdv_packet(123456, (0, 1, 1)), stdv_packet(123456, (0, 1, 1), sequence=7)]


def ouster_metadata(_: Path) -> list[bytes]:
    """Documents of sensors with few beams, and one of the flat form."""
    sensors = [sensor("RNG15_RFL8_NIR8_DUAL", 4, "2.3.0"), sensor("LEGACY", 2, "2.5.2", "512x10"), sensor(channels=3, version="3.2.0", user_data="x")]
    documents = [metadata_document(each) for each in sensors]
    flat = {key: value for group in ("sensor_info", "beam_intrinsics", "imu_intrinsics") for key, value in documents[0][group].items()}
    documents.append(flat | {"lidar_mode": "1024x10", "data_format": documents[0]["lidar_data_format"]})
    return [json.dumps(document).encode() for document in documents]


def livox_requests(_: Path) -> list[bytes]:
    """Commands and their data: all keys at their values of the factory and the destinations that the SDK sets, a query of everything, and the others."""
    address = bytes((10, 0, 0, 7))
    hosts = [(key, address + struct.pack("<HH", port + 1, port)) for key, port in ((5, 56200), (6, 56300), (7, 56400))]
    written = [
        (number, key.factory) for number, key in KEYS.items() if key.accepts is not None and "mid360" in key.models and number not in (5, 6, 7)
    ]
    texts = [(0x0100, counted([*written, *hosts])), (0x0100, counted(hosts)), (0x0101, counted_keys([*KEYS])), (0x0000, b""), (0x0200, b"\0\1")]
    return [struct.pack("<H", command) + data for command, data in [*texts, (0x0201, bytes(16)), (0x0202, bytes(80))]]


def hesai_requests(_: Path) -> list[bytes]:
    """Frames of PTC: all settings at their values of the factory and others, all that is read, and queries of HTTP."""
    others = {0x17: b"\4\xb0", 0x18: b"\1\0\x5a", 0x1E: b"\5", 0x1F: b"\1", 0x22: b"\0\0\x64\x0a\x8c"}
    read = [(command, b"") for command in (5, 7, 8, 9, 0x10, 0x23, 0x26, 0x27, 0x3A)] + [(6, bytes([part])) for part in (1, 2, 3, 4)]
    frames = [*((command, setting.factory) for command, setting in HESAI_SETTINGS.items()), *others.items(), *read]
    pages = [
        b"action=get&object=lidar_monitor",
        b"action=set&object=lidar&key=spin_speed&value=3",
        b"action=set&object=lidar_data&key=standbymode&value=1",
    ]
    return [encode_ptc(command, payload) for command, payload in frames] + pages


def commands(_: Path) -> list[bytes]:
    return [b"pause", b"resume front", b"seek 1.25 front", b"status", b"seek 1e8"]


def json_requests(_: Path) -> list[bytes]:
    return [
        b'{"id": 1, "do": "change", "change": {"kind": "move", "name": "walker", "position_m": [4.0, 1.0, 0.85], "rotation_deg": [0, 0, 90]}}',
        b'{"do": "change", "change": {"kind": "add", "at_s": 12.5, "box": {"name": "crate", "size_m": [1, 1, 1], "position_m": [4, 0, 0.5]}}}',
        (
            b'{"do": "change", "change": {"kind": "travel", "name": "a", "motion": {"waypoints": [{"time_s": 0.5, "position_m": [1, 2, 3]}'
            b', {"time_s": 1.5, "position_m": [1, 2, 4]}]}}}'
        ),
        b'{"do": "change", "change": {"kind": "weather", "weather": {"fog_visibility_m": 40.0}, "late_s": {"roof": 1e3}}}',
        b'{"do": "change", "change": {"kind": "sensor", "sensor": "roof", "laser": false, "return_mode": "dual"}}',
        (
            b'{"do": "change", "change": {"kind": "fault", "fault": {"kind": "wet_window", "on": "ro*", "name": "rain", "for_s": 5.0, "ramp_s": 0.5'
            b', "ramp": "exponential", "azimuth_deg": [350.0, 20.0], "elevation_deg": [-5, 5], "channels": [0, 15], "share": 0.5, "drops": 7, "seed": 9}}}'
        ),
        b'{"do": "change", "change": {"kind": "fault", "at_s": 3.5, "fault": {"kind": "dead_channel", "channels": [3, 7], "at_s": 3.25}}}',
        b'{"do": "change", "change": {"kind": "fault", "fault": {"kind": "lock_lost", "slip_deg": -90.0, "drift_dps": 36.0, "ramp_out_s": 1.0, "for_s": 2}}}',
        b'{"do": "change", "change": {"kind": "clear", "at_s": 4.5, "name": "dead_*"}}',
        b'{"id": "b", "do": "seek", "position_s": 12.5, "replay": "front"}',
    ]


def faults(_: Path) -> list[bytes]:
    """A request for each fault of the catalogue, with all its keys."""
    tables = [
        {"kind": row.kind, "on": "*", "name": "a", "for_s": 2.0, "ramp_s": 0.5, "ramp_out_s": 0.5, "ramp": "linear", "seed": 3}
        | {key.name: [1, 3] if key.default is REQUIRED else key.default for key in row.keys}
        for row in FAULTS
    ]
    return [json.dumps({"do": "change", "change": {"kind": "fault", "fault": table}}).encode() for table in tables]


def fault_scripts(_: Path) -> list[bytes]:
    """Three faults, and their end, as TOML."""
    changes = [_toml_of(json.loads(request)["change"]) for request in faults(_)] + [b'at_s = 9.5\nkind = "clear"\nname = "a*"\n']
    return [b"".join(b"[[change]]\n" + change for change in (*changes[at : at + 3], changes[-1])) for at in range(0, len(FAULTS), 3)]


def requests(_: Path) -> list[bytes]:
    return [
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ]
