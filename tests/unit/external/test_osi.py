"""OSI messages by an independent encoder (``osi_bytes``), and what is refused in others."""

import math
import socket
import struct
import threading
from contextlib import ExitStack
from functools import partial

import numpy as np
import pytest
from mcap.writer import CompressionType, Writer

from hilsim.errors import CaptureError, ConfigError, LinkError, PacketError
from hilsim.offline.snapshot import ObjectClass
from hilsim.parts.external.poses import _snapshots, _until, accepted
from hilsim.parts.external.sources.osi import body_rates, osi_snapshot
from hilsim.parts.external.sources.osi_sockets import datagrams, stream_messages
from hilsim.parts.external.sources.osi_traces import read_trace, trace_kind
from hilsim.protocols.osi import LIGHT_MPS, Reflection, decode_reflections, encode_reflections
from hilsim.protocols.protobuf import double, message, varint
from hilsim.world.geometry.rotations import from_roll_pitch_yaw, matrix_from_quaternion
from tests.unit.external.osi_bytes import GROUND_TRUTH, SENSOR_VIEW


def test_ground_truth_gives_time_host_and_boxes_with_their_classes():
    snapshot = osi_snapshot(GROUND_TRUTH, "GroundTruth", origin="center")
    assert snapshot.time_ns == 12_345_000_000
    assert snapshot.platform is not None
    assert snapshot.platform.position_m == (10.0, 20.0, 0.75)
    assert snapshot.platform.velocity_mps == (0.0, 8.0, 0.0)
    assert snapshot.platform.rates_radps == (0.0, 0.0, 0.25)
    by_id = {one.id: one for one in snapshot.objects}
    assert {number: (one.kind, one.size_m, one.is_still) for number, one in by_id.items()} == {
        2**40 + 3: (ObjectClass.PEDESTRIAN, (0.5, 0.6, 1.8), False),
        900: (ObjectClass.STRUCTURE, (12.0, 8.0, 6.0), True),
        901: (ObjectClass.VEGETATION, (3.0, 3.0, 7.0), True),
    }
    walker = by_id[2**40 + 3].motion
    assert walker.velocity_mps == (-1.5, 0.0, 0.0)
    assert walker.rates_radps is None
    np.testing.assert_allclose(walker.orientation, from_roll_pitch_yaw(*map(math.degrees, (0.1, -0.2, 0.3))), atol=1e-12)
    assert snapshot.omitted == ()


def test_rear_axle_is_the_platform_with_the_velocity_that_it_has_in_a_curve():
    platform = osi_snapshot(GROUND_TRUTH, "GroundTruth").platform
    assert platform is not None
    np.testing.assert_allclose(platform.position_m, (10.0, 18.75, 0.35), atol=1e-12)  # 1.25 m behind the centre, in the direction of yaw 90 degrees
    np.testing.assert_allclose(platform.velocity_mps, (0.25 * 1.25, 8.0, 0.0), atol=1e-12)


def test_mounting_position_of_a_sensor_view_is_the_platform():
    platform = osi_snapshot(SENSOR_VIEW, "SensorView").platform
    assert platform is not None
    np.testing.assert_allclose(platform.position_m, (10.0, 19.75, 1.95), atol=1e-12)
    np.testing.assert_allclose(platform.orientation, from_roll_pitch_yaw(0.0, 0.0, math.degrees(math.pi / 2 + 0.5)), atol=1e-12)
    assert osi_snapshot(SENSOR_VIEW, "SensorView", origin="rear_axle").platform == osi_snapshot(GROUND_TRUTH, "GroundTruth").platform


def test_rotation_rates_are_those_of_the_angles_by_finite_differences():
    angles, rates, step = np.array([0.4, -0.7, 2.1]), np.array([0.3, -0.5, 0.9]), 1e-6
    before, after = (matrix_from_quaternion(from_roll_pitch_yaw(*np.degrees(angles + side * step * rates))) for side in (-1, 1))
    turned = before.T @ after / (2 * step)
    found = (turned[2, 1] - turned[1, 2]) / 2, (turned[0, 2] - turned[2, 0]) / 2, (turned[1, 0] - turned[0, 1]) / 2
    np.testing.assert_allclose(body_rates(tuple(angles), tuple(rates)), found, atol=1e-8)


def test_reflections_of_an_independent_encoder_are_read_and_written_equal():
    time_ns, found = decode_reflections(SENSOR_VIEW)
    assert time_ns == 12_345_000_000
    assert found == (Reflection(-3.5, 2e-7, 900), Reflection(-9.0, 1e-7, None))
    assert decode_reflections(encode_reflections(time_ns, found)) == (time_ns, found)
    assert LIGHT_MPS == 299_792_458.0


