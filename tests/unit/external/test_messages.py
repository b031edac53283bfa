"""Messages of poses: their bytes, their faults, and the header for C."""

import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from hilsim.errors import PacketError
from hilsim.parts.external.messages import (
    DATAGRAM_SIZE,
    FAULT_RULES,
    HAS_RATES,
    HAS_VELOCITY,
    HEADER_DTYPE,
    HEADER_SIZE,
    MAX_RECORDS,
    OBJECT_DTYPE,
    POSE_DTYPE,
    RECORD_SIZE,
    Fault,
    MessageKind,
    Shape,
    decode,
    encode,
    header_fault,
    message_views,
    poses_of,
    read_pose,
)

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "reference" / "external-poses.md"


def pose(**fields):
    """One record of poses."""
    found = poses_of([0], [(1.0, 2.0, 3.0)], [(1.0, 0.0, 0.0, 0.0)])
    for name, value in fields.items():
        found[name] = value
    return found


def thing(**fields):
    """One record of objects: a box."""
    found = np.zeros(1, OBJECT_DTYPE)
    found["id"], found["shape"], found["size_m"], found["name"] = 7, Shape.BOX, (4.0, 2.0, 1.5), b"car"
    for name, value in fields.items():
        found[name] = value
    return found


def test_the_bytes_of_a_message_are_those_of_the_page():
    payload = encode(
        MessageKind.POSES,
        pose(id=9, flags=3, velocity_mps=(4.0, 5.0, 6.0), rates_radps=(0.25, 0.5, 0.75)),
        time_ns=123_456_789_012,
        sender=0xABCD,
        sequence=17,
    )
    assert payload[:HEADER_SIZE] == struct.pack("<4sBBHIIIIq", b"HSXP", 1, 1, 1, 0xABCD, 17, 0, 0, 123_456_789_012)
    record = struct.pack("<II3d4d3f3f8x", 9, 3, 1.0, 2.0, 3.0, 1.0, 0.0, 0.0, 0.0, 4.0, 5.0, 6.0, 0.25, 0.5, 0.75)
    assert payload[HEADER_SIZE:] == record


def test_the_bytes_of_an_object_are_those_of_the_page():
    payload = encode(MessageKind.OBJECTS, thing(label=3, reflectivity=60), time_ns=0)
    assert payload[HEADER_SIZE:] == struct.pack("<IBBBx3f32s32s12x", 7, 1, 3, 60, 4.0, 2.0, 1.5, b"car", b"")


@pytest.mark.parametrize("kind", [MessageKind.STEP, MessageKind.DONE, MessageKind.BYE])
def test_a_message_without_records_is_read_as_it_was_written(kind):
    found = decode(encode(kind, time_ns=5_000_000, sender=2, sequence=3))
    assert (found.kind, found.time_ns, found.sender, found.sequence) == (kind, 5_000_000, 2, 3)
    assert (len(found.poses), len(found.objects)) == (0, 0)


def test_messages_with_records_are_read_as_they_were_written():
    poses = np.concatenate([pose(id=number, position_m=(number, 0.0, 0.0)) for number in range(5)])
    assert np.array_equal(decode(encode(MessageKind.POSES, poses, time_ns=1)).poses, poses)
    things = np.concatenate([thing(), thing(id=8, shape=Shape.MODEL, size_m=0.0, model=b"truck")])
    assert np.array_equal(decode(encode(MessageKind.OBJECTS, things, time_ns=1)).objects, things)
    assert decode(encode(MessageKind.REMOVE, things, time_ns=1)).kind is MessageKind.REMOVE


def test_the_largest_message_fits_a_datagram():
    payload = encode(
        MessageKind.POSES, poses_of(range(MAX_RECORDS), np.zeros((MAX_RECORDS, 3)), np.tile((1.0, 0.0, 0.0, 0.0), (MAX_RECORDS, 1))), time_ns=0
    )
    assert len(payload) == DATAGRAM_SIZE <= 65_507 < DATAGRAM_SIZE + RECORD_SIZE


GOOD = struct.pack("<4sBBHIIIIq", b"HSXP", 1, 6, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (GOOD[:31], "size must be at least 32 bytes, got 31 bytes"),
        (b"HSXQ" + GOOD[4:], 'magic must be "HSXP", got 0x51585348 at byte 0'),
        (GOOD[:4] + b"\x02" + GOOD[5:], "version must be 1, got 2 at byte 4"),
        (GOOD[:5] + b"\x07" + GOOD[6:], "kind must be 1 to 6, got 7 at byte 5"),
        (GOOD[:5] + b"\x01" + GOOD[6:], "and 0 for step, done and bye, got 0 of kind 1 at byte 6"),
        (GOOD[:6] + b"\x01\x00" + GOOD[8:] + bytes(96), "and 0 for step, done and bye, got 1 of kind 6 at byte 6"),
        (GOOD + b"\x00", "size must be 32 bytes and 96 for each record, got 33 bytes"),
        (GOOD[:24] + struct.pack("<q", -1), "time_ns must be 0 to 4611686018427387904, got -1 at byte 24"),
    ],
)
def test_a_fault_of_the_header_is_named_with_its_byte(payload, message):
    with pytest.raises(PacketError, match=f"^message of poses: .*{message.replace('(', '.').replace(')', '.')}$"):
        decode(payload)


