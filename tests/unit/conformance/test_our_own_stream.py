"""What hilsim's own emulator sends, checked by the rules that real sensors keep."""

import pytest

from hilsim.sensor.specs import ClockSetting


@pytest.mark.parametrize("rpm", [300, 600, 1200])
def test_the_emulated_vlp16_breaks_no_rule(judge, own_stream, rpm):
    assert judge(list(own_stream.emulate(rotation_rate_rpm=rpm))).findings == []


def test_the_emulated_vlp16_measures_as_the_real_one(judge, own_stream):
    (sensor,) = judge(list(own_stream.emulate(rotation_rate_rpm=600))).result.sensors
    summary = sensor.summary
    assert summary.cycle_drift_ppm == pytest.approx(0.0, abs=0.05)
    assert summary.stamp_residual_us == pytest.approx(12**-0.5, rel=0.02)
    assert summary.rate_rpm == pytest.approx(600.0, abs=1.0)
    assert summary.azimuth_increment_sd_cdeg == pytest.approx(0.83, abs=0.06)  # real units 0.78-0.87
    assert summary.azimuth_autocorrelation == pytest.approx(-0.48, abs=0.04)
    assert 135.0 < summary.position_rate_hz < 155.0


@pytest.mark.parametrize("sync", ["free", "pps"])
@pytest.mark.parametrize("ppm", [137.0, -60.0])
def test_a_clock_that_runs_off_breaks_no_rule_whether_pulses_set_it_or_not(judge, own_stream, ppm, sync):
    verdict = judge(list(own_stream.emulate(clock=ClockSetting(oscillator_ppm=ppm, sync=sync, offset_s=3599.0))))
    assert verdict.errors == set()


@pytest.mark.parametrize("ppm", [137.0, -60.0])
def test_stamps_that_run_faster_than_the_firings_are_a_warning_with_their_rate(judge, own_stream, ppm):
    verdict = judge(list(own_stream.emulate(clock=ClockSetting(stamp_ppm=ppm, sync="free", offset_s=3599.0))))
    assert (verdict.errors, "time.drift" in verdict.warnings) == (set(), True)
    assert verdict.result.sensors[0].summary.cycle_drift_ppm == pytest.approx(ppm, abs=0.2)