def _moving(number: int, base: bytes) -> bytes:
    return message(5, message(1, varint(1, number)) + message(2, base))


def _vector(*values: float) -> bytes:
    return b"".join(double(number, value) for number, value in enumerate(values, start=1))


_STAMP = message(2, varint(1, 1))
_PLACED = message(2, _vector(1.0, 2.0, 3.0))


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"\xff", r"message 3: GroundTruth\.: a number must end"),
        (_moving(1, _PLACED), r"GroundTruth\.timestamp must be given"),
        (
            _STAMP + message(5, message(2, message(2, varint(1, 5)))),
            r"GroundTruth\.moving_object\[0\]\.base\.position\.x: wire type must be 1, got 0",
        ),
        (_STAMP + message(5, message(2, message(2, double(3, math.nan)))), r"moving_object\[0\]\.base\.position\.z: must be finite, got nan"),
        (_STAMP + message(4, b"") + message(4, message(2, b"\x09\x00")), r"stationary_object\[1\]\.base: a field must end within its message"),
        (message(2, varint(2, 1 << 32)), r"GroundTruth\.timestamp\.nanos: must be below 1,000,000,000, got 4294967296"),
        (message(2, varint(1, 2**62)), r"GroundTruth\.timestamp\.seconds: distance of a time stamp"),
        (_STAMP + message(3, varint(1, 7)), r"host_vehicle_id\.value must be the id of a moving object, got 7"),
        (_STAMP + message(3, varint(1, 7)) + _moving(7, message(1, _vector(1, 1, 1))), r"moving_object\[0\]\.base\.position: must be given"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_fields_path(content, rule):
    with pytest.raises(PacketError, match=rule):
        osi_snapshot(content, "GroundTruth", where="message 3")


def test_mounting_beyond_all_bounds_is_refused():
    truth = message(7, _STAMP + message(3, varint(1, 7)) + _moving(7, _PLACED))
    with pytest.raises(PacketError, match=r"moving_object\[0\] with bbcenter_to_rear and mounting_position: coordinate must be at most"):
        osi_snapshot(truth + message(4, message(1, double(1, 1e300))), "SensorView")


def test_objects_that_cannot_be_shown_are_listed_with_their_paths():
    size = message(1, _vector(1, 1, 1))
    content = _STAMP + b"".join(
        (
            _moving(1, _PLACED),
            _moving(2, _PLACED + message(1, _vector(1, 0, 1))),
            _moving(3, size),
            message(5, message(2, _PLACED + size)),
            _moving(5, _PLACED + size),
            _moving(5, message(2, _vector(9, 9, 9)) + size),
        )
    )
    snapshot = osi_snapshot(content, "GroundTruth", where="m")
    assert [(one.id, one.motion.position_m) for one in snapshot.objects] == [(5, (1.0, 2.0, 3.0))]
    assert [text.split(", got")[0] for text in snapshot.omitted] == [
        "m: GroundTruth.moving_object[0].base.dimension: must be given",
        "m: GroundTruth.moving_object[1].base.dimension: size_m must be at least 1e-06 m",
        "m: GroundTruth.moving_object[2].base.position: must be given",
        "m: GroundTruth.moving_object[3].id.value: must be given",
        "m: id.value of an object must be its own",
    ]


def test_signs_and_lights_are_boxes_and_a_second_of_nanoseconds_is_one():
    sized = message(1, _vector(0, 0.9, 0.8)) + _PLACED
    sign = message(6, message(1, varint(1, 90)) + message(2, message(1, sized)) + message(3, message(1, sized)))
    light = message(7, message(1, varint(1, 91)) + message(2, message(1, _vector(0.3, 0.3, 0.9)) + _PLACED))
    snapshot = osi_snapshot(message(2, varint(1, 4) + varint(2, 1_000_000_000)) + sign + light, "GroundTruth", where="m")
    assert snapshot.time_ns == 5_000_000_000
    assert [(one.id, one.kind, one.material, one.size_m, one.is_still) for one in snapshot.objects] == [
        (90, ObjectClass.SIGN, "retro_sign", (0.002, 0.9, 0.8), True),
        (91, ObjectClass.LIGHT, "paint_black", (0.3, 0.3, 0.9), True),
    ]
    assert [text.partition(": must")[0] for text in snapshot.omitted] == [
        "m: GroundTruth.traffic_sign[0].supplementary_sign[0].id.value",
        "m: GroundTruth.timestamp.nanos",
    ]


def test_objects_left_out_are_reported_once_of_many_messages(tmp_path, capsys):
    content = _STAMP + _moving(1, _PLACED) + _moving(2, _PLACED)
    path = tmp_path / "a_gt.osi"
    path.write_bytes(5 * (struct.pack("<I", len(content)) + content))
    with ExitStack() as held:
        assert len(list(_until(_snapshots(f"osi:{path}", None, "mounting", "", [], held), None))) == 5
    assert [line.partition(": must")[0] for line in capsys.readouterr().err.splitlines()] == [
        f"note: {path}: message 0: GroundTruth.moving_object[{row}].base.dimension" for row in (0, 1)
    ]


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (GROUND_TRUTH + b"$$__$$" + GROUND_TRUTH, r"behind their lengths, got ones with \$\$__\$\$ between"),
        (b"version {\n  version_major: 3\n}\n", "got text"),
    ],
)
def test_older_forms_of_traces_are_named(tmp_path, content, rule):
    path = tmp_path / "a_gt.osi"
    path.write_bytes(content)
    with pytest.raises(CaptureError, match=rule):
        list(read_trace(path))


