"""Every reader of bytes that come from outside, with what it is fed."""

import asyncio
import contextlib
import io
import json
import logging
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from types import SimpleNamespace

import click
import numpy as np

from hilsim.assembly.build import build_lidar, build_scenery
from hilsim.assembly.changed import RigState, lidar_after
from hilsim.assembly.network import network_faults
from hilsim.capture.pcap import CaptureFile
from hilsim.config.parse import parse_table, read_toml
from hilsim.config.rig import load_rig
from hilsim.config.script import load_script, parse_change
from hilsim.config.sensor_profiles import parse_profile
from hilsim.config.tables.metrics import MetricsServerSpec
from hilsim.daemon.control.grammar import in_words, parse_request, parse_words
from hilsim.daemon.control.requests import answer_at_once
from hilsim.emulator.lidar import LidarEmulator
from hilsim.errors import ConfigError, PacketError
from hilsim.families.cepton.protocol.stdv import frame_parities, read_stdv_header
from hilsim.families.hesai.daemon.packets import keys_of, values_of
from hilsim.families.hesai.family import HesaiFamily
from hilsim.families.hesai.interface.cgi import page_outcome
from hilsim.families.hesai.interface.requests import Conditions as HesaiConditions
from hilsim.families.hesai.interface.requests import outcome_of as hesai_outcome
from hilsim.families.hesai.interface.state import HesaiState
from hilsim.families.hesai.interface.state import Unit as HesaiUnit
from hilsim.families.hesai.protocol.ptc import HEAD_SIZE, Request, read_head
from hilsim.families.hesai.protocol.ptc import encode_frame as encode_ptc
from hilsim.families.livox.daemon.packets import setting_of
from hilsim.families.livox.interface.keys import MID360_PORTS
from hilsim.families.livox.interface.requests import outcome_of
from hilsim.families.livox.interface.state import Conditions, LidarState, Unit
from hilsim.families.livox.protocol.commands import ControlFrame, encode_frame, read_frame
from hilsim.families.livox.setting import LivoxSetting
from hilsim.families.ouster.protocol.lidar import decode_lidar_packets, lidar_layout
from hilsim.families.ouster.protocol.metadata import metadata_document
from hilsim.families.ouster.protocol.metadata_reading import read_metadata
from hilsim.parts.external.bodies import add_body, build_bodies, extend
from hilsim.parts.external.loop import ClockKind, LoopWord, Receiver, build_receiver, take_message
from hilsim.parts.external.messages import decode
from hilsim.parts.external.sources.osi import osi_snapshot
from hilsim.parts.external.sources.osi_traces import read_trace
from hilsim.parts.gazebo.lidar import fan_of
from hilsim.parts.rangefinders.sf45 import Sf45, Sf45Spec
from hilsim.parts.replays.flows import LoopbackSources
from hilsim.parts.replays.offline import OfflineReplay
from hilsim.parts.replays.specs import ReplaySpec
from hilsim.parts.vehicle.physics.specs import VehicleSpec
from hilsim.protocols.ardupilot_json import decode_servos, motor_commands
from hilsim.protocols.gazebo_discovery import decode_discovery
from hilsim.protocols.mavlink.frames import FrameState, allocate_stream, append, make_room, next_frame
from hilsim.protocols.nmea_retiming import retime_sentence
from hilsim.protocols.osi import decode_reflections
from hilsim.protocols.recognise import recognise
from hilsim.read.analysis.conformance.checker import StreamChecker
from hilsim.read.analysis.conformance.report import render_text, to_json
from hilsim.read.analysis.inspection.inspector import inspect
from hilsim.read.background.files.archive import read_archive
from hilsim.sensor.setup import SensorSetup
from hilsim.show.outputs.packets import read_packets
from hilsim.telemetry.readings import Reading
from hilsim.telemetry.server import serve_metrics
from hilsim.world.assets.extent import check_extent
from hilsim.world.assets.heightmaps import heightmap_mesh
from hilsim.world.assets.meshes import load_mesh
from hilsim.world.assets.sdf_objects import sdf_objects
from hilsim.world.assets.terrain import load_terrain
from hilsim.world.assets.trajectories import load_trajectory
from hilsim.world.geometry.live_keys import build_live_keys, live_pose
from hilsim.world.geometry.poses import Pose
from hilsim.world.platforms.live import build_live_pose, live_state
from hilsim.world.scene.mesh import Mesh
from hilsim.world.scene.object_specs import MeshSpec, TerrainSpec
from hilsim.world.scene.specs import BUILT_IN_MATERIALS
from hilsim.world.scene.tiles import cut_long_edges, snap, sole_tile_centre
from hilsim.world.sdf.reading import read_sdf
from hilsim.world.sdf.specs import SdfShape
from tests.fuzz import corpus
from tests.fuzz.harness import Target
from tests.fuzz.mutation import spoil_bytes, spoil_capture, spoil_glb, spoil_json, spoil_mcap, spoil_npz, spoil_text
from tests.hesai_sensors import hesai
from tests.support import ROOM, write_rig
from tests.unit.telemetry.conftest import make_reading

