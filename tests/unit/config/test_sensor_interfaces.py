"""Rules of a rig for the interfaces that its sensors have: each family has keys of its own."""

import sys

import pytest

from hilsim.config.rig import load_rig
from hilsim.daemon.streaming.flow_specs import largest_data_size, ring_slots
from hilsim.errors import ConfigError
from hilsim.families.ouster.daemon.discovery import require_zeroconf
from tests.support import write_rig


def rig(directory, profile, web="", network="", ouster=""):
    parts = ('name = "bench"\n[scene]\ngenerator = "street"\n[[sensor]]\nname = "a"\n', f'profile = "{profile}"\n', network, ouster)
    return load_rig(write_rig(directory, "".join(parts) + (f"[sensor.web]\n{web}\n" if web else "")))


@pytest.mark.parametrize(
    ("profile", "web", "fault"),
    [
        ("hr80w-like", "port = 0", "web must not be given for a HR80W-like: it has no interface"),
        ("os1-32", 'serial = "1"', r"web\.serial must not be given for an Ouster: ouster\.serial says it"),
        ("vlp16", "discovery = true", r"web\.discovery and web\.commands_port must not be given for a VLP-16: it has neither"),
        ("vlp16", "commands_port = 7000", r"web\.discovery and web\.commands_port must not be given for a VLP-16"),
        ("os1-32", "commands_port = 70000", "commands_port must be 0 to 65535, got 70000"),
        ("vlp16", 'destinations = ["10.0.0.1/8"]', 'destinations must be IPv4 networks like "192.168.1.0/24", got "10.0.0.1/8"'),
        ("xt32", "discovery = true", r"web\.discovery must not be given for a XT32: it does not announce itself"),
        ("xt32", "port = 9347", "commands_port must not be that of port, got 9347 for both"),
        ("xt32", f'serial = "{19 * "1"}"', "web.serial must be at most 18 characters for a XT32"),
        ("os1-32", "port = 7501", "commands_port must not be that of port, got 7501 for both"),
    ],
)
def test_keys_of_another_family_are_refused(profile, web, fault, tmp_path):
    with pytest.raises(ConfigError, match=fault):
        rig(tmp_path, profile, web)


@pytest.mark.parametrize(("profile", "title"), [("os1-32", "an Ouster"), ("xt32", "a XT32")])
def test_a_sensor_that_sends_whole_frames_has_no_control_interface(profile, title, tmp_path):
    network = '[sensor.network]\nmode = "ethernet"\ninterface = "lo"\ndestination_mac = "02:00:00:00:00:01"\n'
    with pytest.raises(ConfigError, match=rf'network\.mode must be "udp" for {title} with web'):
        rig(tmp_path, profile, "port = 0", network)


def test_rings_have_room_for_what_clients_may_set_and_for_no_more_without_them(tmp_path):
    slow = '[sensor.ouster]\nlidar_mode = "512x10"\nudp_profile_lidar = "RNG15_RFL8_NIR8"\n'
    with_web, without = rig(tmp_path, "os1-32", "port = 0", ouster=slow), rig(tmp_path, "os1-32", ouster=slow)
    assert (largest_data_size(with_web, 0), largest_data_size(without, 0)) == (8448, 2304)  # dual packets of 32 beams; low data rate
    assert ring_slots(with_web) > ring_slots(without)


def test_discovery_without_its_package_is_one_sentence_that_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "zeroconf", None)
    with pytest.raises(ConfigError, match=r"^sensor\.web\.discovery requires the package zeroconf \(pip install 'hilsim-lidar\[ouster\]'\)$"):
        require_zeroconf()
