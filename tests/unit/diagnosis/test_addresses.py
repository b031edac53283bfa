"""The doctor binds what a rig binds, and reports which address or port is missing or taken, with the command that mends it."""

import os
import socket

import pytest

from hilsim.cli.diagnosis.addresses import examine_addresses
from hilsim.config.rig import load_rig
from tests.support import ROOM, write_rig

NETWORK = '[sensor.network]\nsource = "{source}"\nsource_ports = "{ports}"\n[sensor.web]\nport = {web}\n[metrics]\nport = 0\n'


def findings(tmp_path, source="127.0.1.211", ports="any", web=0, more=""):
    return examine_addresses(load_rig(write_rig(tmp_path, ROOM + NETWORK.format(source=source, ports=ports, web=web) + more)))


def test_a_rig_whose_addresses_and_ports_are_free_is_one_good_finding(tmp_path):
    (found,) = findings(tmp_path)
    assert (found.verdict, found.fact) == ("good", "all 2 address(es) of the rig are this host's, and its 3 ports are free")


def test_an_address_of_another_host_comes_with_the_command_that_adds_it_once(tmp_path):
    (found,) = findings(tmp_path, source="192.0.2.201", ports="sensor")
    assert (found.subject, found.verdict, found.fact) == ("address of lidar", "bad", "192.0.2.201 is not an address of this host")
    assert found.advice.startswith("sudo ip address add 192.0.2.201/24 dev INTERFACE")


def test_a_taken_source_port_is_reported_with_the_setting_that_avoids_it(tmp_path):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.1.212", 8308))
        (found,) = findings(tmp_path, source="127.0.1.212", ports="sensor")
    assert (found.verdict, found.fact) == ("bad", "127.0.1.212, UDP port 8308 is in use by another program")
    assert found.advice.split("\n") == [
        "ss -ulnp 'sport = :8308'    shows the program",
        "--set sensor.lidar.network.source_ports=any    takes free ports",
    ]


def test_a_port_that_another_program_shares_is_fair(tmp_path):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        receiver.bind(("127.0.1.213", 2368))
        (found,) = findings(tmp_path, source="127.0.1.213", ports="sensor")
    assert (found.verdict, found.fact) == ("fair", "127.0.1.213, UDP port 2368 is shared with another program, a receiver or a second daemon")


def test_taken_ports_of_a_web_page_and_of_metrics_are_reported_together(tmp_path):
    with socket.create_server(("127.0.1.214", 0)) as page, socket.create_server(("127.0.0.1", 0)) as other:
        ports = page.getsockname()[1], other.getsockname()[1]
        text = ROOM + NETWORK.format(source="127.0.1.214", ports="any", web=ports[0]).replace("port = 0", f"port = {ports[1]}")
        found = examine_addresses(load_rig(write_rig(tmp_path, text)))
    assert [(each.subject, each.verdict) for each in found] == [("port of lidar", "bad"), ("port of metrics", "bad")]
    assert [each.advice.split("\n")[1].split()[1] for each in found] == ["sensor.lidar.web.port=0", "metrics.port=0"]


def test_a_port_below_1024_comes_with_the_command_that_permits_it(tmp_path, monkeypatch):
    def refused(_self, _address):
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr(socket.socket, "bind", refused)
    found = [each for each in findings(tmp_path, web=80) if "port 80 " in each.fact]
    assert [each.advice for each in found] == ["sudo sysctl net.ipv4.ip_unprivileged_port_start=80"]


def test_an_interface_that_does_not_exist_is_reported_with_those_that_do(tmp_path):
    more = 'mode = "ethernet"\ninterface = "lidar99"\ndestination_mac = "02:00:00:00:00:01"\n'
    text = ROOM + f"[sensor.network]\n{more}[metrics]\nenabled = false\n"
    (found,) = examine_addresses(load_rig(write_rig(tmp_path, text)))
    assert (found.subject, found.verdict) == ("interface of lidar", "bad")
    assert "no interface lidar99, it has" in found.fact
    assert "lo" in found.fact


@pytest.mark.parametrize("number", [41])
def test_the_command_port_of_a_rover_is_examined(tmp_path, number):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 8000 + number))
        text = f'name = "yard"\n[scene]\ngenerator = "street"\n[[rover]]\nnumber = {number}\nfile = "a.scans"\n[metrics]\nenabled = false\n'
        (found,) = examine_addresses(load_rig(write_rig(tmp_path, text)))
    assert (found.subject, found.verdict) == (f"port of rover-{number}", "bad")
