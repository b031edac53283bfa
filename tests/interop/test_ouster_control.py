"""ouster-sdk and ouster-cli, unchanged, against the control interface of an Ouster."""

import json
import subprocess
from pathlib import Path

import pytest

from hilsim.families.ouster.daemon.discovery import announced
from hilsim.families.ouster.interface.settings import factory_settings
from hilsim.families.ouster.protocol.firmware import Firmware
from tests.interop.ouster_judge import PYTHON, fault
from tests.ouster_units import run_with_unit, unit_in_thread
from tests.system.namespaces import Namespace

CLIENT = Path(__file__).parent / "ouster_client.py"
OTHERS = {
    "accel_fsr": "EXTENDED",
    "azimuth_window": [90_000, 270_000],
    "bloom_reduction_optimization": "MINIMIZE_FALSE_POSITIVES",
    "gyro_fsr": "EXTENDED",
    "imu_packets_per_frame": 4,
    "lidar_frame_azimuth_offset": 90_000,
    "lidar_mode": "512x20",
    "min_range_threshold_cm": 30,
    "multipurpose_io_mode": "INPUT_NMEA_UART",
    "nmea_baud_rate": "BAUD_115200",
    "nmea_ignore_valid_char": 1,
    "nmea_in_polarity": "ACTIVE_LOW",
    "nmea_leap_seconds": 37,
    "phase_lock_enable": True,
    "phase_lock_offset": 180_000,
    "return_order": "FARTHEST_TO_NEAREST",
    "signal_multiplier": 0.5,
    "sync_pulse_in_polarity": "ACTIVE_LOW",
    "sync_pulse_out_angle": 180,
    "sync_pulse_out_frequency": 10,
    "sync_pulse_out_polarity": "ACTIVE_LOW",
    "sync_pulse_out_pulse_width": 20,
    "timestamp_mode": "TIME_FROM_SYNC_PULSE_IN",
    "udp_dest": "239.1.2.3",
    "udp_multicast_ttl": 3,
    "udp_port_imu": 8503,
    "udp_port_lidar": 8502,
    "udp_profile_lidar": "RNG15_RFL8_NIR8",
}
NOT_ASKED = {"columns_per_packet", "header_type", "operating_mode", "udp_dest_zm", "udp_multicast_ttl_zm", "udp_port_zm", "udp_profile_imu"}
"""One value only, or set in other tests, or of the zone monitor."""


@pytest.fixture(scope="module", autouse=True)
def sdk():
    if fault() is not None:
        pytest.skip(f"the vendor's ouster-sdk does not load here: {fault()}")


def ask(unit, *steps):
    """Results of the SDK's steps; the unit's port is its proxy, as an ordinary user cannot open port 80."""
    environment = {"PATH": "/usr/bin:/bin", "http_proxy": unit.http}
    run = subprocess.run(
        [PYTHON, CLIENT, unit.address], check=False, input=json.dumps(steps), capture_output=True, text=True, env=environment, timeout=60
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def results(unit, *steps):
    found = ask(unit, *steps)
    assert [each for each in found if "error" in each] == []
    return [each["result"] for each in found]


@pytest.mark.parametrize("version", ["2.5.2", "3.1.0", "3.2.0"])
def test_every_key_is_set_and_read_back_and_set_again_without_a_reinitialisation(version):
    firmware = Firmware(*map(int, version.split(".")))
    keys = sorted(set(factory_settings(firmware)) - NOT_ASKED)
    given = {key: OTHERS[key] for key in keys}
    with unit_in_thread(version=version) as unit:
        before = unit.state.initialization_id
        steps = ["get_config", True], ["set_config", given, {"persist": True}], ["get_config", True], ["set_config", given, {}], ["sensor_info"]
        first, _, second, _, info = results(unit, *steps)
        assert [key for key in keys if first[key] == second[key]] == []
        assert json.dumps({key: second[key] for key in keys}) == json.dumps(given)
        assert info["initialization_id"] == before + 1
        assert unit.state.saved == unit.state.active


def test_metadata_follow_the_settings_and_are_accepted():
    with unit_in_thread(version="3.2.0", boot_s=0.01) as unit:
        steps = (
            ["metadata"],
            ["set_config", {"lidar_mode": "2048x10", "udp_profile_imu": "ACCEL32_GYRO32_NMEA"}, {}],
            ["metadata_when_running"],
        )
        first, _, second = results(unit, *steps)
        assert (first["columns"], first["rows"], first["init_id"], first["issues"]) == (1024, 32, 0xABCDE, "[]")
        assert (second["columns"], second["init_id"], second["issues"]) == (2048, 0xABCDE + 1, "[]")


def test_user_data_addresses_and_faults_reach_the_client():
    with unit_in_thread() as unit:
        text = 'a "text" of\n two lines'
        (data, network, after, dest) = [
            each
            for each in results(
                unit,
                ["put_user_data", text, True],
                ["get_user_data"],
                ["set_static_ip", "10.1.0.2/24"],
                ["network"],
                ["delete_static_ip"],
                ["delete_user_data"],
                ["get_user_data"],
                ["auto_detected_udp_dest"],
            )
            if each is not None
        ]
        assert (data, network["ipv4"]["override"], after, dest) == (text, "10.1.0.2/24", "", "127.0.0.1")
        (refused,) = ask(unit, ["set_config", {"lidar_mode": "9x9"}, {}])
        assert "lidar_mode must be one of 512x10" in refused["error"]


def test_standby_is_set_and_left():
    with unit_in_thread(boot_s=0.01) as unit:
        _, info, _ = results(
            unit, ["set_config", {"operating_mode": "STANDBY"}, {}], ["sensor_info_when_ready"], ["set_config", {"operating_mode": "NORMAL"}, {}]
        )
        assert info["status"] == "STANDBY"
        assert [state.status for state in unit.packets.states][:3] == ["INITIALIZING", "STANDBY", "INITIALIZING"]


def test_discover_finds_the_unit_and_reads_it():
    namespace = Namespace()
    try:
        namespace.ip("link", "set", "lo", "up", "multicast", "on")
        namespace.ip("route", "add", "224.0.0.0/4", "dev", "lo")
        found = namespace.run(run_with_unit, announced, discover)
    finally:
        namespace.close()
    (unit,) = found
    assert unit["warnings"] == []
    assert (unit["hostname"], unit["addresses"]) == ("os-122247000785.local.", ["127.0.0.9"])
    assert unit["sensor_info"]["prod_line"] == "OS-1-32"
    assert (unit["active_config"]["udp_port_lidar"], unit["network"]["ipv4"]["override"]) == (7502, None)


def discover():
    """Sensors that ouster-cli finds at the namespace's loopback."""
    command = [PYTHON.parent / "ouster-cli", "discover", "-t", "1", "--interface", "127.0.0.1", "-o", "json"]
    run = subprocess.run(command, check=False, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}, timeout=60)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)