def test_all_faults_of_poses_are_named_with_their_records():
    poses = np.concatenate([pose(position_m=np.nan), pose(id=1, position_m=2e8), pose(id=2, orientation=(2.0, 0.0, 0.0, 0.0)), pose(id=2)])
    with pytest.raises(PacketError) as caught:
        encode(MessageKind.POSES, poses, time_ns=0)
    text = str(caught.value)
    assert "must be finite, got [nan, nan, nan] in record 0" in text
    assert "at most 100,000,000 m from the origin on each axis, got [200000000.0, 200000000.0, 200000000.0] in record 1" in text
    assert "must be a unit quaternion (w, x, y, z) within 0.001, got length 2 in record 2" in text
    assert "id must be of one record, got 2 in 2" in text


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id": 0}, "id must be at least 1, got 0 in record 0"),
        ({"shape": 9}, "shape must be 1 to 4, got 9 in record 0"),
        ({"size_m": (1.0, 0.0, 1.0)}, r"size_m must be above 0, got \[1.0, 0.0, 1.0\] in record 0"),
        ({"size_m": np.inf}, r"size_m must be above 0, got \[inf, inf, inf\] in record 0"),
        ({"shape": Shape.MODEL}, "model must be given for shape 4 and only for it, got b'' in record 0"),
        ({"model": b"truck"}, "model must be given for shape 4 and only for it, got b'truck' in record 0"),
        ({"shape": Shape.SPHERE}, r"size_m of a sphere must be its diameter three times, got \[4.0, 2.0, 1.5\] in record 0"),
        ({"shape": Shape.CYLINDER}, r"size_m of a cylinder must begin with its diameter twice, got \[4.0, 2.0, 1.5\] in record 0"),
        ({"name": b"\xff"}, r"name must be UTF-8, got b'\\xff' in record 0"),
    ],
)
def test_a_fault_of_an_object_is_named_with_its_record(fields, message):
    with pytest.raises(PacketError, match=message):
        encode(MessageKind.OBJECTS, thing(**fields), time_ns=0)


def test_an_object_that_is_removed_needs_its_id_only():
    assert decode(encode(MessageKind.REMOVE, thing(shape=0, size_m=0.0, name=b""), time_ns=0)).objects["id"].tolist() == [7]


@pytest.mark.parametrize(("flags", "velocity", "rates"), [(0, 0.0, 0.0), (HAS_VELOCITY, 4.0, 0.0), (HAS_RATES, 0.0, 0.5)])
def test_the_kernel_reads_what_a_record_gives_and_scales_the_quaternion(flags, velocity, rates):
    buffer = np.zeros(DATAGRAM_SIZE, np.uint8)
    payload = encode(MessageKind.POSES, pose(flags=flags, orientation=(0.0, 0.0, 0.0, 1.0005), velocity_mps=4.0, rates_radps=0.5), time_ns=77)
    buffer[: len(payload)] = np.frombuffer(payload, np.uint8)
    header, poses = message_views(buffer)
    state = np.zeros(13)
    assert header_fault(header, len(payload)) == 0
    assert read_pose(poses, 0, state) == 0
    assert state.tolist() == [1.0, 2.0, 3.0, *[velocity] * 3, 0.0, 0.0, 0.0, 1.0, *[rates] * 3]


def test_what_is_not_given_may_be_anything():
    state = np.zeros(13)
    assert read_pose(pose(velocity_mps=np.nan, rates_radps=np.inf), 0, state) == 0
    assert read_pose(pose(velocity_mps=np.nan, flags=HAS_VELOCITY), 0, state) == Fault.NOT_FINITE
    assert read_pose(pose(rates_radps=np.inf, flags=HAS_RATES), 0, state) == Fault.NOT_FINITE


def test_every_fault_has_a_rule():
    assert set(FAULT_RULES) == set(Fault) - {Fault.NONE}


def test_the_page_gives_every_field_at_its_offset():
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    listed = [(row[0], row[1], row[2].split(":")[0]) for row in rows if row[0].isdigit()]
    fields = [(dtype.fields[name][1], dtype.fields[name][0].itemsize) for dtype in (HEADER_DTYPE, POSE_DTYPE, OBJECT_DTYPE) for name in dtype.names]
    assert [(int(offset), int(size)) for offset, size, _ in listed] == fields


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize(("language", "standard"), [("c", "c11"), ("c++", "c++11")])
def test_the_header_for_c_compiles_and_writes_the_same_bytes(tmp_path, language, standard):
    source = tmp_path / "message.txt"
    source.write_text(
        '#include <stdio.h>\n#include "hilsim_poses.h"\n'
        "int main(void) {\n"
        "  struct hilsim_header h = {HILSIM_MAGIC, HILSIM_VERSION, HILSIM_POSES, 1, 7, 8, 0, 0, 9};\n"
        "  struct hilsim_pose p = {3, HILSIM_HAS_VELOCITY, {1, 2, 3}, {1, 0, 0, 0}, {4, 5, 6}, {0, 0, 0}, {0}};\n"
        "  fwrite(&h, sizeof h, 1, stdout); fwrite(&p, sizeof p, 1, stdout); return 0; }\n"
    )
    program = tmp_path / "message"
    options = ["-Wall", "-Wextra", "-Werror", f"-std={standard}", "-I", ROOT / "examples", "-x", language]
    subprocess.run(["gcc", *options, source, "-o", program], check=True)
    written = subprocess.run([program], check=True, capture_output=True).stdout
    expected = pose(id=3, flags=HAS_VELOCITY, velocity_mps=(4.0, 5.0, 6.0))
    assert written == encode(MessageKind.POSES, expected, time_ns=9, sender=7, sequence=8)
