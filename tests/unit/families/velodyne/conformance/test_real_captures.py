import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile

REAL = [
    ("vlp16_strongest_gps.pcap", "VLP-16", 599.12, 1327.104),
    ("vlp16_dual.pcap", "VLP-16", 600.02, 663.552),
    ("vlp16_strongest_1200rpm.pcap", "VLP-16", 1198.77, 1327.104),
    ("vlp32c_strongest_fov.pcap", "VLP-32C", 600.04, 663.552),
    ("hdl32e_strongest.pcap", "HDL-32E", 706.5, 552.960),
]


@pytest.mark.parametrize("name", [row[0] for row in REAL])
def test_a_real_capture_has_no_errors(any_capture, judge, name):
    assert judge(CaptureFile(any_capture(name))).errors == set()


@pytest.mark.parametrize(("name", "model", "rpm", "cycle_us"), REAL)
def test_the_figures_of_a_real_capture_are_those_measured_by_hand(capture, judge, name, model, rpm, cycle_us):
    (sensor,) = judge(CaptureFile(capture(name))).result.sensors
    assert sensor.summary.model == model
    np.testing.assert_allclose(sensor.summary.rate_rpm, rpm, rtol=3e-4)
    np.testing.assert_allclose(sensor.summary.cycle_us, cycle_us, rtol=1e-6)
    np.testing.assert_allclose(sensor.summary.stamp_residual_us, 12**-0.5, rtol=0.02)


@pytest.mark.parametrize("name", ["vlp16_strongest_gps.pcap", "hdl32e_strongest.pcap"])
def test_untouched_captures_are_judged_by_header_and_arrival_too(any_capture, judge, name):
    (sensor,) = judge(CaptureFile(any_capture(name))).result.sensors
    assert (sensor.summary.headers, sensor.summary.gap_sd_us < 25.0) == ("sensor", True)


@pytest.mark.parametrize("name", ["vlp16_dual.pcap", "vlp16_strongest_1200rpm.pcap", "vlp32c_strongest_fov.pcap"])
def test_rewritten_headers_and_times_are_notes(capture, judge, name):
    assert {"header.own", "spacing.rewritten"} <= judge(CaptureFile(capture(name))).notes


def test_an_early_vlp16_is_known_by_its_timing(capture, judge):
    assert "factory.early_unit" in judge(CaptureFile(capture("vlp16_strongest_1200rpm.pcap"))).warnings


@pytest.mark.parametrize("name", ["vlp16_strongest_1200rpm.pcap", "hdl32e_strongest.pcap"])
def test_azimuth_36000_of_old_firmware_is_a_warning(capture, judge, name):
    assert "azimuth.range" in judge(CaptureFile(capture(name))).warnings
