"""Inspection of every real capture of a Velodyne, against what is known of them, the checker and an independent decoder."""

import math

import pytest
import velodyne_decoder

from hilsim.capture.pcap import CaptureFile
from hilsim.families.velodyne.recognition import VelodyneKind
from hilsim.read.analysis.conformance.checker import check
from hilsim.read.analysis.inspection.inspector import inspect

VELODYNE = {
    "vlp16_strongest_gps.pcap": ("10.0.0.100", "VLP-16", 0x37, 599.1, 293, 57),
    "vlp16_dual.pcap": ("192.168.1.201", "VLP-16", 0x39, 600.0, 603, 0),
    "vlp16_strongest_1200rpm.pcap": ("192.168.1.200", "VLP-16", 0x37, 1198.8, 1902, 367),
    "vlp32c_strongest_fov.pcap": ("192.168.1.201", "VLP-32C", 0x37, 600.0, 379, 0),
    "hdl32e_strongest.pcap": ("192.168.1.201", "HDL-32E", 0x37, 706.5, 2702, 299),
}
SCANS = {"vlp16_strongest_gps.pcap": 4, "vlp16_dual.pcap": 4, "hdl32e_strongest.pcap": 18}


@pytest.fixture
def flows(capture):
    """Source, data flow and position flow (or None) of a capture with one Velodyne."""

    def find(name):
        summary = inspect(CaptureFile(capture(name)))
        (sensor,) = summary.sensors
        assert summary.other_flows == ()
        kinds = {flow.kind: flow for flow in sensor.flows}
        return sensor.source, kinds[VelodyneKind.DATA], kinds.get(VelodyneKind.POSITION)

    return find


@pytest.mark.parametrize("name", VELODYNE)
def test_sensor_model_mode_rate_and_packets_are_those_of_the_capture(flows, name):
    source, data, position = flows(name)
    details = data.details
    found = (source, details.model, details.return_modes[0], round(details.rotation_rate_rpm, 1), data.packets, position.packets if position else 0)
    assert found == VELODYNE[name]
    assert details.missing.packets == details.clock.jumps == details.clock.out_of_order == details.clock.repeated == data.gaps.count == 0


@pytest.mark.parametrize("name", VELODYNE)
def test_the_checker_says_the_same(flows, any_capture, name):
    _, data, position = flows(name)
    (sensor,) = check(CaptureFile(any_capture(name))).sensors
    checked = sensor.summary
    assert (data.details.model, data.packets) == (checked.model, checked.data_packets)
    assert data.details.missing.packets == checked.lost_packets
    assert data.details.rotation_rate_rpm == pytest.approx(checked.rate_rpm, rel=2e-4)
    assert data.spacing.sd_us == pytest.approx(checked.gap_sd_us, rel=1e-3)
    assert data.spacing.p50_us == pytest.approx(checked.gap_p50_us, rel=0.005)
    if position is not None:
        assert position.details.rate_hz == pytest.approx(checked.position_rate_hz)
        assert position.details.sentences == checked.nmea_sentences
        assert tuple(sorted(position.details.pps_states)) == checked.pps_states


@pytest.mark.parametrize("name", SCANS)
def test_an_independent_decoder_finds_as_many_scans_as_the_head_turned(flows, capture, name):
    _, data, _ = flows(name)
    turns = data.details.clock.duration_s * data.details.rotation_rate_rpm / 60
    scans = list(velodyne_decoder.read_pcap(str(capture(name)), velodyne_decoder.Config(min_range=0, max_range=300)))
    assert len(scans) == SCANS[name] == math.ceil(turns)


def test_the_limited_field_of_view_is_seen_and_is_no_gap(flows):
    _, data, _ = flows("vlp32c_strongest_fov.pcap")
    ((start_deg, end_deg),) = data.details.azimuth_sectors_deg
    assert (start_deg, end_deg) == (pytest.approx(270.1), pytest.approx(91.0))
    assert data.gaps.count == 0


def test_an_early_vlp16_is_distinguished_from_an_hdl32e_whose_product_byte_it_has(flows):
    _, data, _ = flows("vlp16_strongest_1200rpm.pcap")
    assert data.details.products == (0x21,)
    assert data.details.is_early_unit
    _, other, _ = flows("hdl32e_strongest.pcap")
    assert other.details.products == (0x21,)
    assert not other.details.is_early_unit


def test_capture_times_that_a_viewer_rewrote_show_as_whole_milliseconds(flows):
    _, doctored, _ = flows("vlp16_strongest_1200rpm.pcap")
    _, genuine, _ = flows("hdl32e_strongest.pcap")
    assert doctored.spacing.whole_millisecond_ratio > 0.9
    assert genuine.spacing.whole_millisecond_ratio == 0.0


def test_the_gps_captures_position_packets_say_when_it_was(flows):
    _, data, position = flows("vlp16_strongest_gps.pcap")
    assert position.details.pps_states == (2,)
    assert position.details.first_sentence.startswith("$GPRMC,081802.00,A,3649.7478558,N")
    assert position.details.first_sentence_utc == "2016-01-21T08:18:02Z"
    assert data.details.clock.first_us == 1_082_340_595


def test_sentences_with_a_date_span_a_second_in_the_hdl32e_capture(flows):
    _, _, position = flows("hdl32e_strongest.pcap")
    assert (position.details.first_sentence_utc, position.details.last_sentence_utc) == ("2012-12-11T22:06:32Z", "2012-12-11T22:06:33Z")
    assert position.details.pps_states == (0,)
