"""Settings of an Ouster: every key, its values, the firmware that has it, and the rules between keys."""

import json

import pytest

from hilsim.families.ouster.interface.settings import (
    SETTINGS,
    column_window,
    factory_settings,
    keys_of,
    require_compatible,
    staged_settings,
)
from hilsim.families.ouster.protocol.firmware import Firmware
from hilsim.families.ouster.protocol.metadata import metadata_document
from tests.ouster_sensors import sensor

VERSIONS = [(2, 3), (2, 5), (3, 0), (3, 1), (3, 2)]
WRONG = [None, "no", -1, 1e9, [], {}, [1, 2, 3], "", True, 0.3]


def staged(given, firmware=(3, 2), settings=None):
    return staged_settings(given, settings or {}, Firmware(*firmware), "10.0.0.7")


@pytest.mark.parametrize("version", VERSIONS)
def test_factory_settings_are_every_key_of_a_firmware_with_values_that_are_accepted(version):
    settings = factory_settings(Firmware(*version))
    assert sorted(settings) == sorted(keys_of(Firmware(*version)))
    assert staged(settings, version) == settings
    require_compatible(settings, "OS-1-128")


@pytest.mark.parametrize("version", ["2.3.0", "2.5.2", "3.0.1", "3.1.0", "3.2.0"])
def test_settings_of_metadata_are_accepted_as_they_are(version):
    metadata = sensor(version=version)
    settings = metadata_document(metadata)["config_params"]
    assert staged(settings, metadata.firmware) == settings


@pytest.mark.parametrize("key", sorted(SETTINGS))
def test_each_key_refuses_what_is_no_value_of_it_and_names_key_rule_and_value(key):
    refused = [value for value in WRONG if not SETTINGS[key].accepts(value)]
    assert len(refused) >= 6
    for value in refused:
        with pytest.raises(ValueError, match=f"^{key} must be ") as fault:
            staged({key: value})
        assert str(fault.value) == f"{key} must be {SETTINGS[key].rule}, got {json.dumps(value)}"


def test_all_faults_of_a_request_are_named_and_nothing_is_taken():
    with pytest.raises(
        ValueError, match=r"^lidar_mode must be one of 512x10.*, got \"1x1\"; udp_port_lidar must be .* got 70000; Lidar_Mode must be a key .*$"
    ):
        staged({"lidar_mode": "1x1", "udp_port_lidar": 70_000, "Lidar_Mode": "512x10", "udp_dest": "10.0.0.1"})


def test_a_firmware_refuses_keys_and_profiles_that_it_does_not_have():
    with pytest.raises(ValueError, match=r"^return_order must be a key that firmware 2\.5\.0 has"):
        staged({"return_order": "STRONGEST_TO_WEAKEST"}, (2, 5))
    with pytest.raises(ValueError, match=r"got ACCEL32_GYRO32_NMEA, which begins with 3\.2\.0"):
        staged({"udp_profile_imu": "ACCEL32_GYRO32_NMEA"}, (3, 1))


def test_auto_is_the_address_of_the_client_and_other_values_keep_their_types():
    given = {"udp_dest": "@auto", "signal_multiplier": 1, "phase_lock_enable": False}
    taken = staged(given, settings={"signal_multiplier": 2, "lidar_mode": "512x10"})
    assert json.dumps(taken, sort_keys=True) == json.dumps(
        {"lidar_mode": "512x10", "udp_dest": "10.0.0.7", "signal_multiplier": 1, "phase_lock_enable": False}, sort_keys=True
    )


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"phase_lock_enable": True}, "timestamp_mode must be TIME_FROM_PTP_1588 or TIME_FROM_SYNC_PULSE_IN beside phase_lock_enable"),
        ({"udp_profile_lidar": "LEGACY", "udp_profile_imu": "ACCEL32_GYRO32_NMEA"}, "udp_profile_imu must be LEGACY beside"),
        ({"udp_profile_lidar": "LEGACY", "header_type": "FUSA"}, "header_type must be STANDARD beside"),
        ({"lidar_mode": "4096x5"}, "lidar_mode must not be 4096x5 for OS-0-128"),
        ({"signal_multiplier": 3}, r"at most 120000 wide beside signal_multiplier 3, got \[0, 360000\], which is 360000 wide"),
        ({"signal_multiplier": 3, "azimuth_window": [300_000, 60_001]}, "at most 120000 wide .* which is 120001 wide"),
        ({"signal_multiplier": 2.0, "azimuth_window": [0, 270_000]}, "at most 180000 wide beside signal_multiplier 2, .* 270000 wide"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(changes, fault):
    with pytest.raises(ValueError, match=fault):
        require_compatible(factory_settings(Firmware(3, 2)) | changes, "OS-0-128")


@pytest.mark.parametrize(
    "changes",
    [
        {"phase_lock_enable": True, "timestamp_mode": "TIME_FROM_PTP_1588"},
        {"signal_multiplier": 3, "azimuth_window": [300_000, 60_000]},
        {"signal_multiplier": 2, "azimuth_window": [90_000, 270_000]},
        {"signal_multiplier": 0.25},
    ],
)
def test_settings_that_go_together_may_become_active(changes):
    require_compatible(factory_settings(Firmware(3, 2)) | changes, "OS-0-128")


@pytest.mark.parametrize(
    ("window", "columns", "expected"),
    [
        ((180_000, 360_000), 512, (1, 256)),  # captures of an OS0-128 with firmware 2.3
        ((300_000, 100_000), 512, (370, 85)),
        ((0, 360_000), 1024, (0, 1023)),
        ((0, 180_000), 1024, (512, 0)),
        ((90_000, 270_000), 2048, (512, 1536)),
    ],
)
def test_a_window_of_azimuth_is_the_columns_that_captures_have(window, columns, expected):
    assert column_window(window, columns) == expected