_MAX_CUES = 5000
_MAX_TRIANGLES = 2000
"""Of what is built after it was read: larger worlds take their time by right."""


def _file(data: bytes, folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


# -- captures ---------------------------------------------------------------------------------------------------------------------------


def _inspect(data: bytes, folder: Path) -> None:
    inspect(CaptureFile(_file(data, folder, "a.pcap")))


def _verify(data: bytes, folder: Path) -> None:
    checker = StreamChecker()
    checker.feed(CaptureFile(_file(data, folder, "a.pcap")))
    result = checker.result()
    render_text(result)
    to_json(result)


def _replay(data: bytes, folder: Path) -> None:
    path = _file(data, folder, "a.pcap")
    number = data[-1] if data else 0
    spec = ReplaySpec(
        name="a",
        file=path.name,
        pace=("device", "capture", "nominal")[number % 3],
        loop=("none", "plain", "seamless")[number // 3 % 3],
        loops=2 if number // 3 % 3 else 0,
        retime=("utc", "device", "none")[number // 9 % 3],
        rate_hz=100.0,
        interval_scale=(1.0, 1000.0)[number // 27 % 2],
    )
    replay = OfflineReplay(spec, path, LoopbackSources(), utc_epoch_ns=1_700_000_000 * 10**9)
    sent = 0
    for stop_ns in (10**8, 10**9, 10**11):
        sent += sum(len(batch.size) for batch in replay.span(stop_ns))
        if sent > _MAX_CUES:
            return


def _command(arguments: tuple[str, ...], data: bytes, folder: Path) -> None:
    """A whole command; what it prints goes nowhere."""
    from hilsim.cli import cli  # noqa: PLC0415 - imports a lot

    _file(data, folder, "a.pcap")
    places = [str(folder / word[1:]) if word.startswith("@") else word for word in arguments]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(click.ClickException):
        cli.main(places, standalone_mode=False)


# -- rigs -------------------------------------------------------------------------------------------------------------------------------


def _rig(data: bytes, folder: Path) -> None:
    load_rig(_file(data, folder, "rig.toml"))


def _built_rig(data: bytes, folder: Path) -> None:
    rig = load_rig(_file(data, folder, "rig.toml"))
    scenery = build_scenery(rig)
    if len(rig.spec.sensor) == 1 and len(scenery.world.corners) < _MAX_TRIANGLES:
        build_lidar(rig, 0, scenery, utc_epoch_ns=0, frames=False).data_span(0, 4_000_000)


def _sensor_profile(data: bytes, folder: Path) -> None:
    parse_profile(read_toml(_file(data, folder, "a.toml")), "a.toml")


def _vehicle_profile(data: bytes, folder: Path) -> None:
    parse_table(VehicleSpec, read_toml(_file(data, folder, "a.toml")), "a.toml")


# -- scenes and maps --------------------------------------------------------------------------------------------------------------------


def _cut(mesh: Mesh) -> None:
    """What a world does to a mesh first; its trees are kernels, which take their time as Python."""
    corners_m = snap(mesh.vertices_m[mesh.triangles])
    if sole_tile_centre(corners_m) is None:
        cut_long_edges(corners_m, np.arange(len(corners_m)))


def _mesh(suffix: str, data: bytes, folder: Path) -> None:
    spec = MeshSpec(file=_file(data, folder, f"a.{suffix}").name)
    mesh, _ = load_mesh(spec, folder, BUILT_IN_MATERIALS)
    _cut(mesh)


def _sdf(data: bytes, folder: Path) -> None:
    scene = read_sdf(_file(data, folder, "a.sdf"))
    objects, _ = sdf_objects(scene, BUILT_IN_MATERIALS)
    seen, _ = sdf_objects(scene, BUILT_IN_MATERIALS, "visuals")
    for thing in (*objects, *seen):
        check_extent(folder, thing.mesh.vertices_m, thing.mesh.triangles, str)
    for lidar in scene.lidars:
        if lidar.rays < _MAX_CUES:
            assert np.isfinite(fan_of(lidar).directions()).all()


def _discovery(data: bytes, _folder: Path) -> None:
    decode_discovery(data)


def _osi(data: bytes, _folder: Path) -> None:
    with contextlib.suppress(PacketError):
        osi_snapshot(data, "GroundTruth")
    with contextlib.suppress(PacketError):
        decode_reflections(data)
    osi_snapshot(data, "SensorView")


def _osi_trace(suffix: str, data: bytes, folder: Path) -> None:
    for each in read_trace(_file(data, folder, f"a.{suffix}"), "GroundTruth"):
        osi_snapshot(each.content, each.kind)


def _packets(name: str, data: bytes, folder: Path) -> None:
    """Read a file, or the bag with what is beside it."""
    path = _file(data, folder, next((f"bag/{each.name}" for each in folder.glob(f"bag/*.{name}")), f"a.{name}"))
    for _ in read_packets(path.parent if path.parent != folder else path):
        pass


def _script(suffix: str, data: bytes, folder: Path) -> None:
    load_script(_file(data, folder, f"a.{suffix}"))


def _terrain(suffix: str, data: bytes, folder: Path) -> None:
    spec = TerrainSpec(file=_file(data, folder, f"a.{suffix}").name, **({"pixel_m": 1.0, "scale_m": 0.1} if suffix == "png" else {}))
    mesh, _ = load_terrain(spec, folder, BUILT_IN_MATERIALS)
    _cut(mesh)


def _heightmap(suffix: str, data: bytes, folder: Path) -> None:
    path = _file(data, folder, f"a.{suffix}")
    shape = SdfShape(name="a", kind="heightmap", pose=Pose(), size_m=(1.0, 1.0, 1.0), file=path, uri=path.name)
    mesh, _ = heightmap_mesh(shape, BUILT_IN_MATERIALS["grass"], is_seen=False)
    assert mesh is not None
    check_extent(path, mesh.vertices_m, mesh.triangles, str)


def _trajectory(data: bytes, folder: Path) -> None:
    suffix = "csv" if b"," in data[:40] else "tum"
    load_trajectory(_file(data, folder, f"a.{suffix}"), loop=len(data) % 2 == 1)


def _map(data: bytes, folder: Path) -> None:
    read_archive(_file(data, folder, "a.npz"))


# -- links ------------------------------------------------------------------------------------------------------------------------------


def _mavlink(data: bytes, _: Path) -> None:
    stream = allocate_stream(560)
    at = 0
    while at < len(data):
        piece = np.frombuffer(data[at : at + 1 + data[at] % 97], np.uint8)
        make_room(stream)
        taken = append(stream, piece)
        at += max(taken, 1)
        while (found := next_frame(stream)).state != FrameState.NONE:
            if not 0 <= found.start <= found.start + found.size <= stream.buffer.size:
                raise AssertionError(f"a frame must lie in its buffer, got {found}")


@lru_cache(maxsize=1)
def _pose_receiver() -> tuple[Receiver, list[int]]:
    bodies = build_bodies(
        build_live_pose(64), build_live_keys(2, 64), speed_mps=100.0, extrapolate_ns=10**8, ahead_ns=10**7, margin_ns=10**6, delay_ns=3 * 10**7
    )
    add_body(bodies, 7, 0, 100.0)
    add_body(bodies, 9, 1, 100.0)
    return build_receiver(bodies, ClockKind.SENDER), [0]


def _poses(data: bytes, _: Path) -> None:
    """The reading kernel, whose state goes on from one input to the next; then the reader in Python."""
    receiver, clock = _pose_receiver()
    clock[0] += 1_000_000
    size = min(len(data), len(receiver.buffer))
    receiver.buffer[:size] = np.frombuffer(data[:size], np.uint8)
    take_message(receiver, size, clock[0], 0, 0)
    if clock[0] % 4_000_000 == 0:
        extend(receiver.bodies, clock[0], bool(receiver.words[LoopWord.FOLLOWS]), receiver.state)
    for pose in (live_state(receiver.bodies.live, clock[0]), *(live_pose(receiver.bodies.keys, slot, clock[0]) for slot in range(2))):
        if not np.isfinite([*pose[0], *pose[1]]).all():
            raise AssertionError(f"poses must be finite, got {pose}")
    decode(data)


def _servos(data: bytes, _: Path) -> None:
    motor_commands(decode_servos(data).pwm_us)


def _sf45(data: bytes, _: Path) -> None:
    sensor = Sf45(Sf45Spec(port="/dev/null"), seed=1, stream=0)
    for number, at in enumerate(range(0, min(len(data), 4096), 61)):
        sensor.receive(data[at : at + 61], number * 1_000_000)
    sensor.frames(0, 100_000_000, lambda time_ns, _: np.full(time_ns.size, 7.5))


def _sentence(data: bytes, _: Path) -> None:
    guarded = np.full(data[:306].__len__() + 32, 0xA5, np.uint8)
    guarded[16:-16] = np.frombuffer(data[:306], np.uint8)
    retime_sentence(guarded, 16, guarded.size - 16, 1_700_000_000)
    if (guarded[:16] != 0xA5).any() or (guarded[-16:] != 0xA5).any():
        raise AssertionError("bytes beside the sentence must stay as they are")


def _stdv(data: bytes, _: Path) -> None:
    recognise(data)
    header = read_stdv_header(data)
    if header is not None:
        frame_parities(data, header)


def _ouster(data: bytes, _: Path) -> None:
    metadata = read_metadata(data)
    layout = lidar_layout(metadata.profile, metadata.beams.channels, metadata.footer)
    if read_metadata(json.dumps(metadata_document(metadata))) != metadata:
        raise AssertionError("metadata that was read and written must be read as the same")
    packets = np.resize(np.frombuffer(data, np.uint8), (2, layout.size))
    decode_lidar_packets(packets, metadata.profile, layout, checks_footer=False)


LIVOX = LidarState.of(
    Unit(
        model="mid360",
        device_type=9,
        serial="47MDN0000000001",
        title="Mid-360",
        mac=bytes(6),
        address="10.0.0.2",
        ports=MID360_PORTS,
        boot_ns=0,
    ),
    {},
)


def _livox(data: bytes, _: Path) -> None:
    """A command and its data, as a host with right checksums sends them."""
    sent = ControlFrame(command=int.from_bytes(data[:2], "little"), sequence=1, data=data[2:1378])
    frame, now = read_frame(encode_frame(sent)), Conditions(now_ns=10**9, local_ns=7, time_type=0)
    if frame != sent:
        raise AssertionError("a frame that was written must be read as the same")
    outcome = outcome_of(LIVOX, frame, now)
    read_frame(encode_frame(frame.answer(outcome.data)))
    outcome.state.work(2 * 10**9)
    setting_of(outcome.state.values, LivoxSetting())


HESAI_FAMILY = HesaiFamily(hesai("xt32"), SensorSetup())
HESAI = HesaiState.of(HesaiUnit(model="XT32", serial="no real unit", mac=bytes(6), angles_deg=((15.0, 0.0),) * 32), {})


def _hesai(data: bytes, _: Path) -> None:
    """A frame of PTC, as the server reads it, and the same as a query of HTTP."""
    query = dict(part.partition("=")[::2] for part in data.decode("latin-1").split("&"))
    json.dumps(page_outcome(HESAI, query)[1])
    try:
        command, length = read_head(data[:HEAD_SIZE].ljust(HEAD_SIZE, b"\0"))
    except ValueError:
        return
    state, answer = hesai_outcome(HESAI, Request(command, data[HEAD_SIZE:][:length]), HesaiConditions(now_ns=10**9))
    read_head(encode_ptc(command, answer.payload, answer.code)[:HEAD_SIZE])
    again = [state.written(int(name, 16), bytes.fromhex(text)) for name, text in state.kept.items()]
    if any(then != state or code != 0 for then, code in again):
        raise AssertionError("settings that are kept must be settings")
    family = HESAI_FAMILY
    for number, payload in values_of(family).items():
        if state.values[number] != payload:
            family = replace(family, setup=replace(family.setup, **keys_of(number, state.values[number], family)))
    values_of(family)


# -- listeners --------------------------------------------------------------------------------------------------------------------------


def _no_replay(name: str) -> dict[str, object]:
    if name:
        raise ConfigError(f"no replay {name}")
    return {}


_STATION = SimpleNamespace(played=_no_replay, reading=Reading)


def _control(data: bytes, _: Path) -> None:
    in_words(answer_at_once(_STATION, parse_words(data.split(b"\n", 1)[0].decode(errors="replace"))))


def _request(data: bytes, _: Path) -> None:
    change = parse_request(data.decode(errors="replace")).get("change")
    if isinstance(change, dict):
        parse_change(change)


@lru_cache(maxsize=1)
def _room(folder: Path) -> tuple[RigState, LidarEmulator]:
    """A room whose objects and sensor have the names of the corpus, and the sensor."""
    rig = load_rig(
        write_rig(
            folder,
            ROOM.split("[[sensor]]")[0] + '[[sensor]]\nname = "roof"\nprofile = "vlp16"\ngps = { latitude_deg = 36.8, longitude_deg = -2.4 }\n',
        )
    )
    scenery = build_scenery(rig)
    state = RigState.at_start(rig, scenery)
    for name in ("walker", "a"):
        state = state.after(parse_change({"kind": "add", "box": {"name": name, "size_m": [1, 1, 1], "position_m": [4, 0, 0.5]}}))
    return state, build_lidar(rig, 0, scenery, utc_epoch_ns=0, frames=False)


def _change(data: bytes, folder: Path) -> None:
    former, lidar = _room(folder)
    change = parse_request(data.decode(errors="replace")).get("change")
    if isinstance(change, dict):
        parsed = parse_change(change)
        network_faults(former.rig, (replace(parsed, at_s=parsed.at_s or 1.0),))
        state = former.after(parsed)
        _ = lidar_after(lidar, lidar, state, 0).plan


def _http(data: bytes, _: Path) -> None:
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)
    answer = asyncio.run(_ask(data[:20_000]))
    if b" 500 " in answer.split(b"\r\n", 1)[0]:
        raise AssertionError(f"a request must not be answered by an error of the server, got {answer[:60]!r}")


async def _ask(data: bytes) -> bytes:
    async with serve_metrics(make_reading, MetricsServerSpec(port=0)) as (host, port):
        reader, writer = await asyncio.open_connection(host, port)
        answer = b""
        with contextlib.suppress(ConnectionError):
            writer.write(data)
            writer.write_eof()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.3):
                    answer = await reader.read(1 << 16)
        writer.transport.abort()
        return answer


_COMMANDS = {
    "compare": ("compare", "@a.pcap", "@turning.pcap"),
    "picture": ("picture", "@a.pcap", "--output", "@a.png"),
    "background": ("background", "@a.pcap", "--output", "@map", "--force", "--workers", "1"),
}

TARGETS = {
    target.name: target
    for target in (
        Target(name="inspect", corpus=corpus.captures, mutate=spoil_capture, run=_inspect, suffix=".pcap"),
        Target(name="verify", corpus=corpus.captures, mutate=spoil_capture, run=_verify, suffix=".pcap", cpu_s=1.0),
        Target(name="replay", corpus=corpus.captures, mutate=spoil_capture, run=_replay, suffix=".pcap", cpu_s=2.0),
        *(
            Target(
                name=name, corpus=corpus.captures, mutate=spoil_capture, run=partial(_command, words), suffix=".pcap", needs_kernels=True, cpu_s=60.0
            )
            for name, words in _COMMANDS.items()
        ),
        Target(name="rig", corpus=corpus.rigs, mutate=spoil_text, run=_rig, suffix=".toml"),
        Target(name="built-rig", corpus=corpus.small_rigs, mutate=spoil_text, run=_built_rig, suffix=".toml", needs_kernels=True, cpu_s=120.0),
        Target(name="sensor", corpus=corpus.sensor_profiles, mutate=spoil_text, run=_sensor_profile, suffix=".toml"),
        Target(name="vehicle", corpus=corpus.vehicle_profiles, mutate=spoil_text, run=_vehicle_profile, suffix=".toml"),
        Target(name="obj", corpus=corpus.objects, mutate=spoil_text, run=partial(_mesh, "obj"), suffix=".obj", cpu_s=1.0),
        Target(name="ply", corpus=partial(corpus.meshes, "ply"), mutate=spoil_text, run=partial(_mesh, "ply"), suffix=".ply", cpu_s=1.0),
        Target(name="stl", corpus=partial(corpus.meshes, "stl"), mutate=spoil_text, run=partial(_mesh, "stl"), suffix=".stl", cpu_s=1.0),
        Target(name="dae", corpus=corpus.collada, mutate=spoil_text, run=partial(_mesh, "dae"), suffix=".dae", cpu_s=1.0),
        Target(name="sdf", corpus=corpus.worlds, mutate=spoil_text, run=_sdf, suffix=".sdf", cpu_s=2.0),
        Target(name="discovery", corpus=corpus.discovery, mutate=spoil_bytes, run=_discovery),
        Target(name="osi", corpus=corpus.osi, mutate=spoil_bytes, run=_osi),
        Target(name="osi-trace", corpus=corpus.osi_traces, mutate=spoil_bytes, run=partial(_osi_trace, "osi")),
        Target(name="osi-mcap", corpus=corpus.osi_mcaps, mutate=spoil_mcap, run=partial(_osi_trace, "mcap"), suffix=".mcap"),
        Target(name="mcap", corpus=corpus.packet_mcaps, mutate=spoil_mcap, run=partial(_packets, "mcap"), suffix=".mcap"),
        Target(name="bag-mcap", corpus=partial(corpus.ros2_bags, "mcap"), mutate=spoil_mcap, run=partial(_packets, "mcap"), suffix=".mcap"),
        Target(name="bag-sqlite", corpus=partial(corpus.ros2_bags, "sqlite3"), mutate=spoil_bytes, run=partial(_packets, "db3"), suffix=".db3"),
        Target(name="bag-metadata", corpus=corpus.bag_metadata, mutate=spoil_text, run=partial(_packets, "yaml"), suffix=".yaml"),
        Target(name="bag-ros1", corpus=corpus.ros1_bags, mutate=spoil_bytes, run=partial(_packets, "bag"), suffix=".bag"),
        Target(name="script", corpus=corpus.scripts, mutate=spoil_text, run=partial(_script, "toml"), suffix=".toml"),
        Target(name="script-lines", corpus=corpus.script_lines, mutate=spoil_text, run=partial(_script, "jsonl"), suffix=".jsonl"),
        Target(name="glb", corpus=partial(corpus.meshes, "glb"), mutate=spoil_glb, run=partial(_mesh, "glb"), suffix=".glb", cpu_s=1.0),
        Target(name="gltf", corpus=corpus.gltf, mutate=spoil_json, run=partial(_mesh, "gltf"), suffix=".gltf", cpu_s=1.0),
        Target(name="png", corpus=corpus.pictures, mutate=spoil_bytes, run=partial(_terrain, "png"), suffix=".png", cpu_s=1.0),
        Target(name="geotiff", corpus=corpus.geotiffs, mutate=spoil_bytes, run=partial(_terrain, "tif"), suffix=".tif", cpu_s=1.0),
        Target(name="ground", corpus=corpus.pictures, mutate=spoil_bytes, run=partial(_heightmap, "png"), suffix=".png", cpu_s=1.0),
        Target(name="dem", corpus=corpus.geotiffs, mutate=spoil_bytes, run=partial(_heightmap, "tif"), suffix=".tif", cpu_s=1.0),
        Target(name="trajectory", corpus=corpus.trajectories, mutate=spoil_text, run=_trajectory, suffix=".csv"),
        Target(name="npz", corpus=corpus.archives, mutate=spoil_npz, run=_map, suffix=".npz"),
        Target(name="mavlink", corpus=corpus.mavlink, mutate=spoil_bytes, run=_mavlink, needs_kernels=True, cpu_s=120.0),
        Target(name="poses", corpus=corpus.poses, mutate=spoil_bytes, run=_poses),
        Target(name="servos", corpus=corpus.servos, mutate=spoil_bytes, run=_servos),
        Target(name="sf45", corpus=corpus.sf45, mutate=spoil_bytes, run=_sf45),
        Target(name="nmea", corpus=corpus.sentences, mutate=spoil_text, run=_sentence),
        Target(name="stdv", corpus=corpus.stdv_payloads, mutate=spoil_bytes, run=_stdv),
        Target(name="ouster", corpus=corpus.ouster_metadata, mutate=spoil_json, run=_ouster),
        Target(name="hesai", corpus=corpus.hesai_requests, mutate=spoil_bytes, run=_hesai),
        Target(name="livox", corpus=corpus.livox_requests, mutate=spoil_bytes, run=_livox),
        Target(name="control", corpus=corpus.commands, mutate=spoil_text, run=_control),
        Target(name="request", corpus=corpus.json_requests, mutate=spoil_text, run=_request),
        Target(name="change", corpus=corpus.json_requests, mutate=spoil_text, run=_change, cpu_s=2.0),
        Target(name="fault", corpus=corpus.faults, mutate=spoil_text, run=_change, cpu_s=2.0),
        Target(name="fault-script", corpus=corpus.fault_scripts, mutate=spoil_text, run=partial(_script, "toml"), suffix=".toml"),
        Target(name="http", corpus=corpus.requests, mutate=spoil_bytes, run=_http),
    )
}
