"""The control interface of an Ouster: what requests answer and make of the sensor's state, without a socket or a clock."""

import json
from dataclasses import replace

import pytest

from hilsim.families.ouster.interface.answers import Conditions
from hilsim.families.ouster.interface.commands import command_outcome, line_of
from hilsim.families.ouster.interface.http import Request, outcome_of
from hilsim.families.ouster.interface.state import ControlState
from hilsim.families.ouster.protocol.metadata import GROUPS
from hilsim.families.ouster.protocol.metadata_reading import read_metadata
from tests.ouster_sensors import sensor

CLIENT = "10.0.0.7"
CONDITIONS = Conditions(
    address="10.0.0.2", mac="bc:0f:a7:00:00:01", uptime_ns=5_000_000_000, device_ns=7_500_000_000, utc_ns=1_700_000_000_000_000_000
)


class Unit:
    """A state, and requests to it."""

    def __init__(self, version="3.1.0", **changes):
        self.state = ControlState.of(sensor(version=version, **changes))

    def ask(self, method, path, document=None, body=None):
        path, _, query = path.partition("?")
        body = b"" if document is None and body is None else body if body is not None else json.dumps(document).encode()
        pairs = dict(pair.split("=", 1) for pair in query.split("&")) if query else {}
        outcome = outcome_of(self.state, Request(method=method, path=f"/api/v1/{path}", query=pairs, body=body, peer=CLIENT), CONDITIONS)
        self.state = outcome.state
        return outcome.answer

    def get(self, path):
        answer = self.ask("GET", path)
        assert answer.status == 200, answer
        return json.loads(json.dumps(answer.document))

    def post(self, query, document):
        return self.ask("POST", f"sensor/config{query}", document).status

    def line(self, line):
        outcome = command_outcome(self.state, line, CLIENT)
        self.state = outcome.state
        return line_of(line, outcome.answer)


def test_the_sequence_of_a_client_with_firmware_3_1_finds_its_address_and_changes_nothing():
    unit = Unit()
    before = unit.get("sensor/config?staging=false")
    assert unit.post("?reinit=False&persist=False", {"udp_dest": "@auto"}) == 204
    assert unit.get("sensor/config?staging=true")["udp_dest"] == CLIENT
    assert unit.post("?reinit=False&persist=False", {"udp_dest": before["udp_dest"]}) == 204
    assert unit.get("sensor/config") == unit.get("sensor/config?staging=true") == before
    assert unit.state == ControlState.of(sensor())


def test_a_destination_acts_at_once_without_reinit_and_other_keys_wait_for_it():
    unit = Unit()
    unit.post("?reinit=false&persist=false", {"udp_dest": "@auto", "udp_port_imu": 0, "lidar_mode": "512x10"})
    assert (unit.state.streams.address, unit.state.streams.lidar_port, unit.state.streams.imu_port) == (CLIENT, 7502, 0)
    assert (unit.get("sensor/config")["lidar_mode"], unit.get("sensor/config?staging=true")["lidar_mode"]) == ("1024x10", "512x10")
    assert (unit.state.status, unit.state.initialization_id) == ("RUNNING", 0xABCDE)
    assert unit.state.saved["udp_dest"] == "127.0.0.1"


def test_staging_alone_changes_no_active_setting():
    unit = Unit()
    unit.post("?staging=true&reinit=false&persist=false", {"udp_dest": CLIENT, "lidar_mode": "512x20"})
    assert unit.get("sensor/config") == ControlState.of(sensor()).active