def test_a_field_that_is_there_twice_counts_as_protobuf_has_it():
    base = message(2, double(1, 4.0) + double(2, 5.0)) + message(2, double(1, 6.0)) + message(1, _vector(1, 1, 1))
    (found,) = osi_snapshot(_STAMP + _moving(1, base), "GroundTruth").objects
    assert found.motion.position_m == (6.0, 5.0, 0.0)


def test_trace_of_messages_behind_their_lengths_is_read_in_order(tmp_path):
    path = tmp_path / "20240101T000000Z_gt_380_3210_2_test.osi"
    path.write_bytes(2 * (struct.pack("<I", len(GROUND_TRUTH)) + GROUND_TRUTH))
    found = list(read_trace(path))
    assert [(each.content, each.kind) for each in found] == 2 * [(GROUND_TRUTH, "GroundTruth")]
    assert found[1].where == f"{path}: message 1"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CaptureError, match=r"message 1: must have 493 bytes, got 492 before the end of the file"):
        list(read_trace(path))
    path.write_bytes(b"\xff\xff\xff\xff")
    with pytest.raises(CaptureError, match=r"message 0: an OSI message must be at most 67,108,864 bytes"):
        list(read_trace(path))
    path.write_bytes(b"\x01\x02")
    with pytest.raises(CaptureError, match="length must have 4 bytes, got 2"):
        list(read_trace(path))


def test_type_of_a_trace_is_in_its_name_or_given(tmp_path):
    assert trace_kind(tmp_path / "a_sv_380.osi") == "SensorView"
    assert trace_kind(tmp_path / "agtb.osi") is None
    with pytest.raises(ConfigError, match="type of the messages must be given"):
        list(read_trace(tmp_path / "a.osi"))
    with pytest.raises(CaptureError, match="cannot be read: No such file"):
        list(read_trace(tmp_path / "a.osi", "GroundTruth"))


def write_mcap(path, topics, **options):
    with path.open("wb") as file:
        writer = Writer(file, **options)
        writer.start()
        for topic, schema, contents in topics:
            number = writer.register_schema(schema, "protobuf", b"")
            channel = writer.register_channel(topic, "protobuf", number)
            for time_ns, content in enumerate(contents):
                writer.add_message(channel, time_ns, content, time_ns)
        writer.finish()


def test_channel_of_an_mcap_file_is_found_by_its_schema(tmp_path):
    path = tmp_path / "a.mcap"
    write_mcap(path, [("truth", "osi3.GroundTruth", [GROUND_TRUTH] * 3), ("view", "osi3.SensorView", [SENSOR_VIEW]), ("other", "x.Y", [b"1"])])
    assert [each.content for each in read_trace(path, "GroundTruth")] == [GROUND_TRUTH] * 3
    assert [each.kind for each in read_trace(path, channel="view")] == ["SensorView"]
    with pytest.raises(ConfigError, match=r"channel must name one of the file's, got None of: truth \(GroundTruth\), view \(SensorView\)"):
        list(read_trace(path))
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(CaptureError, match="cannot be read"):
        list(read_trace(path))


