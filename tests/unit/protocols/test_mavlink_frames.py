"""Frames in a stream: whole, cut at every byte, damaged, among noise, of messages unknown or signed."""

import numpy as np
import pytest
from fastcrc import crc16
from hypothesis import given
from hypothesis import strategies as st
from numba import config
from pymavlink.dialects.v20 import common

from hilsim.protocols.mavlink.frames import (
    LARGEST_FRAME,
    FrameState,
    StreamCount,
    abandon,
    allocate_stream,
    append,
    clear,
    crc_of,
    crc_with,
    extra_of,
    make_room,
    next_frame,
    pending,
    solved_extra,
    split,
)
from tests.compiled import compiled_only
from tests.mavlink import heartbeat_bytes, hil_sensor_bytes, mixture, packer, signing_packer, unknown_bytes


def feed(stream, data):
    assert append(stream, np.frombuffer(data, np.uint8)) == len(data)


def frames_in(stream):
    """State, id and bytes of each frame that is whole."""
    found = []
    while (frame := next_frame(stream)).state != FrameState.NONE:
        found.append((FrameState(frame.state), frame.id, stream.buffer[frame.start : frame.start + frame.size].tobytes()))
    return found


def frames_of(data):
    stream = allocate_stream()
    feed(stream, data)
    return frames_in(stream), stream


def counts(stream):
    return {name.name: int(stream.counts[name]) for name in StreamCount if stream.counts[name]}


@given(st.binary(max_size=300))
def test_the_crc_is_mcrf4xx(data):
    assert crc_of(np.frombuffer(data, np.uint8), 0, len(data)) == crc16.mcrf4xx(data)


def test_the_extra_byte_is_solved_for_wherever_there_is_one_and_nowhere_else():
    for before in (0, 1, 0x1234, 0xFFFF):
        reached = {crc_with(before, extra): extra for extra in range(256)}
        assert [solved_extra(before, read) for read in range(65536)] == [reached.get(read, -1) for read in range(65536)]


@pytest.mark.parametrize(("message_id", "extra"), [(0, 50), (107, 108), (113, 124), (163, -1), (16383, -1), (16384, -1), (0xFFFFFF, -1)])
def test_an_id_has_its_extra_byte_or_none(message_id, extra):
    assert extra_of(message_id) == extra


def test_a_mixture_comes_out_whole_in_order_and_unchanged():
    whole = mixture()
    found, stream = frames_of(b"".join(whole))
    assert [data for _, _, data in found] == whole
    assert [number for _, number, _ in found] == [0, 107, 163, 107, 110, 0]
    assert [state for state, _, _ in found] == [FrameState.UNCHECKED if number == 163 else FrameState.CHECKED for _, number, _ in found]
    assert counts(stream) == {"CHECKED": 5, "UNCHECKED": 1}


def test_a_frame_names_its_sender_and_its_number():
    mav = packer(system=7, component=9)
    mav.seq = 200
    for data in (heartbeat_bytes(mav), common.MAVLink_heartbeat_message(2, 12, 113, 0, 4, 3).pack(mav, force_mavlink1=True)):
        stream = allocate_stream()
        feed(stream, data)
        frame = next_frame(stream)
        assert (frame.system, frame.component, frame.start, frame.size) == (7, 9, 0, len(data))
        assert frame.sequence == data[2 if data[0] == 0xFE else 4]


@compiled_only
def test_cut_in_two_at_any_byte_the_frames_are_the_same():
    whole = mixture()
    data = b"".join(whole)
    for cut in range(len(data) + 1):
        stream = allocate_stream()
        feed(stream, data[:cut])
        found = frames_in(stream)
        feed(stream, data[cut:])
        assert [each for _, _, each in found + frames_in(stream)] == whole


def test_byte_by_byte_each_frame_comes_with_its_last_byte():
    whole, stream, came = mixture(), allocate_stream(), []
    for at, byte in enumerate(b"".join(whole)):
        feed(stream, bytes([byte]))
        came += [(at + 1, data) for _, _, data in frames_in(stream)]
    assert came == list(zip(np.cumsum([len(each) for each in whole]).tolist(), whole, strict=True))


def test_with_any_byte_missing_only_its_frame_is_lost():
    whole = [heartbeat_bytes(), hil_sensor_bytes(), heartbeat_bytes()]
    for at in range(len(whole[1])):
        found, stream = frames_of(whole[0] + whole[1][:at] + whole[1][at + 1 :] + whole[2])
        assert [data for _, _, data in found] == [whole[0], whole[2]]
        assert counts(stream)["SKIPPED_BYTES"] == len(whole[1]) - 1


