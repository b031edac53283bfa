"""The example's part of its own, from one module: its table, its datagrams, its metrics and faults, its lines on the screen and in the check."""

import socket
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from prometheus_client import generate_latest

from hilsim.cli.check import check
from hilsim.cli.diagnosis.addresses import examine_addresses
from hilsim.config.changes import Changes
from hilsim.config.chosen import chosen
from hilsim.config.hosts import resolved
from hilsim.config.part_tables import part_kind
from hilsim.config.rig import rig_of_table
from hilsim.daemon.precompile import kernel_needs
from hilsim.daemon.ready_file import contents
from hilsim.daemon.running_rig import RunningRig
from hilsim.errors import ConfigError
from hilsim.offline.spans import build_offline
from hilsim.telemetry.collector import build_registry
from hilsim.telemetry.losses import judge, own_counters
from hilsim.telemetry.readings import Reading
from tests.plugins import EXAMPLE, distribution, install_example
from tests.support import write_rig

MAX_LINES = 120
TEXT = 'name = "yard"\nmetrics.enabled = false\ntransmit.lock_memory = false\n[[beacon]]\nname = "gate"\n[[beacon]]\nname = "mast"\nport = 7778\n'


@pytest.fixture
def rig(plugin_site):
    install_example(plugin_site)
    return lambda changes=None, **beacon: rig_of_table(
        {"name": "yard", "transmit": {"lock_memory": False}, "metrics": {"enabled": False}, "beacon": [{"name": "gate", **beacon}, {"name": "mast"}]},
        Path("rig.toml"),
        changes,
    )


def test_it_is_one_small_module():
    assert (EXAMPLE / "hilsim_plugin_example" / "beacon.py").read_text().count("\n") <= MAX_LINES


def test_check_prints_its_keys_its_notes_and_its_number(plugin_site):
    install_example(plugin_site)
    shown = CliRunner().invoke(check, [str(write_rig(plugin_site, TEXT))])
    assert 'beacon[0].name = "gate"\nbeacon[0].source = "127.0.0.1"' in shown.stdout
    assert "note: mast sends 6 bytes and more" in shown.stderr
    assert "sound; 0 sensor(s), 2 beacon(s)" in shown.stderr


def test_its_faults_are_reported_with_all_others_of_the_rig(rig):
    with pytest.raises(ConfigError) as raised:
        rig(name="mast", prot=1, port="x")
    assert str(raised.value).split("\n") == [
        'rig.toml: beacon[0].port must be integer, got "x"',
        'rig.toml: beacon[0].prot: unknown key (did you mean "port"?)',
        "rig.toml: names of beacons must differ, got mast, mast",
    ]


def test_options_of_the_command_line_reach_it(rig):
    part = rig(Changes(to="localhost:99", settings=("beacon.mast.source=127.0.0.9",)))
    assert [(each.destination, each.port, each.source) for each in resolved(part).spec.part("beacon")] == [
        ("127.0.0.1", 99, "127.0.0.1"),
        ("127.0.0.1", 99, "127.0.0.9"),
    ]
    assert [each.name for each in chosen(part, ["mast"]).spec.part("beacon")] == ["mast"]
    assert examine_addresses(part) == ()
    assert kernel_needs(part) == ()


def test_it_sends_a_datagram_a_second_and_counts_them(rig):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(60)
        running = RunningRig(rig=rig(port=receiver.getsockname()[1]))
        running.build()
        running.open()
        try:
            running.start()
            assert [receiver.recv(100), receiver.recv(100)] == [b"gate 1", b"gate 2"]
            assert abs(time.monotonic_ns() - running.clock.epoch_ns - 2e9) < 0.9e9
            reading = running.reading()
            assert contents(running, "")["beacons"] == [{"name": "gate"}, {"name": "mast"}]
            assert [name for name, _ in running.lines] == ["gate", "mast"]
            with pytest.raises(ConfigError, match="beacon cannot change while packets flow; restart the service for that"):
                running.change(rig(port=9))
        finally:
            running.stop()
    assert running.summary == "2 beacon(s) streaming"
    assert b'hilsim_beacon_messages_total{beacon="gate"} 2.0' in generate_latest(build_registry(lambda: reading))


def test_messages_that_are_missing_are_a_fault(rig):
    rig()
    reading = Reading(parts={"beacon": (part_kind("beacon").reading(name="gate", messages=9, late_messages=1),)})
    [fault] = judge(own_counters(reading), reading)
    assert (fault.key, fault.sentence) == ("beacon_late", "gate: 1 of 10 messages missing: 1 made too late in the last 10 s")


def test_what_has_no_packets_without_a_clock_is_not_recorded(rig):
    with pytest.raises(ConfigError, match="beacon must not be given where nothing runs in real time"):
        build_offline(rig(), utc_epoch_ns=0, until_ns=0).sources()


def test_an_object_that_is_no_kind_is_refused(plugin_site):
    distribution(plugin_site, "stranger", entry_points={"hilsim.parts": {"buoy": "stranger:BUOY"}})
    (plugin_site / "stranger.py").write_text("BUOY = 7\n")
    with pytest.raises(ConfigError, match=r'buoy: stranger 1\.0 .* must give a hilsim\.plugins\.PartKind with table "buoy", got 7'):
        rig_of_table({"name": "sea", "buoy": [{}]}, Path("rig.toml"))
