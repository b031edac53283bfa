"""Values of keys and the table ``[sensor.livox]`` say the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.families.livox.daemon.packets import setting_of, values_of
from hilsim.families.livox.interface.keys import HAP_PORTS, KEYS, MID360_PORTS, fault_of
from hilsim.families.livox.protocol.commands import ReturnCode
from hilsim.families.livox.setting import LivoxSetting

WINDOW = st.tuples(st.integers(0, 360), st.integers(0, 360), st.integers(-10, 20), st.integers(20, 60))
SETTINGS = st.builds(
    LivoxSetting,
    pcl_data_type=st.sampled_from([1, 2, 3]),
    work_mode=st.sampled_from(["sampling", "ready", "idle"]),
    imu=st.booleans(),
    fov_deg=st.tuples(WINDOW, WINDOW),
    fov_enable=st.sampled_from([0, 1, 2, 3]),
    install_rotation_deg=st.tuples(*[st.floats(-180, 180, width=32)] * 3),
    install_position_mm=st.tuples(*[st.integers(-(2**31), 2**31 - 1)] * 3),
    detect_mode=st.sampled_from(["normal", "sensitive"]),
)


@given(SETTINGS)
def test_a_setting_comes_back_from_its_values_and_hosts_may_write_them(setting):
    values = values_of(setting, has_blind_spot=False)
    assert setting_of(values, LivoxSetting(serial=setting.serial)) == setting
    assert {fault_of(key, value, KEYS, MID360_PORTS) for key, value in values.items()} == {ReturnCode.OK}


@pytest.mark.parametrize("blind_cm", [50, 123, 200])
def test_a_hap_has_a_blind_spot_and_no_windows(blind_cm):
    values = values_of(LivoxSetting(blind_spot_cm=blind_cm), has_blind_spot=True)
    assert (0x0013 in values, 0x0015 in values) == (True, False)
    assert setting_of(values, LivoxSetting()).blind_spot_cm == blind_cm
    assert {fault_of(key, value, KEYS, HAP_PORTS) for key, value in values.items()} == {ReturnCode.OK}