def test_an_mcap_file_whose_chunk_claims_much_memory_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "a.mcap"
    write_mcap(path, [("truth", "osi3.GroundTruth", [GROUND_TRUTH])], compression=CompressionType.LZ4)
    whole = bytearray(path.read_bytes())
    at = 8
    while whole[at] != 6:  # a chunk
        at += 9 + int.from_bytes(whole[at + 1 : at + 9], "little")
    whole[at + 25 : at + 33] = (1 << 40).to_bytes(8, "little")
    path.write_bytes(whole)
    with pytest.raises(CaptureError, match=rf"byte {at}: a chunk of an MCAP file must be at most 536,870,912 bytes, got 1,099,511,627,776"):
        list(read_trace(path))


def test_malformed_messages_of_a_live_source_are_left_out_counted_and_reported_once(capsys):
    contents = (b"\x0b", GROUND_TRUTH, b"\x0c", b"\x0d", GROUND_TRUTH)
    found = list(accepted(iter([partial(osi_snapshot, each, "GroundTruth") for each in contents])))
    assert [each.time_ns for each in found] == [12_345_000_000] * 2
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("note: refused: OSI message: ")
    assert last == "note: 3 messages refused"


def test_datagrams_are_messages():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
        listening.bind(("127.0.0.1", 0))
        listening.settimeout(0.2)
        for _ in range(2):
            sending.sendto(GROUND_TRUTH, listening.getsockname())
        assert [each.content for each in datagrams(listening, "GroundTruth")] == 2 * [GROUND_TRUTH]


def in_parts(content):
    """A message as esmini's documentation and its example of a receiver have it."""
    cut = [content[at : at + 8192] for at in range(0, len(content), 8192)]
    return [struct.pack("<iI", -number if number == len(cut) else number, len(part)) + part for number, part in enumerate(cut, start=1)]


LONG = [
    GROUND_TRUTH + message(5, message(2, _PLACED) + bytes([0x4A, 0xA0, 0x9C, 1]) + bytes([letter]) * 20_000) for letter in b"ab"
]  # three parts each


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ([(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)], [LONG[0], LONG[1]]),
        ([(0, 1), (0, 0), (0, 2), (1, 0), (1, 2), (1, 1)], [LONG[0], LONG[1]]),
        ([(0, 0), (0, 2), (1, 0), (1, 1), (1, 2)], ["parts 1 to 3 of a message must come, got 1, 3", LONG[1]]),
        ([(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)], ["parts 1 to the last of a message must come, got 1, 2", LONG[1]]),
        ([(0, 1), (0, 2), (1, 0), (1, 1), (1, 2)], ["parts 1 to 3 of a message must come, got 2, 3", LONG[1]]),
        ([(0, 0), (0, 1), (0, 2), (1, 0)], [LONG[0], "parts 1 to the last of a message must come, got 1"]),
    ],
)
def test_messages_in_esminis_parts_are_joined_and_lost_parts_reported(order, expected):
    parts = [in_parts(content) for content in LONG]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
        listening.bind(("127.0.0.1", 0))
        listening.settimeout(0.2)
        for sent in (*(parts[number][part] for number, part in order), GROUND_TRUTH):
            sending.sendto(sent, listening.getsockname())
        found = list(datagrams(listening, "GroundTruth"))
    assert [each.fault or each.content for each in found if each.content != GROUND_TRUTH] == expected
    assert len(in_parts(GROUND_TRUTH)) == 1
    assert [osi_snapshot(each.content, each.kind).time_ns for each in found if each.content] == [12_345_000_000] * (
        len(expected) + 1 - sum("parts" in str(each) for each in expected)
    )


def test_stream_gives_messages_until_its_end_and_refuses_half_of_one():
    with socket.create_server(("127.0.0.1", 0)) as server:
        for content, rule in (
            (b"", None),
            (struct.pack("<I", 9) + b"half", "must have 9 bytes, got 4"),
            (struct.pack("<I", 9), "must have 9 bytes, got 0"),
        ):
            sending = socket.create_connection(server.getsockname())
            connected, _ = server.accept()
            whole = struct.pack("<I", len(SENSOR_VIEW)) + SENSOR_VIEW

            def send(sending=sending, content=content, whole=whole):
                with sending:
                    sending.sendall(whole + whole + content)

            sender = threading.Thread(target=send)
            sender.start()
            with connected:
                messages = stream_messages(connected, "SensorView")
                assert [next(messages).content for _ in range(2)] == 2 * [SENSOR_VIEW]
                if rule is None:
                    assert list(messages) == []
                else:
                    with pytest.raises(LinkError, match=rule):
                        next(messages)
            sender.join()
