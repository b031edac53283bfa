"""Which packets are taken and what is refused."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from hilsim.errors import CaptureError
from hilsim.families.velodyne.comparison.stream import StreamStatistics
from hilsim.families.velodyne.protocol.data import ReturnMode
from hilsim.families.velodyne.protocol.models import VLP_16
from hilsim.read.analysis.comparison.streams import compare, gather
from tests.unit.families.velodyne.conformance.streams import vlp16


def data_of(stream):
    return [entry for entry in stream.datagrams() if len(entry.payload) == 1206]


@pytest.mark.parametrize("dual", [False, True])
def test_statistics_do_not_depend_on_how_packets_are_cut_into_blocks(dual):
    datagrams = data_of(vlp16(800, dual=dual))
    mode = ReturnMode.DUAL if dual else ReturnMode.STRONGEST
    whole, pieces = (StreamStatistics("192.168.1.201", VLP_16, mode, 0x22) for _ in range(2))
    whole.look(datagrams)
    start = 0
    for size in (1, 2, 3, 94, 500, 200):
        pieces.look(datagrams[start : start + size])
        start += size
    assert start == len(datagrams)
    for row in compare(whole, pieces).rows:
        if row.statistic.name in {"stamps.residual_sd", "stamps.cycle"}:  # a line each block
            assert row.distance < 0.1
        else:
            assert row.distance == pytest.approx(0.0, abs=1e-9) or np.isnan(row.a), row.statistic.name
    assert pieces.azimuth.increments.total == whole.azimuth.increments.total
    np.testing.assert_array_equal(pieces.noise.windows, whole.noise.windows)


def test_a_rotation_rate_that_changes_within_a_capture_is_refused():
    stream = vlp16(200, rpm=600.0)
    faster = vlp16(200, rpm=1200.0).data["blocks"]["azimuth"].astype(int)
    stream.data["blocks"]["azimuth"][100:] = (faster[100:] - faster[100, 0] + stream.data["blocks"]["azimuth"][100, 0]) % 36_000
    with pytest.raises(CaptureError, match=r"x\.pcap: the rotation rate must stay the same within a capture, got 600 to 1\d+ rpm"):
        gather(stream.datagrams(), name="x.pcap")


def test_a_unit_at_300_rpm_that_swings_from_281_to_316_rpm_within_each_turn_has_one_rate():
    stream = vlp16(460, rpm=300.0)
    azimuth = stream.data["blocks"]["azimuth"].astype(float)
    swung = azimuth + 0.056 * 36_000 / (2.0 * np.pi) * np.sin(2.0 * np.pi * azimuth / 36_000)
    stream.data["blocks"]["azimuth"] = np.rint(swung).astype(int) % 36_000
    statistics = gather(stream.datagrams(), name="x.pcap").azimuth
    assert (statistics.slowest_rpm, statistics.fastest_rpm) == pytest.approx((300.0, 300.0), abs=0.5)


def test_an_early_unit_that_says_it_is_an_hdl_32e_is_reported_by_its_cycle():
    stream = vlp16(200)
    stream.data["product"] = 0x21
    assert gather(stream.datagrams(), name="stream").model is VLP_16


def test_one_of_several_sensors_must_be_chosen():
    one = data_of(vlp16(100))
    other = [replace(entry, source="192.168.1.202") for entry in data_of(vlp16(60, seed=2))]
    both = sorted(one + other, key=lambda entry: entry.host_stamp_ns)
    with pytest.raises(CaptureError, match=r"x.pcap: one sensor must be chosen, got 192.168.1.201 \(100 packets\), 192.168.1.202 \(60 packets\)"):
        gather(both, name="x.pcap")
    assert gather(both, name="x.pcap", sensor="192.168.1.202").spacing.packets == 60
    with pytest.raises(CaptureError, match=r"the sensor must be one of 192.168.1.201.*, got 10.0.0.1"):
        gather(both, name="x.pcap", sensor="10.0.0.1")


def test_too_few_packets_are_refused():
    with pytest.raises(CaptureError, match=r"x.pcap: must hold at least 50 Velodyne data packets of one sensor and mode, got 49"):
        gather(data_of(vlp16(49)), name="x.pcap")
    with pytest.raises(CaptureError, match="got 0"):
        gather([entry for entry in vlp16(100).datagrams() if len(entry.payload) == 512], name="x.pcap")


def test_models_and_modes_that_are_not_known_are_refused():
    stream = vlp16(100)
    stream.data["mode"] = 0x3A
    with pytest.raises(CaptureError, match="the return mode must be 0x37, 0x38, 0x39, 0x3b, got 0x3a"):
        gather(stream.datagrams(), name="x.pcap")
    stream = vlp16(100)
    stream.data["product"] = 0x63
    stream.data["stamp"] = 166 * np.arange(100)
    with pytest.raises(CaptureError, match=r"the model must be VLP-16, .*, VLS-128, got product byte 0x63"):
        gather(stream.datagrams(), name="x.pcap")
    dual = vlp16(100, dual=True)
    dual.data["product"] = 0xA1
    with pytest.raises(CaptureError, match=r"x.pcap: a VLS-128 must send one return of each firing, got dual mode, of which no unit was measured"):
        gather(dual.datagrams(), name="x.pcap")


def test_packets_of_another_mode_are_passed_over_and_counted():
    stream = vlp16(300)
    stream.data["mode"][200:] = 0x38
    found = gather(stream.datagrams(), name="x.pcap")
    assert (found.return_mode, found.spacing.packets, found.other_packets) == (ReturnMode.STRONGEST, 200, 100)


def test_memory_does_not_grow_with_the_stream():
    datagrams = data_of(vlp16(1100))
    peaks = []
    for times in (1, 4):
        tracemalloc.start()
        found = gather((entry for _ in range(times) for entry in datagrams), name="x.pcap")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert found.spacing.packets == times * 1100
    assert peaks[1] < 1.1 * peaks[0]
