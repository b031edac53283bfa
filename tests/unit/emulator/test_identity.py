"""Units of a model: drawn, learned, ideal."""

import dataclasses

import numpy as np
import pytest

import hilsim
from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.emulator.identity.unit import unit_of
from hilsim.emulator.planning import build_lidar_plan
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.sensor.signal.signal import HALVES, NOISES
from hilsim.sensor.signal.spec import SignalSpec
from hilsim.sensor.specs import ClockSetting
from hilsim.sensor.unit.encoder import EncoderSpec
from hilsim.sensor.unit.position import PositionScheduleSpec, PositionSpec
from hilsim.sensor.unit.spec import LaserUnitSpec, UnitSpec
from hilsim.sensor.unit.warm_up import WarmUpSpec
from tests.compiled import compiled_only
from tests.lidars import lidar_setting

VLP16, VLS128 = (parse_table(VelodyneSpec, read_toml(profiles_directory() / "sensors" / f"{name}.toml"), name) for name in ("vlp16", "vls128"))
ERRORS = ("bias_m", "elevation_error_deg", "azimuth_error_deg")


def drawn(stream=0, seed=7, learned=None, **setup):
    setting = dataclasses.replace(lidar_setting(VLP16, stream=stream, unit="drawn", **setup), unit=learned or UnitSpec())
    return unit_of(setting, seed=seed)


def test_four_sensors_of_a_rig_are_four_units_and_the_same_ones_again():
    units = [drawn(stream) for stream in range(4)]
    again = drawn(2)
    for name in (*ERRORS, "gain"):
        assert len({tuple(getattr(unit, name)) for unit in units}) == 4
        np.testing.assert_array_equal(getattr(again, name), getattr(units[2], name))
    assert len({tuple(unit.baseline) for unit in units}) == 4
    assert len({unit.setup.phase_deg for unit in units}) == 4
    assert len({unit.setup.clock.oscillator_ppm for unit in units}) == 4
    assert again.spec == units[2].spec
    assert again.setup == units[2].setup


@compiled_only
def test_drawn_units_are_spread_as_the_known_ones():
    units = [drawn(stream) for stream in range(200)]
    sd_mm = np.array([1000.0 * unit.bias_m.std() for unit in units])
    assert 2.0 < np.quantile(sd_mm, 0.02) < 4.0
    assert 10.0 < np.quantile(sd_mm, 0.98) < 18.0
    assert np.std([unit.elevation_error_deg for unit in units]) == pytest.approx(0.03, rel=0.05)
    levels = [np.median(unit.baseline) for unit in units]
    assert np.min(levels) > 2
    assert np.max(levels) < 30
    ppm = np.array([unit.setup.clock.stamp_ppm for unit in units])
    assert np.mean(np.abs(ppm) < 2.0) == pytest.approx(4 / 7, abs=0.12)
    assert np.mean(ppm > 130.0) == pytest.approx(2 / 7, abs=0.12)


def test_some_units_swing_at_300_rpm_and_none_at_600():
    slow = np.array([drawn(stream, rotation_rate_rpm=300).spec.rate_jitter.per_turn_ratio for stream in range(100)])
    fast = np.array([drawn(stream, rotation_rate_rpm=600).spec.rate_jitter.per_turn_ratio for stream in range(100)])
    assert fast.max() <= 0.0016
    assert (slow > fast).all()
    assert slow.max() > 0.04
    assert np.median(slow) < 0.02


def test_an_ideal_unit_has_no_errors_and_the_models_head():
    unit = unit_of(lidar_setting(VLP16, is_exact=False), seed=7)
    for name in ERRORS:
        assert not getattr(unit, name).any()
    assert (unit.gain == 1.0).all()
    assert unit.baseline.tolist() == [channel.no_return_reflectivity for channel in VLP16.channels]
    assert unit.spec == dataclasses.replace(VLP16, signal=dataclasses.replace(VLP16.signal, grid_codes=1, relief_ratio=0.0, ripple_m=0.0))
    assert (unit.setup.phase_deg, unit.setup.clock.oscillator_ppm, unit.setup.clock.stamp_ppm) == (0.0, 0.0, 0.0)


def test_what_is_learned_replaces_what_is_drawn_and_the_rig_replaces_both():
    entry = EncoderSpec(rate_rpm=600, tick_cdeg=0.0, noise_cdeg=0.2)
    position = PositionSpec(schedules=(PositionScheduleSpec(period_us=9000.0),), minimum_gap_us=0.0, latency_us=0.0)
    lasers = tuple(LaserUnitSpec(range_bias_m=0.001 * laser, baseline=laser, range_codes=(0, 1, -2), straddled_bytes=(1, 4)) for laser in range(16))
    learned = UnitSpec(model="VLP-16", stamp_ppm=3.0, oscillator_ppm=5.0, phase_deg=30.0, encoder=(entry,), position=position, laser=lasers)
    unit = drawn(learned=learned, clock=ClockSetting(oscillator_ppm=0.0))
    np.testing.assert_allclose(unit.bias_m, 0.001 * np.arange(16))
    assert unit.baseline.tolist() == list(range(16))
    assert unit.range_codes[3, :10].tolist() == [0, 0, 1, 0, -2, -2, -2, -2, -2, -1]
    assert (unit.setup.clock.oscillator_ppm, unit.setup.clock.stamp_ppm, unit.setup.phase_deg) == (0.0, 3.0, 30.0)
    assert (unit.spec.encoder, unit.spec.position) == ((entry,), position)
    np.testing.assert_array_equal(unit.elevation_error_deg, drawn().elevation_error_deg)


