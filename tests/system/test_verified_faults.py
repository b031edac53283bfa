"""Faults on command that a stream shows: ``hilsim verify`` names each by a rule that has nothing to do with them."""

import pytest

import hilsim

pytestmark = [pytest.mark.extended, pytest.mark.system]

RIG = {
    "name": "verified",
    "seed": 5,
    "scene": {"generator": "street"},
    "platform": {"kind": "street"},
    "transmit": {"epoch_utc": "2026-03-01T11:59:56Z"},
    "sensor": [
        {"name": "roof", "profile": "vlp16", "sub_rays": 1, "mount_position_m": [0.0, 0.0, 1.9], "gps": {"latitude_deg": 59.9, "longitude_deg": 10.7}}
    ],
}
FOUND = {
    "dead_channel": ({"channels": [3]}, "returns.dead_laser"),
    "glare": ({"share": 0.2}, "returns.even"),
    "jamming": ({"azimuth_deg": [240.0, 120.0]}, "returns.laser_order"),  # of a third of the turn it depends on the place
    "range_bias": ({"bias_m": 1.0}, "returns.even"),
    "range_noise": ({"scatter_m": 1.0}, "returns.even"),
    "reflectivity_lost": ({"spread": 0.6}, "returns.laser_reflectivity"),
    "mixed_firmware": ({}, "returns.laser_order"),
    "encoder_stuck": ({"at_s": 1.0}, "azimuth.constant"),
    "encoder_jump": ({"at_s": 1.5, "for_s": 2.0}, "azimuth.motion"),
    "encoder_overflow": ({}, "azimuth.range"),
    "motor_stall": ({"at_s": 1.0}, "azimuth.noise"),
    "spin_up": ({"for_s": 4.0, "ramp_out_s": 4.0}, "azimuth.motion"),
    "lock_lost": ({"at_s": 2.0}, "azimuth.motion"),
    "clock_jump": ({"at_s": 2.0}, "time.step"),
    "clock_drift": ({"drift_ppm": 3000.0}, "time.cycle"),
    "leap_second": ({"at_s": 2.3}, "time.order"),
    "hour_overflow": ({}, "time.range"),
    "pps_noisy": ({"jitter_s": 0.01}, "time.step"),
    "pps_doubled": ({}, "time.wrap"),
    "pps_absent": ({"at_s": 1.0, "drift_ppm": 500.0}, "time.drift"),
    "nmea_missing": ({"at_s": 1.0}, "position.pps"),
    "nmea_late": ({"delay_s": 1.5}, "nmea.time"),
    "nmea_wrong_second": ({"seconds_by": -5.0}, "nmea.time"),
    "nmea_garbled": ({"share": 0.2}, "nmea.checksum"),
}
"""Rule that finds each fault, as a warning or an error."""


def named(path):
    """Rules that a capture breaks."""
    report = hilsim.verify(path).to_dict()
    return {finding["rule"] for sensor in report["sensors"] for finding in sensor["findings"] if finding["severity"] != "note"}


@pytest.fixture(scope="module")
def without(tmp_path_factory):
    """Rules that a recording without a fault breaks."""
    path = tmp_path_factory.mktemp("clean") / "clean.pcap"
    hilsim.record(hilsim.load_rig(RIG), path, duration_s=7.0)
    return named(path)


def test_a_recording_without_a_fault_breaks_no_rule(without):
    assert without == set()


@pytest.mark.parametrize("kind", FOUND)
def test_verify_names_a_fault(tmp_path, kind):
    keys, rule = FOUND[kind]
    hilsim.record(hilsim.load_rig({**RIG, "fault": [{"kind": kind, **keys}]}), tmp_path / "broken.pcap", duration_s=7.0)
    assert rule in named(tmp_path / "broken.pcap")
