"""What can be set about a replay, and what cannot."""

import pytest

from hilsim.parts.replays.flows import FlowRule
from hilsim.parts.replays.specs import ReplaySpec


def spec_of(**settings):
    return ReplaySpec(**{"name": "front", "file": "front.pcap"} | settings)


def test_without_further_settings_a_capture_goes_to_loopback_by_device_time_with_stamps_that_are_now():
    spec = spec_of()
    assert (spec.destination, spec.pace, spec.retime, spec.loop, spec.interval_scale) == ("127.0.0.1", "device", "utc", "none", 1.0)
    assert not spec.broadcast


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"name": "front lidar"}, 'name must be letters, digits, "-", "_" and ".", got "front lidar"'),
        ({"name": ""}, "name must be letters"),
        ({"file": ""}, "file must be given"),
        ({"source": "eth0"}, 'source must be auto, recorded or an IPv4 address, got "eth0"'),
        ({"destination": "two words"}, 'destination must be recorded, .*got "two words"'),
        ({"destination_port": 65_536}, "destination_port must be 0 to 65535, got 65536"),
        ({"destination": "255.255.255.255"}, "broadcast must be true for destination 255.255.255.255"),
        ({"mode": "ethernet"}, 'interface must be given for mode "ethernet"'),
        ({"destination_mac": "aa:bb"}, 'destination_mac must be like "60:76:88:10:2f:6f", got "aa:bb"'),
        ({"rate_hz": -1.0}, "rate_hz must be 0 to 1000000, got -1.0"),
        ({"rate_hz": float("inf")}, "rate_hz must be 0 to 1000000, got inf"),
        ({"rate_hz": float("nan")}, "rate_hz must be 0 to 1000000, got nan"),
        ({"interval_scale": 0.0}, "interval_scale must be 0.001 to 1000, got 0.0"),
        ({"interval_scale": float("nan")}, "interval_scale must be 0.001 to 1000, got nan"),
        ({"start_s": -0.1}, "start_s must be 0 to 100000000, got -0.1"),
        ({"duration_s": -1.0}, r"duration_s must be 0 \(to the end\) to 1e8, got -1.0"),
        ({"start_s": 1e9}, "start_s must be 0 to 100000000, got 1000000000.0"),
        ({"offset_s": -2.0}, "offset_s must be 0 to 100000000, got -2.0"),
        ({"clock_offset_s": 1e10}, "clock_offset_s must be at most 8e9 either way, got 10000000000.0"),
        ({"loops": -1, "loop": "plain"}, r"loops must be 0 \(for ever\) or more, got -1"),
        ({"loops": 3}, 'loops must be given with loop "plain" or "seamless" only, got 3'),
        ({"loop_sensor": "front"}, 'loop_sensor must be an IPv4 address, got "front"'),
        ({"lookahead_packets": 63}, "lookahead_packets must be 64 to 262144, got 63"),
    ],
)
def test_a_setting_out_of_its_range_is_named_with_its_rule(settings, fault):
    with pytest.raises(ValueError, match=fault):
        spec_of(**settings)


def test_all_faults_are_named_at_once():
    with pytest.raises(ValueError, match=r"start_s must be .*; file must be given; .*loops must be"):
        spec_of(file="", start_s=-1.0, loops=-2)


@pytest.mark.parametrize("clock_offset_s", [-8e9, 8e9])
def test_the_widest_clock_offset_fits_into_64_bits_of_nanoseconds(clock_offset_s):
    assert abs(round(spec_of(clock_offset_s=clock_offset_s).clock_offset_s * 1e9)) + 10**18 < 1 << 63


def test_the_addresses_that_it_was_set_to_send_from_are_known():
    rules = (FlowRule(match=":1", send="127.0.0.9>"), FlowRule(send=">10.0.0.1"))
    assert spec_of(flow=rules).source_addresses == ("127.0.0.9",)
    assert spec_of(source="127.0.0.8").source_addresses == ("127.0.0.8",)
    assert spec_of(source="recorded").source_addresses == ()