def test_lasers_have_the_bytes_and_noise_of_the_units_file():
    curve = ((5.0, 1.2), (30.0, 2.4), (80.0, 9.0))
    lasers = (LaserUnitSpec(byte_edges=((39, 40.0), (40, 42.0), (41, 42.0), (42, 42.0), (43, 50.5)), byte_noise=curve), *[LaserUnitSpec()] * 15)
    setting = dataclasses.replace(lidar_setting(VLP16, unit="drawn", is_exact=False), unit=UnitSpec(laser=lasers))
    plan, without = (build_lidar_plan(of, seed=7, utc_epoch_ns=0) for of in (setting, dataclasses.replace(setting, unit=UnitSpec())))
    assert set((plan.lasers.reported[80:101, 0] // 2).tolist()) == {40, 43}
    np.testing.assert_array_equal(plan.lasers.reported[HALVES:], without.lasers.reported[HALVES:])
    assert plan.lasers.byte_noise[80, 0] > 2.0 * VLP16.signal.byte_noise_ratio * 80.0
    np.testing.assert_array_equal(plan.lasers.byte_noise[NOISES:], without.lasers.byte_noise[NOISES:])


def test_lasers_without_noise_of_their_own_have_the_units():
    unit = UnitSpec(byte_noise=((20.0, 5.0),), laser=(LaserUnitSpec(byte_noise=((20.0, 1.5),)), *[LaserUnitSpec()] * 15))
    setting = dataclasses.replace(lidar_setting(VLP16, unit="drawn"), unit=unit)
    noise = build_lidar_plan(setting, seed=7, utc_epoch_ns=0).lasers.byte_noise.reshape(16, NOISES)[:, 20]
    np.testing.assert_allclose(noise, [1.5, *[5.0] * 15], rtol=0.05)


@pytest.mark.parametrize(
    "unit",
    [
        UnitSpec(laser=(LaserUnitSpec(byte_edges=((40, 40.5), (41, 40.5), (42, 42.5))), *[LaserUnitSpec()] * 15)),
        UnitSpec(byte_noise=((9.0, 1.0),)),
        UnitSpec(response=((9.0, 1.1),)),
    ],
)
def test_bytes_of_the_units_file_hold_without_a_signal_of_the_model(unit):
    plain = dataclasses.replace(VLP16, signal=SignalSpec())
    signal = build_lidar_plan(dataclasses.replace(lidar_setting(plain, unit="drawn"), unit=unit), seed=7, utc_epoch_ns=0).signal
    assert signal.has_bytes
    assert signal.has_range_gain == bool(unit.response)


def test_beams_go_where_the_unit_looks_and_packets_imply_the_models_directions():
    setting = lidar_setting(VLP16, unit="drawn")
    unit, plan = unit_of(setting, seed=7), build_lidar_plan(setting, seed=7, utc_epoch_ns=0)
    nominal = np.array([channel.elevation_deg for channel in VLP16.channels])
    np.testing.assert_allclose(plan.elevation_deg, nominal + unit.elevation_error_deg)
    np.testing.assert_allclose(np.degrees(plan.azimuth_offset_rad), unit.azimuth_error_deg, atol=1e-12)
    assert [channel.elevation_deg for channel in unit.spec.channels] == nominal.tolist()


def test_a_unit_of_another_model_is_refused_with_all_faults():
    learned = UnitSpec(model="VLP-32C", laser=(LaserUnitSpec(),) * 32)
    with pytest.raises(ValueError, match=r'unit\.model must be "VLP-16".*; unit\.laser must have 16 entries for a VLP-16, got 32'):
        dataclasses.replace(lidar_setting(VLP16, unit="unit.toml"), unit=learned)


def test_a_drawn_unit_of_a_vls128_has_stamps_that_wander_and_an_ideal_one_has_none():
    units = [unit_of(lidar_setting(VLS128, unit="drawn", stream=stream), seed=7) for stream in (0, 1)]
    assert [unit.stamp_wander.sd_ns for unit in units] == [6500.0, 6500.0]
    assert units[0].stamp_wander.stream != units[1].stamp_wander.stream
    assert unit_of(lidar_setting(VLS128), seed=7).stamp_wander.sd_ns == 0.0
    steady = dataclasses.replace(lidar_setting(VLS128, unit="unit.toml"), unit=UnitSpec(stamp_wander_us=0.0))
    assert unit_of(steady, seed=7).stamp_wander.sd_ns == 0.0
    assert drawn().stamp_wander.sd_ns == 0.0  # a VLP-16's stamps are exact


@compiled_only
def test_cold_units_are_spread_as_their_setting_says_and_an_ideal_one_is_warm():
    cold = WarmUpSpec(range_m=0.02, time_s=60.0)
    errors_m = [drawn(stream, warm_up=cold).warm_up.range_m for stream in range(300)]
    assert np.std(errors_m) == pytest.approx(0.02, rel=0.12)  # three standard errors of a standard deviation of 300
    assert abs(np.mean(errors_m)) < 3 * 0.02 / np.sqrt(300)
    assert drawn(4, warm_up=cold).warm_up == drawn(4, warm_up=cold).warm_up
    assert unit_of(lidar_setting(VLP16, warm_up=cold), seed=7).warm_up.range_m == 0.0
    assert drawn().warm_up.range_m == 0.0


@compiled_only
def test_the_stamps_of_a_packet_do_not_depend_on_where_the_stream_begins():
    rig = {
        "name": "seek",
        "scene": {"generator": "street"},
        "sensor": [{"name": "a", "profile": "vls128", "field_of_view_deg": [0, 30], "phase_deg": 0.0}],
    }
    whole, later = (list(hilsim.Emulator(rig).packets(start_s, 0.25)) for start_s in (0.0, 0.2))
    assert [packet.payload for packet in whole if packet.time_ns >= later[0].time_ns] == [packet.payload for packet in later]
    assert len(later) > 20
