"""A key under its former name is refused, and the message names the new one."""

import pytest

from hilsim.config.parse import parse_table
from hilsim.errors import ConfigError
from hilsim.parts.vehicle.physics.sensor_specs import BarometerSpec, GpsSpec, ImuSpec, MagnetometerSpec
from hilsim.sensor.optics.false_alarms import FalseAlarmSpec
from hilsim.sensor.optics.window import WindowSpec
from hilsim.sensor.unit.encoder import RateJitterSpec


@pytest.mark.parametrize(
    ("kind", "former", "now"),
    [
        (FalseAlarmSpec, "rate_per_shot", "rate_per_firing"),
        (WindowSpec, "dirt_transmission", "soiling_transmission"),
        (RateJitterSpec, "wander_ratio", "drift_ratio"),
        (RateJitterSpec, "wander_period_s", "drift_period_s"),
        (ImuSpec, "accelerometer_wander_mps2", "accelerometer_drift_mps2"),
        (ImuSpec, "gyroscope_wander_s", "gyroscope_drift_s"),
        (MagnetometerSpec, "wander_gauss", "drift_gauss"),
        (BarometerSpec, "wander_pa", "drift_pa"),
        (GpsSpec, "wander_horizontal_m", "drift_horizontal_m"),
        (GpsSpec, "wander_s", "drift_s"),
    ],
)
def test_a_former_key_is_answered_with_the_new_one(kind, former, now):
    with pytest.raises(ConfigError, match=rf"{former}: unknown key \(it is {now} now\)$"):
        parse_table(kind, {former: 0.5}, "rig")
    assert now in kind.__dataclass_fields__
