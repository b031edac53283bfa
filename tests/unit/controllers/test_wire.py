"""The tests' own framing against pymavlink's."""

import pytest
from pymavlink.dialects.v20 import common

from hilsim_flight_controller.wire import Splitter, Writer
from tests.controllers.station import odd_frames

pytestmark = pytest.mark.extended


def test_a_signed_frame_of_the_writer_is_accepted_by_pymavlink_with_the_key():
    receiver = common.MAVLink(None)
    receiver.signing.secret_key = bytes(32)
    raw = Writer(255, 190).signed(common.MAVLink_heartbeat_message(6, 8, 0, 0, 4, 3), stamp=10**14)
    message = receiver.decode(bytearray(raw))
    assert message.get_type() == "HEARTBEAT"
    assert message._signed


def test_unknown_and_signed_frames_are_reported_by_their_bytes():
    known, unknown, signed = list(odd_frames(Writer(255, 190)))[:3]
    parts = Splitter().feed(known + unknown + signed)
    assert [(frame.identity, frame.signed, frame.system) for frame in parts] == [(76, False, 255), (70_000, False, 255), (0, True, 255)]
    assert parts[1].message() is None