def test_reinit_takes_what_is_staged_with_a_new_id_and_ends_with_metadata_of_the_new_mode():
    unit = Unit()
    unit.post("?staging=true&reinit=false&persist=false", {"lidar_mode": "2048x10", "azimuth_window": [90_000, 270_000]})
    assert unit.post("?staging=true&reinit=true&persist=false", {}) == 204
    assert unit.get("sensor/metadata/sensor_info")["status"] == "INITIALIZING"
    assert unit.ask("GET", "sensor/metadata/lidar_data_format").status == 503
    assert "lidar_data_format" not in unit.get("sensor/metadata")
    unit.state = unit.state.initialized()
    info, form = unit.get("sensor/metadata/sensor_info"), unit.get("sensor/metadata/lidar_data_format")
    assert (info["status"], info["initialization_id"]) == ("RUNNING", 0xABCDE + 1)
    assert (form["columns_per_frame"], form["column_window"], form["pixel_shift_by_row"][:4]) == (2048, [512, 1536], [24, 8, -8, -24])
    assert unit.state.saved["lidar_mode"] == "1024x10"


def test_a_plain_post_reinitialises_and_persists():
    unit = Unit()
    unit.post("", {"lidar_mode": "512x10"})
    assert (unit.state.status, unit.state.active["lidar_mode"], unit.state.saved["lidar_mode"]) == ("INITIALIZING", "512x10", "512x10")


def test_the_id_of_24_bits_begins_again_at_1():
    unit = Unit(initialization_id=(1 << 24) - 1)
    unit.post("", {})
    assert unit.state.initialization_id == 1


def test_all_faults_are_answered_and_nothing_is_changed():
    unit = Unit()
    before = unit.state
    answer = unit.ask("POST", "sensor/config", {"lidar_mode": "1x1", "udp_port_imu": -1, "udp_dest": CLIENT})
    assert answer.status == 400
    assert [fault.split()[0] for fault in answer.document["error"]["faults"]] == ["lidar_mode", "udp_port_imu"]
    assert answer.document["error"]["title"] == "400 Bad Request"
    assert unit.state is before


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"lidar_mode": NaN}'])
def test_a_body_that_is_no_object_of_json_is_refused(body):
    unit = Unit()
    before = unit.state
    assert unit.ask("POST", "sensor/config", body=body).status == 400
    assert unit.state is before


def test_settings_that_do_not_go_together_can_be_staged_and_not_become_active():
    unit = Unit()
    assert unit.post("?staging=true&reinit=false", {"phase_lock_enable": True}) == 204
    assert unit.post("?staging=true&reinit=true", {}) == 400
    assert unit.state.status == "RUNNING"
    assert unit.post("?staging=true&reinit=true", {"timestamp_mode": "TIME_FROM_PTP_1588"}) == 204


def test_a_switch_that_is_neither_true_nor_false_is_refused():
    answer = Unit().ask("POST", "sensor/config?reinit=perhaps", {})
    assert (answer.status, answer.document["error"]["description"]) == (400, "reinit must be true or false, got 'perhaps'")


def test_standby_keeps_the_interface_and_ends_the_stream():
    unit = Unit()
    unit.post("?reinit=true&persist=false", {"operating_mode": "STANDBY"})
    unit.state = unit.state.initialized()
    assert (unit.get("sensor/metadata/sensor_info")["status"], unit.state.is_sending) == ("STANDBY", False)
    assert unit.ask("GET", "sensor/metadata/lidar_data_format").document["error"]["description"] == (
        "status must be RUNNING for lidar_data_format, got STANDBY"
    )
    unit.post("?reinit=true&persist=false", {"operating_mode": "NORMAL"})
    assert unit.state.initialized().is_sending


def test_commands_of_older_firmware_answer_the_texts_that_clients_compare():
    unit = Unit("2.5.2")
    assert unit.get("sensor/cmd/get_config_param?args=active") == unit.state.active
    changed = json.dumps({**unit.state.staged, "lidar_mode": "512x20"})
    assert unit.get(f"sensor/cmd/set_config_param?args=. {changed}") == "set_config_param"
    assert unit.get("sensor/cmd/set_udp_dest_auto") == {}
    assert unit.get("sensor/cmd/get_config_param?args=staged")["udp_dest"] == CLIENT
    assert unit.get("sensor/cmd/reinitialize") == {}
    assert (unit.state.active["udp_dest"], unit.state.active["lidar_mode"]) == (CLIENT, "512x20")
    assert unit.get("sensor/cmd/save_config_params") == {}
    assert unit.state.saved == unit.state.active
    assert unit.ask("GET", "sensor/cmd/set_config_param?args=. {").status == 400
    assert unit.ask("GET", "sensor/cmd/format_disk").status == 404


