"""Inspection of Cepton streams: points, frames and losses."""

import struct

import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.families.cepton.inspection import StdvPoints
from hilsim.families.cepton.recognition import CeptonKind
from hilsim.read.analysis.inspection.inspector import inspect
from tests.unit.inspection.datagrams import START_NS, datagram


def stdv(sequence, *, parity=0, stamp_us=0, points=144, version=2):
    """An STDV payload by the published header."""
    size = 24 if version == 2 else 20
    header = struct.pack("<4sBBHqBBH", b"STDV", version, size, 0, stamp_us, 0, 10, points)
    point = bytes(9) + bytes((0x04 if parity else 0,))
    return header + (struct.pack("<I", sequence) if version == 2 else b"") + point * points


def stdv_flow(payloads, interval_us=400):
    (sensor,) = inspect(
        datagram(payload, port=8808, at_ns=START_NS + k * interval_us * 1000, frame=k + 1) for k, payload in enumerate(payloads)
    ).sensors
    assert isinstance(sensor.flows[0].details, StdvPoints)
    return sensor.flows[0]


def test_stdv_points_and_frames_are_counted_across_blocks():
    flow = stdv_flow([stdv(k, parity=k // 64 % 2, stamp_us=400 * k) for k in range(1500)])
    points = flow.details
    assert (points.points, points.fewest_points, points.most_points, points.frames) == (1500 * 144, 144, 144, 24)
    assert (points.missing.packets, points.sequence_breaks, points.clock.jumps, points.versions) == (0, 0, 0, (2,))
    assert points.clock.duration_s == pytest.approx(1499 * 400e-6)
    assert points.clock.host_drift_ppm == pytest.approx(0, abs=1e-6)


def test_stdv_loss_and_restart_show_in_the_sequence_numbers():
    numbers = [*range(2**32 - 100, 2**32), *range(20), *range(25, 100), *range(5)]
    points = stdv_flow([stdv(number, stamp_us=1000 + 400 * k) for k, number in enumerate(numbers)]).details
    assert (points.missing.packets, points.missing.longest_after.frame, points.sequence_breaks) == (5, 120, 1)


def test_stdv_numbers_that_leap_far_ahead_are_another_sensors_and_no_loss():
    numbers = [*range(50), *range(2**25, 2**25 + 50)]
    points = stdv_flow([stdv(number, stamp_us=400 * k) for k, number in enumerate(numbers)]).details
    assert (points.missing.packets, points.sequence_breaks) == (0, 1)


def test_stdv_of_version_1_has_no_sequence_numbers_to_miss_packets_by():
    points = stdv_flow([stdv(0, version=1, points=143, stamp_us=400 * k) for k in range(40)]).details
    assert points.missing is None
    assert points.points == 40 * 143


def test_both_cepton_sensors_are_listed_with_points_and_info(capture):
    summary = inspect(CaptureFile(capture("cepton_hr80_two_sensors.pcap")))
    listed = {sensor.source: {flow.kind: flow.packets for flow in sensor.flows} for sensor in summary.sensors}
    both = {CeptonKind.STDT: 1508, CeptonKind.INFO: 1}
    assert listed == {"192.168.32.87": both, "192.168.48.101": both}
    points = summary.sensors[0].flows[0]
    assert points.rate_hz == pytest.approx(976.6, abs=0.1)
    assert points.spacing.mean_us == pytest.approx(1023.99, abs=0.01)
    assert points.details is None
