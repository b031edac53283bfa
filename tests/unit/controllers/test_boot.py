"""When a board starts to speak: what is in the 80 bytes that it reads."""

import pytest
from pymavlink.dialects.v20 import common

from hilsim_flight_controller.controller import Px4, Px4Spec
from hilsim_flight_controller.wire import Writer
from tests.controllers.bridge import Bridge
from tests.controllers.puppet import Puppet

pytestmark = pytest.mark.extended


def _heartbeat(version=3):
    return Writer(1, 200).pack(common.MAVLink_heartbeat_message(0, 8, 0, 0, 4, version))


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


def said(controller, until_us, each=None):
    """Names of what it says, with their times."""
    heard, found = common.MAVLink(None), []
    for now_us in range(0, until_us, 4000):
        if each is not None:
            controller.receive(now_us, each(now_us))
        found += [(now_us, message.get_type()) for message in heard.parse_buffer(controller.advance(now_us)) or []]
    return found


def first(found, name):
    return next((now_us for now_us, said_name in found if said_name == name), None)


def test_px4_on_linux_speaks_at_once_and_says_its_heartbeat_a_second_later_or_when_it_is_asked():
    spec = Px4Spec(linux=True, extra=False)
    found = said(Px4(spec), 2_000_000)
    assert found[0][0] == 0
    assert first(found, "HEARTBEAT") == 1_000_000
    wish = Writer(1, 200).pack(common.MAVLink_command_long_message(1, 1, common.MAV_CMD_REQUEST_MESSAGE, 0, *[0.0] * 7))
    found = said(Px4(spec), 2_000_000, lambda now_us: wish if now_us == 8000 else b"")
    assert first(found, "HEARTBEAT") == first(found, "COMMAND_ACK") == 8000


def test_nothing_is_sent_before_power_has_been_on_for_long_enough():
    controller = Px4(Px4Spec(boot_us=300_000))
    controller.receive(0, _heartbeat())
    assert next(now_us for now_us in range(0, 500_000, 50_000) if controller.advance(now_us)) == 300_000
