"""The tests' own framing against pymavlink's."""

from pymavlink.dialects.v20 import common

from hilsim.testing.flight_controller.wire import Splitter, Writer
from tests.controllers.station import odd_frames


def test_frames_come_out_of_a_stream_whole_whatever_its_pieces():
    frames = list(odd_frames(Writer(255, 190)))
    stream = b"".join(frames)
    for size in (1, 7, 64, len(stream)):
        splitter = Splitter()
        found = [frame.raw for begin in range(0, len(stream), size) for frame in splitter.feed(stream[begin : begin + size])]
        assert found == frames
        assert (bytes(splitter.garbage), splitter.corrupt, bytes(splitter.waiting)) == (b"", [], b"")


def test_a_signed_frame_of_the_writer_is_accepted_by_pymavlink_with_the_key():
    receiver = common.MAVLink(None)
    receiver.signing.secret_key = bytes(32)
    raw = Writer(255, 190).signed(common.MAVLink_heartbeat_message(6, 8, 0, 0, 4, 3), stamp=10**14)
    message = receiver.decode(bytearray(raw))
    assert message.get_type() == "HEARTBEAT"
    assert message._signed


def test_noise_and_a_wrong_checksum_are_kept_apart_from_frames():
    good = next(odd_frames(Writer(255, 190)))
    bad = good[:-1] + bytes([good[-1] ^ 1])
    splitter = Splitter()
    assert [frame.raw for frame in splitter.feed(b"\x00\x11" + good + bad + good)] == [good, good]
    assert splitter.corrupt[0] == bad
    assert bytes(splitter.garbage[:2]) == b"\x00\x11"


def test_unknown_and_signed_frames_are_reported_by_their_bytes():
    known, unknown, signed = list(odd_frames(Writer(255, 190)))[:3]
    parts = Splitter().feed(known + unknown + signed)
    assert [(frame.identity, frame.signed, frame.system) for frame in parts] == [(76, False, 255), (70_000, False, 255), (0, True, 255)]
    assert parts[1].message() is None
