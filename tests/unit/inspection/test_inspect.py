"""What an inspection finds whatever a stream's sensors are."""

import tracemalloc
from dataclasses import asdict

import pytest

from hilsim.families.velodyne.recognition import VelodyneKind
from hilsim.protocols.recognise import OtherKind
from hilsim.read.analysis.inspection.inspector import Inspector, inspect
from tests.unit.families.velodyne.conformance.streams import vlp16
from tests.unit.inspection.datagrams import START_NS, datagram


@pytest.fixture(scope="module")
def packets():
    """700 data packets of a faultless VLP-16."""
    return [entry for entry in vlp16().datagrams() if len(entry.payload) == 1206]


def test_unrecognised_packets_are_reported_by_size_and_first_bytes():
    lines = [datagram(b"\x01\x02hello" + bytes(number), port=5353, at_ns=START_NS + number * 10**9, frame=number + 1) for number in range(4)]
    summary = inspect(lines)
    (flow,) = summary.other_flows
    assert summary.sensors == ()
    assert (flow.kind, flow.smallest_bytes, flow.largest_bytes, flow.details) == (OtherKind.OTHER, 7, 10, None)
    assert flow.first_bytes == "01 02 68 65 6c 6c 6f"


def test_other_traffic_of_a_sensor_is_listed_with_the_sensor(packets):
    (sensor,) = inspect([*packets, datagram(b"status", port=9000)]).sensors
    assert [flow.kind for flow in sensor.flows] == [VelodyneKind.DATA, OtherKind.OTHER]


def test_beyond_many_flows_datagrams_are_only_counted_and_sensors_still_found(packets):
    strangers = [datagram(b"?", source=f"10.0.{number // 250}.{number % 250}", frame=number + 1) for number in range(1000)]
    summary = inspect([*strangers, *packets])
    assert len(summary.other_flows) + summary.unlisted_datagrams == 1000
    assert len(summary.other_flows) == 128
    assert summary.sensors[0].flows[0].packets == 700


def test_a_slow_flow_has_a_gap_only_beyond_ten_of_its_own_intervals():
    seconds = [0, 1, 2, 3, 4, 5, 13, 14, 15, 35, 36]
    beats = [datagram(b"INFO" + bytes(8), at_ns=START_NS + second * 10**9, frame=number) for number, second in enumerate(seconds, start=1)]
    (sensor,) = inspect(beats).sensors
    assert (sensor.flows[0].gaps.count, sensor.flows[0].gaps.longest.after.frame) == (1, 9)
    assert sensor.flows[0].gaps.longest.duration_s == pytest.approx(20)


def test_an_empty_stream_gives_an_empty_summary():
    summary = inspect([])
    assert (summary.datagrams, summary.sensors, summary.other_flows, summary.duration_s) == (0, (), (), 0.0)


def test_memory_does_not_grow_with_the_capture(packets):
    inspector = Inspector()

    def feed(rounds):
        for _ in range(rounds):
            for entry in packets:
                inspector.add(entry)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = feed(4)
        assert feed(36) - before < 1_000_000  # up to a block of packets waits; 25,000 stamps alone would take more
    finally:
        tracemalloc.stop()


def test_every_figure_has_its_unit_in_its_name():
    units = ("_ns", "_us", "_s", "_hz", "_ppm", "_rpm", "_deg", "_bytes", "_ratio")
    floats = set()

    def walk(value):
        if isinstance(value, dict):
            floats.update(key for key, entry in value.items() if isinstance(entry, float))
            value = list(value.values())
        for entry in value if isinstance(value, (list, tuple)) else ():
            walk(entry)

    walk(asdict(inspect(vlp16().datagrams())))
    assert len(floats) > 10
    assert {name for name in floats if not name.endswith(units)} == set()
