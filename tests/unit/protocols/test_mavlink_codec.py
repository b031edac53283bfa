"""Messages as frames, against pymavlink: every layout, any values, every truncation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymavlink.dialects.v20 import common

from hilsim.compilation.jit import kernel
from hilsim.protocols.mavlink.codec import read_payload, write_frame
from hilsim.protocols.mavlink.crc_extras import CRC_EXTRA, EXTRA_BY_ID, UNKNOWN
from hilsim.protocols.mavlink.frames import FrameState, allocate_stream, append, next_frame
from hilsim.protocols.mavlink.messages import HEARTBEAT, HIL_SENSOR, LAYOUTS, PARAM_REQUEST_LIST, build_draft, build_origin
from tests.mavlink import packer, records, theirs

ANY = st.sampled_from(list(LAYOUTS)).flatmap(lambda message: st.tuples(st.just(message), records(message)))


def written(message, record, sender):
    frame = np.full(300, 0xAA, np.uint8)
    size = write_frame(message, record.view(np.uint8), sender, frame)
    assert (frame[size:] == 0xAA).all()
    return frame[:size].tobytes()


def read(message, data):
    stream, back = allocate_stream(), build_draft(message)
    back.payload[:] = 0xAA
    append(stream, np.frombuffer(data, np.uint8))
    frame = next_frame(stream)
    assert (frame.state, frame.id) == (FrameState.CHECKED, message.id)
    read_payload(stream.buffer, frame, back.payload)
    return back.record


def test_the_extra_bytes_are_those_of_the_whole_set_common():
    assert {number: kind.crc_extra for number, kind in common.mavlink_map.items()} == CRC_EXTRA
    assert np.flatnonzero(EXTRA_BY_ID != UNKNOWN).tolist() == sorted(common.mavlink_map)


def struct_format(layout, texts):
    """The layout as Python's ``struct`` writes it."""
    codes = {"|u1": "B", "|i1": "b", "<u2": "H", "<i2": "h", "<u4": "I", "<i4": "i", "<u8": "Q", "<i8": "q", "<f4": "f"}
    parts = [(layout[name].shape[0] if layout[name].shape else "", codes[layout[name].base.str]) for name in layout.names]
    return "<" + "".join(f"{count}{'s' if name in texts else code}" for name, (count, code) in zip(layout.names, parts, strict=True))


@pytest.mark.parametrize("message", LAYOUTS, ids=lambda message: common.mavlink_map[message.id].msgname)
def test_a_layout_is_the_one_on_the_wire(message):
    kind, layout = common.mavlink_map[message.id], LAYOUTS[message]
    assert layout.names == tuple(kind.ordered_fieldnames)
    texts = [name for name, wire in zip(kind.fieldnames, kind.fieldtypes, strict=True) if wire == "char"]
    assert struct_format(layout, texts) == kind.unpacker.format
    assert (message.size, message.crc_extra) == (kind.unpacker.size, kind.crc_extra)


@given(case=ANY, system=st.integers(1, 255), component=st.integers(0, 255), sequence=st.integers(0, 1000))
def test_frames_are_byte_identical_to_pymavlinks(case, system, component, sequence):
    message, record = case
    sender, mav = build_origin(system, component), packer(system, component)
    sender.sequence[0], mav.seq = sequence, sequence & 0xFF
    assert written(message, record, sender) == bytes(theirs(message, record[0]).pack(mav))
    assert sender.sequence[0] == sequence + 1


@pytest.mark.parametrize("message", LAYOUTS, ids=lambda message: common.mavlink_map[message.id].msgname)
def test_every_truncation_is_byte_identical_and_comes_back_whole(message):
    for kept in range(message.size + 1):
        payload = np.arange(1, message.size + 1).astype(np.uint8)  # no zero among them: the longest is 167
        payload[kept:] = 0
        record = payload.view(LAYOUTS[message])
        data = written(message, record, build_origin(1, 200))
        assert len(data) == 12 + max(kept, 1)
        assert data == bytes(theirs(message, record[0]).pack(packer()))
        assert read(message, data).tobytes() == payload.tobytes()


@given(case=ANY)
def test_messages_packed_by_pymavlink_are_read_in_both_versions(case):
    message, record = case
    message_of_theirs = theirs(message, record[0])
    assert read(message, bytes(message_of_theirs.pack(packer()))).tobytes() == record.tobytes()
    if message.id > 255:
        return  # MAVLink 1 has a byte for the id
    old = bytes(message_of_theirs.pack(packer(), force_mavlink1=True))
    assert read(message, old).tobytes() == record.tobytes()[: old[1]].ljust(message.size, b"\0")  # MAVLink 1 knows no extensions


def test_a_heartbeat_keeps_the_nine_bytes_by_which_px4_knows_it_on_usb():
    beat = build_draft(HEARTBEAT)
    beat.record["mavlink_version"] = 3
    data = written(HEARTBEAT, beat.record, build_origin(1, 200))
    assert (len(data), data[0], data[1], data[7:10]) == (21, 0xFD, 9, b"\0\0\0")


def test_a_full_hil_sensor_without_id_is_74_bytes():
    sample = build_draft(HIL_SENSOR)
    sample.record["xacc"] = 1.0
    sample.record["fields_updated"] = 0x1FFF
    assert len(written(HIL_SENSOR, sample.record, build_origin(1, 200))) == 74


def test_the_sequence_wraps_at_256():
    sender = build_origin(1, 200)
    sender.sequence[0] = 255
    request = build_draft(PARAM_REQUEST_LIST).record
    assert [written(PARAM_REQUEST_LIST, request, sender)[4] for _ in range(3)] == [255, 0, 1]


@kernel
def _fill_and_write(sample, sender, frame):
    for number in range(3):
        sample.record["xacc"][0] = number + 0.5
        sample.record["time_usec"][0] = number
        size = write_frame(HIL_SENSOR, sample.payload, sender, frame[number])
    return size


def test_a_kernel_that_fills_a_record_writes_what_it_filled_in():
    sample, frames = build_draft(HIL_SENSOR), np.zeros((3, 80), np.uint8)
    size = _fill_and_write(sample, build_origin(1, 200), frames)
    for number in range(3):
        assert read(HIL_SENSOR, frames[number, :size].tobytes())[["xacc", "time_usec"]].tolist() == [(number + 0.5, number)]


def test_bytes_beyond_the_layout_are_left_out():
    longer = np.zeros(300, np.uint8)
    size = write_frame(HEARTBEAT._replace(size=12), np.arange(1, 13, dtype=np.uint8), build_origin(1, 200), longer)
    assert read(HEARTBEAT, longer[:size].tobytes()).tobytes() == bytes(range(1, 10))
