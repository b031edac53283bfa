"""From where to where a recorded flow is sent, and with which headers."""

import dataclasses

import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.errors import ConfigError
from hilsim.families.velodyne.recognition import VELODYNE_DATA_STYLE, VELODYNE_POSITION_STYLE, VelodyneKind
from hilsim.parts.replays.flows import FlowRule, LoopbackSources
from hilsim.parts.replays.specs import ReplaySpec
from hilsim.parts.replays.targets import find_target, flow_socket, link_framing, link_style
from hilsim.protocols.ethernet import LinkStyle
from hilsim.protocols.flow_key import FlowKey
from hilsim.protocols.recognise import OtherKind
from hilsim.transmit.specs import FrameSocketSpec
from tests.unit.replays.streams import CAMERA, POSITION, SENSOR, Recording

DATA, OTHER = VelodyneKind.DATA, OtherKind.OTHER
BROADCAST_SENSOR = SENSOR._replace(destination="255.255.255.255")


def spec_of(**settings):
    return ReplaySpec(name="front", file="front.pcap", **settings)


def target_of(flow=SENSOR, kind=DATA, **settings):
    return find_target(spec_of(**settings), flow, kind, LoopbackSources())


@pytest.fixture
def recorded(tmp_path):
    """The first datagram of a flow, as a capture shows it."""

    def make(flow=SENSOR, payload=bytes(1206), **link):
        path = Recording().add(0, flow, payload, **link).write(tmp_path / "first.pcap")
        return next(iter(CaptureFile(path)))

    return make


# -- addresses and ports ----------------------------------------------------------------------------------------------------------------


def test_towards_loopback_each_sensor_has_an_address_of_its_own_and_the_recorded_ports():
    assert target_of() == FlowKey("127.0.1.201", 2368, "127.0.0.1", 2368)


def test_towards_other_hosts_the_source_is_the_recorded_one():
    assert target_of(destination="10.0.0.1") == FlowKey("192.168.1.201", 2368, "10.0.0.1", 2368)


@pytest.mark.parametrize(("source", "address"), [("recorded", "192.168.1.201"), ("127.0.0.5", "127.0.0.5")])
def test_the_source_can_be_set(source, address):
    assert target_of(source=source).source == address


def test_the_recorded_destination_can_be_kept():
    assert target_of(destination="recorded") == SENSOR


def test_a_destination_port_is_for_everything_but_position_packets():
    assert target_of(destination_port=5555).destination_port == 5555
    assert target_of(POSITION, VelodyneKind.POSITION, destination_port=5555).destination_port == 8308


def test_a_rule_replaces_what_it_names_and_leaves_the_rest():
    rules = (FlowRule(match=":2368", send=":7>:8"), FlowRule(match=":5000", send="127.3.3.3>127.0.0.9"))
    assert find_target(spec_of(flow=rules), SENSOR, DATA, LoopbackSources()) == FlowKey("127.0.1.201", 7, "127.0.0.1", 8)
    assert find_target(spec_of(flow=rules), CAMERA, OTHER, LoopbackSources()) == FlowKey("127.3.3.3", 5000, "127.0.0.9", 5001)
    by_rule = spec_of(flow=(FlowRule(send=">:9"),), destination_port=5555)
    assert find_target(by_rule, SENSOR, DATA, LoopbackSources()).destination_port == 9


def test_broadcast_is_refused_unless_it_is_asked_for():
    with pytest.raises(ConfigError, match=r"replay front: broadcast must be true to send 192\.168\.1\.201:2368>255\.255\.255\.255:2368 to 255"):
        target_of(BROADCAST_SENSOR, destination="recorded")
    assert target_of(BROADCAST_SENSOR).destination == "127.0.0.1"
    assert target_of(BROADCAST_SENSOR, destination="recorded", broadcast=True) == BROADCAST_SENSOR
    with pytest.raises(ConfigError, match="broadcast must be true"):
        find_target(spec_of(flow=(FlowRule(send=">255.255.255.255"),)), SENSOR, DATA, LoopbackSources())


# -- headers ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "style",
    [
        LinkStyle(ttl=37, dont_fragment=False, counting_identification=True, udp_checksum=True),
        LinkStyle(ttl=128, dont_fragment=True, counting_identification=False, udp_checksum=False),
    ],
)
def test_headers_are_as_they_were_recorded(recorded, style):
    first = recorded(style=style, identification=77 if style.counting_identification else 0)
    assert link_style(first, DATA) == style
    socket = flow_socket(spec_of(), target_of(), link_style(first, DATA))
    assert (socket.ttl, socket.dont_fragment, socket.udp_checksum) == (style.ttl, style.dont_fragment, style.udp_checksum)


