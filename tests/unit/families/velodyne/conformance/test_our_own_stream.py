"""What hilsim's own emulator sends, checked by the rules that real sensors keep."""

import pytest

from hilsim.sensor.optics.weather import WeatherSpec
from hilsim.sensor.optics.window import WindowSectorSpec, WindowSpec
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


WEATHER = {
    "rain": WeatherSpec(rain_mm_per_h=50.0),
    "fog": WeatherSpec(fog_visibility_m=30.0),
    "snow": WeatherSpec(snow_mm_per_h=3.0),
    "dust": WeatherSpec(dust_visibility_m=60.0),
}


@pytest.mark.extended
@pytest.mark.parametrize("kind", WEATHER)
@pytest.mark.parametrize("return_mode", ["strongest", "dual"])
def test_weather_over_open_ground_breaks_no_rule(judge, own_stream, kind, return_mode):
    """Lasers into the sky return nothing but drops, of reflectivity 0; and where a drop is, chance decides."""
    stream = own_stream.emulate(2_000_000_000, own_stream.YARD, weather=WEATHER[kind], return_mode=return_mode, sub_rays=7)
    verdict = judge(list(stream))
    assert (verdict.errors, verdict.warnings) == (set(), set())


def test_a_dirty_window_over_open_ground_breaks_no_rule(judge, own_stream):
    """Lasers on the ground and lasers into the sky return together from one box alone, which makes them look alike."""
    sectors = (
        WindowSectorSpec(azimuth_from_deg=350.0, azimuth_to_deg=10.0, transmission=0.0),
        WindowSectorSpec(azimuth_from_deg=100.0, azimuth_to_deg=101.5, transmission=0.0),
        WindowSectorSpec(azimuth_from_deg=200.0, azimuth_to_deg=230.0, transmission=0.1),
    )
    stream = own_stream.emulate(2_000_000_000, own_stream.YARD, window=WindowSpec(sectors=sectors), return_mode="dual")
    assert judge(list(stream)).errors == set()
