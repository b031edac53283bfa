"""When a board starts to speak: what is in the 80 bytes that it reads."""

import pytest
from pymavlink.dialects.v20 import common

from tests.controllers.boot import UsbScan, has_heartbeat
from tests.controllers.bridge import Bridge
from tests.controllers.controller import Px4, Px4Spec
from tests.controllers.puppet import Puppet
from tests.controllers.wire import Writer


def _heartbeat(version=3):
    return Writer(1, 200).pack(common.MAVLink_heartbeat_message(0, 8, 0, 0, 4, version))


def test_a_heartbeat_of_nine_bytes_is_found_anywhere_in_a_window():
    assert has_heartbeat(b"\x00\xfd" + _heartbeat())
    assert not has_heartbeat(_heartbeat(version=0))
    assert not has_heartbeat(_heartbeat()[:9])


def test_a_mavlink_1_heartbeat_is_found_too():
    mav = common.MAVLink(None, srcSystem=1, srcComponent=200)
    raw = common.MAVLink_heartbeat_message(0, 8, 0, 0, 4, 3).pack(mav, force_mavlink1=True)
    assert raw[0] == 0xFE
    assert has_heartbeat(raw)


def test_the_port_is_looked_at_every_tenth_of_a_second_and_a_second_after_a_window_without_heartbeat():
    scan = UsbScan()
    scan.feed(b"\xfd" + bytes(79) + _heartbeat())
    assert [now_us for now_us in range(0, 3_000_000, 50_000) if scan.advance(now_us)] == [1_000_000]


def test_a_heartbeat_behind_eighty_bytes_of_sensors_is_not_seen_for_a_second():
    bridge = Bridge(Puppet(), serial=False)
    bridge.heard_us = 0
    sensors = b"".join(bridge.advance(now_us)[21 * (now_us == 0) :] for now_us in range(0, 12_000, 4000))
    controller = Px4(Px4Spec())
    controller.receive(0, sensors + _heartbeat())
    assert controller.advance(0) == b""
    assert not any(controller.advance(now_us) for now_us in range(0, 1_000_000, 1000))


@pytest.mark.parametrize("hil", [True, False])
def test_the_first_frame_is_a_heartbeat_whose_base_mode_tells_of_hil(hil):
    controller = Px4(Px4Spec(hil=hil))
    controller.receive(0, _heartbeat())
    first = common.MAVLink(None).parse_buffer(controller.advance(0))[0]
    assert first.get_type() == "HEARTBEAT"
    assert first.base_mode == (113 if hil else 81)


def test_nothing_is_said_before_power_has_been_on_for_long_enough():
    controller = Px4(Px4Spec(boot_us=300_000))
    controller.receive(0, _heartbeat())
    assert next(now_us for now_us in range(0, 500_000, 50_000) if controller.advance(now_us)) == 300_000
