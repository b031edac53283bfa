"""What three public captures of real units say."""

import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.errors import CaptureError
from hilsim.families.velodyne.calibration.calibrate import calibrate
from hilsim.families.velodyne.calibration.recording import read_recording
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.sensor.unit.encoder import EncoderSpec, build_encoder, encoder_code
from tests.unit.families.velodyne.calibration.emulated import SPEC, errors

pytestmark = pytest.mark.extended

GPS, DUAL, FAST = "vlp16_strongest_gps.pcap", "vlp16_dual.pcap", "vlp16_strongest_1200rpm.pcap"
HDL, FIELD, ALPHA = "hdl32e_strongest.pcap", "vlp32c_strongest_fov.pcap", "vls128_strongest.pcap"


def read(capture, name):
    return read_recording(CaptureFile(capture(name)), name=name)


@pytest.mark.parametrize(
    ("name", "ppm", "rate_rpm", "offset_rpm", "rarest", "most"),
    [(GPS, 0.27, 600, -0.93, 0.136, 0.226), (DUAL, 0.39, 600, -0.02, 0.154, 0.227), (FAST, -0.16, 1200, -1.23, 0.165, 0.309)],
)
def test_clock_and_encoder_of_real_units(capture, name, ppm, rate_rpm, offset_rpm, rarest, most):
    keys = calibrate([read(capture, name)], SPEC).learned.keys
    assert keys["stamp_ppm"] == pytest.approx(ppm, abs=0.1)
    entry = keys["encoder"][0]
    assert (entry["rate_rpm"], entry["rate_offset_rpm"]) == (rate_rpm, pytest.approx(offset_rpm, abs=0.05))
    learned = build_encoder(EncoderSpec(**entry | {"curve": ()}), seed=1, stream=0)
    angles = np.random.default_rng(3).uniform(0.0, 36_000.0, 30_000)
    of_five = np.bincount([encoder_code(learned, angle, number) % 5 for number, angle in enumerate(angles)]) / angles.size
    assert (of_five.min(), of_five.max()) == (pytest.approx(rarest, abs=0.012), pytest.approx(most, abs=0.012))
    assert "oscillator_ppm" not in keys


def test_lasers_of_a_real_unit_differ_by_millimetres(capture):
    found = calibrate([read(capture, GPS)], SPEC).learned
    biases = errors(found.lasers, "range_bias_m")
    assert np.isfinite(biases).sum() >= 10
    assert 0.003 < np.nanstd(biases) < 0.014
    assert errors(found.lasers, "baseline").tolist() == [9, 23, 24, 23, 20, 12, 11, 13, 17, 14, 11, 8, 23, 7, 23, 11]
    assert found.keys["mac"] == "60:76:88:10:2f:6f"
    periods = [schedule["period_us"] for schedule in found.keys["position"]["schedules"]]
    np.testing.assert_allclose(periods, [10_040.0, 21_250.0], rtol=0.01)


def test_captures_of_several_models_are_refused(capture):
    with pytest.raises(CaptureError, match="captures must be of one sensor, got those of a HDL-32E and a VLP-16"):
        calibrate([read(capture, GPS), read(capture, "hdl32e_strongest.pcap")], SPEC)


def spec_of(profile):
    return parse_table(VelodyneSpec, read_toml(profiles_directory() / "sensors" / f"{profile}.toml"), profile)


def bias_reason(calibration):
    """Why range errors of lasers were not learned."""
    (figure,) = [figure for figure in calibration.figures if figure.name == "laser.range_bias_m"]
    return figure.reason


def test_a_vlp_32c_among_things_without_walls_shows_no_range_errors_of_its_lasers(capture):
    assert bias_reason(calibrate([read(capture, FIELD)], spec_of("vlp32c"))) == "no plane of 4 lasers and 150 directions was seen"


def test_a_sensor_that_drives_is_not_calibrated(capture):
    with pytest.raises(CaptureError, match="the sensor must stand still: at least 60 % of its directions must show the same range"):
        calibrate([read(capture, HDL)], spec_of("hdl32e"))


def test_a_vls_128_shows_the_baseline_of_each_laser_and_one_wall(capture):
    found = calibrate([read(capture, ALPHA)], spec_of("vls128"))
    baselines = errors(found.learned.lasers, "baseline")
    assert baselines.shape == (128,)
    assert baselines[[4, 5, 17, 33, 50]].tolist() == [3, 19, 39, 63, 15]
    assert found.learned.keys["encoder"][0]["rate_offset_rpm"] == pytest.approx(-0.3, abs=0.02)
    assert bias_reason(found) == "the planes seen, 1, leave a doubt above 2 mm for every laser"