def test_lines_set_and_read_the_same_state():
    unit = Unit("2.3.0")
    parts = ["sensor_info", "beam_intrinsics", "imu_intrinsics", "lidar_intrinsics", "lidar_data_format", "calibration_status"]
    document = {part: json.loads(unit.line(f"get_{part}")) for part in parts}
    document["config_params"] = json.loads(unit.line("get_config_param active"))
    assert set(document) == set(GROUPS)
    assert read_metadata(json.dumps(document)) == unit.state.metadata
    assert unit.line("set_config_param lidar_mode 512x10") == "set_config_param"
    assert unit.line("set_config_param azimuth_window [0, 180000]") == "set_config_param"
    assert unit.line("get_config_param staged lidar_mode") == '"512x10"'
    assert unit.line("set_udp_dest_auto") == "set_udp_dest_auto"
    assert unit.line("reinitialize") == "reinitialize"
    assert unit.line("write_config_txt") == "write_config_txt"
    assert (unit.state.saved["lidar_mode"], unit.state.saved["azimuth_window"], unit.state.saved["udp_dest"]) == ("512x10", [0, 180_000], CLIENT)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("", "error: command must be one of"),
        ("get_config_param", 'error: get_config_param must have "active" or "staged"'),
        ("get_config_param active no", "error: no must be one of"),
        ("set_config_param lidar_mode", "error: set_config_param must have a key and a value"),
        ("set_config_param lidar_mode 1x1", "error: lidar_mode must be one of"),
        ("set_config_param . {", "error: settings must be JSON"),
        ("\x00\xff", "error: command must be one of"),
    ],
)
def test_a_wrong_line_is_answered_by_one_line_that_names_the_fault(line, fault):
    unit = Unit()
    before = unit.state
    answer = unit.line(line)
    assert answer.startswith(fault)
    assert "\n" not in answer
    assert unit.state is before


def test_user_data_stay_as_their_policy_says_when_settings_are_deleted():
    unit = Unit()
    assert unit.get("user/data") == ""
    assert unit.ask("PUT", "user/data", 'a "text"').status == 204
    assert unit.get("user/data?include_metadata=true") == {"policy": "clear_on_config_delete", "value": 'a "text"'}
    unit.ask("DELETE", "sensor/config")
    assert unit.get("user/data") == ""
    unit.ask("PUT", "user/data?policy=keep_on_config_delete", "kept")
    unit.ask("DELETE", "sensor/config")
    assert unit.get("user/data?include_metadata=true") == {"policy": "keep_on_config_delete", "value": "kept"}
    unit.ask("DELETE", "user/data")
    assert unit.get("user/data") == ""
    assert unit.ask("PUT", "user/data", {"no": "text"}).status == 400


@pytest.mark.parametrize("version", ["2.4.0", "3.0.1"])
def test_firmware_without_user_data_answers_404(version):
    assert Unit(version).ask("GET", "user/data").status == 404


def test_deleted_settings_are_those_of_the_factory_which_send_nowhere():
    unit = Unit("3.2.0", mode="512x10", profile="RNG15_RFL8_NIR8")
    assert unit.ask("DELETE", "sensor/config").status == 204
    unit.state = unit.state.initialized()
    assert (unit.state.active["lidar_mode"], unit.state.active["udp_profile_lidar"], unit.state.streams.address) == (
        "1024x10",
        "RNG19_RFL8_SIG16_NIR16",
        "",
    )
    assert unit.state.saved == unit.state.active


