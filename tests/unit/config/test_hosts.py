"""Names of hosts replace addresses, and become addresses once."""

import pytest

from hilsim.config.changes import Changes
from hilsim.config.hosts import resolved
from hilsim.config.rig import load_rig
from hilsim.errors import ConfigError
from hilsim.transmit.hosts import address_towards, is_host
from tests.support import ROOM, write_rig

NAMED = ROOM + '\n[sensor.network]\ndestination = "localhost"\n'


def test_a_name_becomes_its_address_and_the_rig_says_which(tmp_path):
    rig = resolved(load_rig(write_rig(tmp_path, NAMED)))
    assert rig.spec.sensor[0].network.destination == "127.0.0.1"
    assert rig.hosts == (("localhost", "127.0.0.1"),)


def test_a_replay_may_go_to_a_name_or_where_it_went(tmp_path):
    text = "\n".join(f'[[replay]]\nname = "{name}"\nfile = "a.pcap"\ndestination = "{name}"' for name in ("localhost", "recorded"))
    rig = resolved(load_rig(write_rig(tmp_path, f'name = "r"\n{text}\n')))
    assert [replay.destination for replay in rig.spec.part("replay")] == ["127.0.0.1", "recorded"]


def test_a_rig_with_numeric_addresses_is_unchanged(tmp_path):
    rig = load_rig(write_rig(tmp_path))
    assert resolved(rig) is rig


def test_an_unknown_name_is_reported_with_key_and_option(tmp_path):
    changes = Changes(to="nowhere.invalid:2369")  # RFC 6761: no name below .invalid is anybody's
    rig = load_rig(write_rig(tmp_path), changes)
    with pytest.raises(
        ConfigError,
        match=r'sensor\[0\]\.network\.destination must be .* the name of a host that has one, got "nowhere\.invalid": .* \(--to nowhere\.invalid:2369\)',
    ):
        resolved(rig, changes)


@pytest.mark.parametrize("text", ["10.0.0.1", "localhost", "bench-3", "bench3.lab.example", "bench3.lab.example.", "my_host"])
def test_addresses_and_names_are_hosts(text):
    assert is_host(text)


@pytest.mark.parametrize("text", ["", "10.0.0.256", "1.2.3", "a..b", "-a", "a-", "a b", "a" * 64, "a." * 130, "ünï", "::1", "a/b", "host:1"])
def test_malformed_addresses_and_other_texts_are_none(text):
    assert not is_host(text)


def test_to_another_host_packets_leave_from_this_hosts_address_and_not_from_a_loopback_one(tmp_path, monkeypatch):
    monkeypatch.setattr("hilsim.config.hosts.address_towards", {"192.0.2.7": "192.0.2.1"}.get)
    changes = Changes(to="192.0.2.7")
    rig = resolved(load_rig(write_rig(tmp_path), changes), changes)
    assert rig.spec.sensor[0].network.source == "192.0.2.1"
    assert rig.sources == (("lidar", "192.0.2.1"),)


@pytest.mark.parametrize("changes", [Changes(to="127.0.0.2"), Changes(settings=("sensor[0].network.destination=192.0.2.7",)), Changes()])
def test_a_source_is_the_rigs_unless_to_leads_away(tmp_path, changes):
    assert resolved(load_rig(write_rig(tmp_path), changes), changes).spec.sensor[0].network.source == "127.0.1.201"


def test_a_source_that_was_given_stays(tmp_path):
    changes = Changes(to="192.0.2.7", settings=("sensor[0].network.source=192.0.2.9",))
    assert resolved(load_rig(write_rig(tmp_path), changes), changes).spec.sensor[0].network.source == "192.0.2.9"


def test_several_sensors_do_not_get_one_source(tmp_path, monkeypatch):
    monkeypatch.setattr("hilsim.config.hosts.address_towards", lambda _destination: "192.0.2.1")
    changes = Changes(to="192.0.2.7")
    text = ROOM + '\n[[sensor]]\nname = "mast"\n[sensor.network]\nsource = "127.0.1.202"\n'
    with pytest.raises(
        ConfigError, match=r"--to 192\.0\.2\.7: network\.source must be an address of this host for each of lidar, mast, got loopback ones"
    ):
        resolved(load_rig(write_rig(tmp_path, text), changes), changes)


def test_the_address_towards_loopback_is_loopback():
    assert address_towards("127.0.0.1") == "127.0.0.1"
