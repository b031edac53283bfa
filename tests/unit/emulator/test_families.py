"""Families: what depends on whose sensor a lidar is, asked of one object."""

from typing import NamedTuple

import numpy as np
import pytest

from hilsim.config.profiles import profiles_directory, read_profile
from hilsim.config.sensor_profiles import parse_profile
from hilsim.emulator.families.own import family_kernels
from hilsim.emulator.families.registry import family_of
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.planning import build_lidar_plan
from hilsim.registry import OWN
from hilsim.sensor.setup import SensorSetup
from hilsim.sensor.specs import ClockSetting, LidarSpec
from tests.lidars import lidar_setting

SHIPPED = sorted((profiles_directory() / "sensors").glob("*.toml"))


def shipped(path):
    return parse_profile(read_profile(path), str(path))


@pytest.fixture(params=OWN)
def setting(request):
    """A shipped lidar of each family."""
    spec = next(spec for path in SHIPPED if (spec := shipped(path)).family == request.param)
    return lidar_setting(spec)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_profile_is_of_the_family_it_names(path):
    spec = shipped(path)
    assert family_of(spec).name == spec.family


def test_a_profile_of_no_family_is_refused():
    with pytest.raises(TypeError, match="spec must be of one of the families velodyne, cepton, ouster, livox, hesai, got LidarSpec"):
        family_of(object.__new__(LidarSpec))


def test_plans_of_a_familys_models_are_of_one_type():
    """Kernels are compiled once for all of them, and contain nothing of another family."""

    def types(plan):
        return [(part.dtype, part.ndim) if isinstance(part, np.ndarray) else type(part) for part in plan]

    found = {(spec.family, tuple(types(build_lidar_plan(lidar_setting(spec), seed=1, utc_epoch_ns=0)))) for spec in map(shipped, SHIPPED)}
    assert sorted(family for family, _ in found) == sorted(OWN)


def test_a_family_fills_in_what_the_plan_of_any_lidar_leaves_open(setting):
    plan = build_lidar_plan(setting, seed=1, utc_epoch_ns=0)
    assert isinstance(plan, LidarPlan)
    assert plan.own is not None
    assert plan.data_size > 0


def test_a_scan_takes_as_long_as_a_turn_or_a_sweep_of_the_image():
    by_model = {spec.model: spec for spec in map(shipped, SHIPPED)}
    assert family_of(by_model["VLP-16"]).scan_ns == 100_000_000
    assert family_of(by_model["VLP-16"], SensorSetup(rotation_rate_rpm=1200)).scan_ns == 50_000_000
    assert {family_of(spec).scan_ns for spec in by_model.values() if spec.family == "cepton"} == {
        round(spec.scan_s * 1e9) for spec in by_model.values() if spec.family == "cepton"
    }


def test_only_a_head_has_a_rate(setting):
    assert setting.family.rotation_rate_hz == (None if setting.spec.family in {"cepton", "livox"} else 10.0)


@pytest.mark.parametrize(("start_us", "rig_s", "offset_s"), [(0.0, 0.0, 0.0), (0.0, 5400.0, 0.0), (1000.0, 1.0, -0.001)])
def test_a_free_velodynes_clock_is_as_far_ahead_as_its_stamps_say(start_us, rig_s, offset_s):
    setting = lidar_setting(shipped(profiles_directory() / "sensors" / "vlp16.toml"), start_delay_us=start_us)
    plan = build_lidar_plan(setting, seed=1, utc_epoch_ns=0)
    assert setting.family.clock_offset_s(plan.clock, round(rig_s * 1e9), 0) == pytest.approx(offset_s, abs=2e-6)


def test_a_cepton_is_ahead_by_the_time_it_was_on():
    cepton = next(spec for spec in map(shipped, SHIPPED) if spec.family == "cepton")
    for stamps, offset_s in (("power_up", 7.5), ("utc", 0.0)):
        setting = lidar_setting(cepton, clock=ClockSetting(offset_s=7.5, stamps=stamps))
        assert setting.family.clock_offset_s(build_lidar_plan(setting, seed=1, utc_epoch_ns=0).clock, 10**9, 0) == offset_s


def test_a_field_with_the_name_of_a_kernel_is_refused():
    class Clashing(NamedTuple):
        encode: int

    with pytest.raises(TypeError, match="Clashing must not have a field of a kernel's name, got encode"):
        family_kernels(encode=lambda: None)(Clashing)