def test_a_restart_takes_the_saved_settings():
    unit = Unit()
    unit.post("?reinit=true&persist=false", {"lidar_mode": "512x10"})
    assert unit.ask("POST", "system/restart", body=b"").status == 204
    assert (unit.state.active["lidar_mode"], unit.state.status, unit.state.initialization_id) == ("1024x10", "INITIALIZING", 0xABCDE + 2)


def test_network_reports_null_for_what_is_unset_and_the_address_that_was_given():
    unit = Unit()
    network = unit.get("system/network")
    assert (network["ipv4"], network["hostname"], network["ethaddr"]) == (
        {"addr": "10.0.0.2/24", "link_local": None, "override": None},
        "os-122247000785",
        "bc:0f:a7:00:00:01",
    )
    assert unit.ask("PUT", "system/network/ipv4/override", "10.1.0.2/24").status == 200
    assert unit.get("system/network")["ipv4"]["override"] == "10.1.0.2/24"
    assert unit.ask("PUT", "system/network/ipv4/override", {"addr": "10.1.0.3/16", "gateway": "10.1.0.1"}).status == 200
    assert unit.ask("PUT", "system/network/ipv4/override", "10.1.0").status == 400
    unit.ask("DELETE", "system/network/ipv4/override")
    assert unit.get("system/network")["ipv4"]["override"] is None


def test_other_documents_have_the_names_that_are_known():
    unit = Unit()
    assert unit.get("system/firmware") == {"fw": "ousteros-image-prod-bootes-v3.1.0+20240101000000"}
    assert unit.get("sensor/telemetry")["phase_lock_status"] == "DISABLED"
    assert unit.get("sensor/telemetry")["timestamp_ns"] == 7_500_000_000
    assert unit.get("sensor/alerts")["active"] == []
    assert unit.get("time/system") == {"monotonic": 5.0, "realtime": 1.7e9}
    assert unit.get("time")["sensor"] == unit.get("time/sensor")
    assert unit.get("time/sensor")["timestamp"]["mode"] == "TIME_FROM_INTERNAL_OSC"
    assert unit.ask("PUT", "time/ptp/profile", "gptp").status == 200
    assert unit.get("time/ptp/profile") == unit.get("time/ptp")["profile"] == "gptp"
    assert unit.ask("PUT", "time/ptp/profile", "other").status == 400


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "zone_monitor/active/zip", 404), ("PUT", "sensor/config", 405), ("GET", "", 404)])
def test_other_paths_and_methods_are_refused_as_clients_expect(method, path, status):
    unit = Unit("3.2.0")
    answer = unit.ask(method, path)
    assert answer.status == status
    assert answer.document["error"]["faults"]


def test_settings_are_echoed_with_the_types_that_they_were_set_with():
    unit = Unit()
    for value in (0.25, 2, 1, 1.0):
        unit.post("?reinit=true&persist=false", {"signal_multiplier": value, "azimuth_window": [300_000, 90_000]})
        assert json.dumps(unit.get("sensor/config")["signal_multiplier"]) == json.dumps(value)
        assert json.dumps(unit.get("sensor/metadata")["config_params"]["signal_multiplier"]) == json.dumps(value)


def test_imu_data_format_comes_with_its_profile():
    unit = Unit("3.2.0")
    assert unit.ask("GET", "sensor/metadata/imu_data_format").status == 404
    unit.post("", {"udp_profile_imu": "ACCEL32_GYRO32_NMEA"})
    unit.state = unit.state.initialized()
    assert unit.get("sensor/metadata/imu_data_format") == {"imu_measurements_per_packet": 8, "imu_packets_per_frame": 8}


def test_metadata_of_a_state_are_those_of_its_unit():
    unit = sensor(version="3.2.0", profile="RNG15_RFL8_NIR8_DUAL", mode="512x20")
    assert ControlState.of(unit).metadata == replace(unit, settings=ControlState.of(unit).metadata.settings)