def test_with_any_bit_wrong_the_frames_around_it_are_found():
    whole = [heartbeat_bytes(), hil_sensor_bytes(), hil_sensor_bytes(time_usec=9), heartbeat_bytes()] + [hil_sensor_bytes()] * 4
    for bit in range(8 * len(whole[1])):
        damaged = bytearray(whole[1])
        damaged[bit // 8] ^= 1 << bit % 8
        found, _ = frames_of(whole[0] + bytes(damaged) + b"".join(whole[2:]))
        assert [data for state, _, data in found if state == FrameState.CHECKED] == [whole[0], *whole[2:]]


def test_any_half_frame_before_a_frame_costs_only_itself():
    sound = [heartbeat_bytes()] * 20  # enough for the longest frame that a half can claim
    for half in mixture():
        for kept in range(1, len(half)):
            found, _ = frames_of(half[:kept] + b"".join(sound))
            assert [data for _, _, data in found] == sound


@given(noise=st.binary(max_size=200), follows=st.booleans())
def test_noise_never_costs_a_checked_frame_that_has_company(noise, follows):
    sound = [heartbeat_bytes()] * 20
    found, stream = frames_of(noise + b"".join(sound) + (noise if follows else b""))
    checked = [data for state, _, data in found if state == FrameState.CHECKED]
    eaten = sum(len(data) for state, _, data in found if state == FrameState.UNCHECKED)
    assert len(checked) >= 20 - (eaten + 20) // 21 - (1 if eaten else 0)
    used = sum(len(data) for _, _, data in found) + int(stream.counts[StreamCount.SKIPPED_BYTES]) + pending(stream)
    assert used == len(noise) * (2 if follows else 1) + 21 * 20


def test_an_unknown_message_is_passed_on_when_a_frame_follows_or_nothing_yet():
    unknown = unknown_bytes()
    for behind in (b"", b"\xfd", b"\xfe", heartbeat_bytes()):
        found, _ = frames_of(unknown + behind)
        assert found[0] == (FrameState.UNCHECKED, 163, unknown)
    found, stream = frames_of(unknown + b"\x00")
    assert found == []
    assert stream.counts[StreamCount.BAD] >= 1


def test_an_unknown_message_is_not_passed_on_when_no_extra_byte_explains_its_crc():
    unknown = unknown_bytes()
    explained = {crc16.mcrf4xx(unknown[1:-2] + bytes([extra])) for extra in range(256)}
    assert len(explained) == 256
    for crc in {*explained, *range(0, 65536, 61 if config.DISABLE_JIT else 1)}:
        stream = allocate_stream(2 * LARGEST_FRAME)
        feed(stream, unknown[:-2] + crc.to_bytes(2, "little"))
        assert (next_frame(stream).state == FrameState.UNCHECKED) == (crc in explained)


def test_a_known_id_with_another_layout_is_passed_on_unchecked():
    frame = bytearray(heartbeat_bytes())
    frame[-2:] = crc16.mcrf4xx(bytes(frame[1:-2]) + bytes([51])).to_bytes(2, "little")  # the heartbeat's own extra byte is 50
    found, _ = frames_of(bytes(frame))
    assert found == [(FrameState.UNCHECKED, 0, bytes(frame))]


def test_a_signed_frame_is_passed_on_with_its_signature():
    signed = hil_sensor_bytes(signing_packer())
    assert (len(signed), signed[2]) == (74 + 13, 1)
    found, _ = frames_of(signed + heartbeat_bytes())
    assert found[0] == (FrameState.CHECKED, 107, signed)


def test_a_frame_with_an_unknown_flag_is_skipped():
    odd = bytearray(heartbeat_bytes())
    odd[2] = 0x02
    found, stream = frames_of(bytes(odd) + heartbeat_bytes())
    assert [data for _, _, data in found] == [heartbeat_bytes()]
    assert counts(stream) == {"CHECKED": 1, "SKIPPED_BYTES": 21}


def test_half_a_frame_is_given_up_after_silence_and_what_came_behind_is_found():
    stream = allocate_stream()
    feed(stream, hil_sensor_bytes()[:30] + heartbeat_bytes())
    assert frames_in(stream) == []
    assert pending(stream) == 51
    assert abandon(stream)
    assert [number for _, number, _ in frames_in(stream)] == [0]
    assert counts(stream) == {"CHECKED": 1, "SKIPPED_BYTES": 30, "ABANDONED": 1}
    assert not abandon(stream)


def test_nothing_pending_survives_a_reopened_port():
    stream = allocate_stream()
    feed(stream, hil_sensor_bytes()[:30])
    clear(stream)
    feed(stream, heartbeat_bytes())
    assert [number for _, number, _ in frames_in(stream)] == [0]
    assert counts(stream) == {"CHECKED": 1, "SKIPPED_BYTES": 30}


def test_the_smallest_stream_carries_frames_of_the_largest_size_for_ever():
    stream = allocate_stream(2 * LARGEST_FRAME)
    longest = common.MAVLink_file_transfer_protocol_message(0, 1, 1, [7] * 251).pack(signing_packer())
    waiting = bytes(longest) * 20
    passed = 0
    while waiting:
        came = append(stream, np.frombuffer(waiting[:200], np.uint8))
        waiting = waiting[came:]
        passed += len(frames_in(stream))
    assert (len(longest), passed, make_room(stream)) == (279, 20, 2 * LARGEST_FRAME)


def test_no_more_bytes_are_taken_than_there_is_room_for():
    stream = allocate_stream(2 * LARGEST_FRAME)
    assert append(stream, np.zeros(1000, np.uint8)) == 560
    assert append(stream, np.zeros(1000, np.uint8)) == 0
    assert next_frame(stream).state == FrameState.NONE
    assert append(stream, np.zeros(1000, np.uint8)) == 560


def test_many_frames_are_split_in_one_call_as_far_as_there_is_room_for_them():
    stream, found = allocate_stream(), np.zeros((4, 3), np.int64)
    feed(stream, b"".join(mixture()))
    assert split(stream, found) == 4
    assert found[:, 2].tolist() == [0, 107, 163, 107]
    assert split(stream, found) == 2
    assert found[:2, 2].tolist() == [110, 0]
    assert found[1, :2].tolist() == [stream.place[1] - 21, 21]


def test_a_stream_too_small_for_two_frames_is_refused():
    with pytest.raises(ValueError, match="capacity must be 560 to 1048576 bytes, got 559"):
        allocate_stream(559)