def test_where_the_capture_does_not_show_a_sensors_headers_they_are_as_its_kind_has_them(recorded):
    for unseen in (
        dataclasses.replace(recorded(), link=None),
        dataclasses.replace(recorded(), link=b"\0\0\0\2"),
        recorded(SENSOR._replace(source="127.0.0.5")),
    ):
        assert link_style(unseen, DATA) == VELODYNE_DATA_STYLE
        assert link_style(unseen, VelodyneKind.POSITION) == VELODYNE_POSITION_STYLE
        assert link_style(unseen, OTHER).ttl == 64


def test_frames_carry_the_recorded_source_mac_and_the_targets_addresses(recorded):
    spec = spec_of(mode="ethernet", interface="eth0", destination_mac="02:00:00:00:00:09", destination="10.0.0.1")
    target = find_target(spec, SENSOR, DATA, LoopbackSources())
    shape = link_framing(spec, target, recorded(source_mac="60:76:88:38:0a:0b"), DATA)
    assert shape.header_size == 42
    assert shape.template[:12].tobytes().hex(":") == "02:00:00:00:00:09:60:76:88:38:0a:0b"
    assert shape.template[26:34].tobytes() == bytes((192, 168, 1, 201, 10, 0, 0, 1))
    assert shape.template[22] == 255
    assert not shape.udp_checksum


def test_with_broadcast_allowed_a_flow_that_went_to_one_host_still_goes_to_one_host(recorded):
    spec = spec_of(mode="ethernet", interface="eth0", destination="recorded", broadcast=True)
    for flow, mac in ((SENSOR, "02:00:00:00:00:77"), (BROADCAST_SENSOR, "ff:ff:ff:ff:ff:ff")):
        target = find_target(spec, flow, DATA, LoopbackSources())
        assert link_framing(spec, target, recorded(flow, destination_mac=mac), DATA).template[:6].tobytes().hex(":") == mac


def test_frames_to_a_group_have_the_groups_mac(recorded):
    spec = spec_of(mode="ethernet", interface="eth0", destination="239.1.2.3")
    target = find_target(spec, SENSOR, DATA, LoopbackSources())
    assert link_framing(spec, target, recorded(), DATA).template[:6].tobytes().hex(":") == "01:00:5e:01:02:03"


@pytest.mark.parametrize("settings", [{"destination": "10.0.0.1"}, {"destination": "recorded"}])
def test_frames_to_one_host_need_its_mac_address(recorded, settings):
    spec = spec_of(mode="ethernet", interface="eth0", **settings)
    target = find_target(spec, SENSOR, DATA, LoopbackSources())
    with pytest.raises(ConfigError, match=r"replay front: destination_mac must be given for frames to one host, got none for 192\.168\.1\.201:2368>"):
        link_framing(spec, target, recorded(destination_mac="ff:ff:ff:ff:ff:ff"), DATA)


def test_towards_loopback_any_source_port_serves_so_that_receivers_can_bind_the_sensors():
    assert flow_socket(spec_of(), target_of(), VELODYNE_DATA_STYLE).source_port == 0
    assert flow_socket(spec_of(source_ports="recorded"), target_of(), VELODYNE_DATA_STYLE).source_port == 2368
    away = target_of(destination="10.0.0.1")
    assert flow_socket(spec_of(destination="10.0.0.1"), away, VELODYNE_DATA_STYLE).source_port == 2368
    assert flow_socket(spec_of(destination="10.0.0.1", source_ports="any"), away, VELODYNE_DATA_STYLE).source_port == 0


def test_frames_go_through_the_interface():
    assert flow_socket(spec_of(mode="ethernet", interface="eth7"), target_of(), VELODYNE_DATA_STYLE) == FrameSocketSpec(interface="eth7")


def test_a_flow_that_would_be_sent_to_itself_is_refused_with_its_name():
    target = FlowKey("10.0.0.1", 2368, "10.0.0.1", 2368)
    with pytest.raises(ConfigError, match=r"replay front, 10\.0\.0\.1:2368>10\.0\.0\.1:2368: destination must not be the source itself"):
        flow_socket(spec_of(source_ports="recorded"), target, VELODYNE_DATA_STYLE)
