"""Names of hosts stand where addresses do, and become addresses once."""

import pytest

from hilsim.config.changes import Changes
from hilsim.config.hosts import resolved
from hilsim.config.rig import load_rig
from hilsim.errors import ConfigError
from hilsim.transmit.hosts import is_host
from tests.support import ROOM, write_rig

NAMED = ROOM + '\n[sensor.network]\ndestination = "localhost"\n'


def test_a_name_becomes_its_address_and_the_rig_says_which(tmp_path):
    rig = resolved(load_rig(write_rig(tmp_path, NAMED)))
    assert rig.spec.sensor[0].network.destination == "127.0.0.1"
    assert rig.hosts == (("localhost", "127.0.0.1"),)


def test_a_replay_may_go_to_a_name_or_where_it_went(tmp_path):
    text = "\n".join(f'[[replay]]\nname = "{name}"\nfile = "a.pcap"\ndestination = "{name}"' for name in ("localhost", "recorded"))
    rig = resolved(load_rig(write_rig(tmp_path, f'name = "r"\n{text}\n')))
    assert [replay.destination for replay in rig.spec.replay] == ["127.0.0.1", "recorded"]


def test_a_rig_of_addresses_stays_as_it_is(tmp_path):
    rig = load_rig(write_rig(tmp_path))
    assert resolved(rig) is rig


def test_a_name_that_nobody_has_is_told_with_key_and_option(tmp_path):
    changes = Changes(to="nobody.invalid:2369")  # RFC 6761: no name below .invalid is anybody's
    rig = load_rig(write_rig(tmp_path), changes)
    with pytest.raises(
        ConfigError,
        match=r'sensor\[0\]\.network\.destination must be .* the name of a host that has one, got "nobody\.invalid": .* \(--to nobody\.invalid:2369\)',
    ):
        resolved(rig, changes)


@pytest.mark.parametrize("text", ["10.0.0.1", "localhost", "bench-3", "bench3.lab.example", "bench3.lab.example.", "my_host"])
def test_addresses_and_names_are_hosts(text):
    assert is_host(text)


@pytest.mark.parametrize("text", ["", "10.0.0.256", "1.2.3", "a..b", "-a", "a-", "a b", "a" * 64, "a." * 130, "ünï", "::1", "a/b", "host:1"])
def test_spoilt_addresses_and_other_texts_are_none(text):
    assert not is_host(text)
