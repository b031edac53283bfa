"""A real daemon whose network is broken and mended while packets flow: what receivers get is what its script gives without a clock."""

import json
import os
import random
import signal
import time

import pytest

import hilsim
from hilsim.faults.catalogue import FAULTS, RAW_EFFECTS, Place
from tests.support import write_rig
from tests.system.conftest import SCENE
from tests.system.test_changes import CONTROL, REPLAY, ROVERS, await_payloads, payloads_by_port, sensor, stopped_s

pytestmark = [pytest.mark.extended, pytest.mark.system]

FAULT = """
[[fault]]
kind = "{kind}"
on = "{on}"
{keys}
"""
LATE = '[transmit]\nlate_policy = "send"\n'
KEYS = {
    "loss": {"share": 0.1},
    "burst_loss": {"good_ms": 40.0, "bad_ms": 10.0},
    "corrupt": {"share": 0.2, "bit_error_ratio": 1e-4},
    "truncate": {"share": 0.1},
    "duplicate": {"share": 0.1, "delay_ms": 2.0},
    "reorder": {"share": 0.1},
    "delay": {"delay_ms": 5.0, "jitter_ms": 5.0},
    "normal_delay": {"delay_ms": 5.0, "correlation_ms": 10.0},
    "hold": {"hold_ms": 15.0, "every_ms": 100.0},
    "rate_limit": {"rate_bps": 6e6, "queue_bytes": 20_000},
    "link_flap": {"down_ms": 50.0, "up_ms": 100.0},
}
UNLIMITED = {"rate_bps": 1e12, "queue_bytes": 1_000_000_000}
KINDS = [row.kind for row in FAULTS if row.place == Place.NETWORK and row.effect not in RAW_EFFECTS]


def rig(tmp_path, receiver, faults=""):
    """A rig of two sensors and a replay, and the ports of its packets."""
    hilsim.record(write_rig(tmp_path), tmp_path / "recorded.pcap", duration_s=2.0)
    ports = [receiver().port for _ in range(5)]
    sensors = sensor("front", ports[0], ports[1]) + sensor("rear", ports[2], ports[3], host=202)
    replay = REPLAY.format(name="street", retime="none", port=ports[4])
    return write_rig(tmp_path, SCENE + LATE + sensors + replay + faults + CONTROL), ports


def played(path, tmp_path, script, lived_s):
    lines = tmp_path / "script.jsonl"
    lines.write_text("".join(json.dumps(change) + "\n" for change in script))
    hilsim.record(path, tmp_path / "played.pcap", duration_s=lived_s, script=lines)
    return payloads_by_port(tmp_path / "played.pcap")


def without_limits(script):
    """The script with lines so fast that no queue drops anything; all else that befalls a datagram depends on its deadline alone."""
    limits = {number for number, change in enumerate(script) if change.get("fault", {}).get("kind") == "rate_limit"}
    return [change | {"fault": change["fault"] | UNLIMITED} if number in limits else change for number, change in enumerate(script)]


def assert_played(lived, played, play_without_limits=None):
    """What was sent by port is what the script gives. Where a machine left packets out, queues were emptier, and let through what they would have dropped."""
    different = [port for port, payloads in lived.items() if payloads != played[port][: len(payloads)]]
    if different:
        whole = play_without_limits() if play_without_limits else played
        assert [len(set(lived[port]) - set(whole[port])) for port in different] == [0] * len(different)


def random_break(rng):
    """A change that breaks the network, or mends it."""
    if rng.random() < 0.3:
        return {"kind": "clear", "name": rng.choice(["*", *KINDS])}
    kind = rng.choice(KINDS)
    on = rng.choice(["*", "front", "rear/*", "*/data", "street"])
    keys = {"for_s": round(rng.uniform(0.05, 1.0), 3)} if rng.random() < 0.5 else {}
    return {"kind": "fault", "fault": {"kind": kind, "on": on, "seed": rng.randrange(100), **keys, **KEYS.get(kind, {})}}


@pytest.mark.parametrize("seed", [3, 4])
def test_a_lived_session_of_breaks_and_its_script_give_the_same_packets(daemon, tmp_path, receiver, seed):
    faults = FAULT.format(kind="loss", on="front/data", keys="share = 0.05") + FAULT.format(kind="delay", on="street", keys="jitter_ms = 8.0")
    path, ports = rig(tmp_path, receiver, faults + FAULT.format(kind="truncate", on="rear", keys="at_s = 0.5"))
    running = daemon(path, "--record", str(tmp_path / "lived.pcap"))
    control, rng = hilsim.connect(tmp_path / "control"), random.Random(seed)  # noqa: S311 - no secret
    for _ in range(25):
        control.change(**random_break(rng))
        time.sleep(rng.uniform(0.0, 0.15))
    control.change("clear")
    script = control.script()
    assert len(script) == 26
    time.sleep(0.5)
    lived_s = stopped_s(running, control)
    lived, later = payloads_by_port(tmp_path / "lived.pcap"), played(path, tmp_path, script, lived_s)
    assert all(len(lived[port]) > 100 for port in ports)
    assert_played(lived, later, lambda: played(path, tmp_path, without_limits(script), lived_s))


def test_a_scripted_break_begins_at_its_time_and_a_mended_network_is_as_it_was(daemon, tmp_path, receiver):
    path, ports = rig(tmp_path, receiver)
    script = tmp_path / "script.toml"
    script.write_text(
        '[[change]]\nat_s = 0.0\nkind = "fault"\n[change.fault]\nkind = "loss"\nshare = 0.5\n'
        '[[change]]\nat_s = 0.4\nkind = "fault"\n[change.fault]\nkind = "corrupt"\non = "street"\nshare = 1.0\n'
        '[[change]]\nat_s = 1.0\nkind = "clear"\n'
    )
    running = daemon(path, "--script", str(script), "--record", str(tmp_path / "lived.pcap"))
    running.await_log(r'"event": "rig.changed", "kind": "clear"')
    control = hilsim.connect(tmp_path / "control")
    lived_s = stopped_s(running, control)
    lived = payloads_by_port(tmp_path / "lived.pcap")
    hilsim.record(path, tmp_path / "intact.pcap", duration_s=lived_s)
    intact = payloads_by_port(tmp_path / "intact.pcap")
    hilsim.record(path, tmp_path / "played.pcap", duration_s=lived_s, script=script)
    later = payloads_by_port(tmp_path / "played.pcap")
    assert_played(lived, later)
    for port in ports:
        assert lived[port][:100] != intact[port][:100]
        assert later[port][-100:] == intact[port][-100:]


@pytest.mark.parametrize(
    ("change", "opposite"),
    [
        ('kind = "fault"\n[change.fault]\nkind = "range_bias"\non = "rear"\nbias_m = 5.0\n', 'kind = "clear"\n'),
        ('kind = "sensor"\nsensor = "rear"\nlaser = false\n', 'kind = "sensor"\nsensor = "rear"\nlaser = true\n'),
    ],
)
def test_a_change_that_a_standstill_delays_beyond_its_opposite_is_recorded_before_it(daemon, tmp_path, receiver, change, opposite):
    path, ports = rig(tmp_path, receiver)
    script = tmp_path / "script.toml"
    script.write_text(f"[[change]]\nat_s = 1.5\n{change}[[change]]\nat_s = 1.6\n{opposite}")
    running = daemon(path, "--script", str(script), "--record", str(tmp_path / "lived.pcap"))
    control = hilsim.connect(tmp_path / "control")
    while control.state()["rig_s"] < 1.3:
        time.sleep(0.01)
    running.process.send_signal(signal.SIGSTOP)
    time.sleep(0.6)
    running.process.send_signal(signal.SIGCONT)
    while len(made := control.script()) < 2:
        time.sleep(0.01)
    time.sleep(0.5)
    lived_s = stopped_s(running, control)
    assert [each["at_s"] for each in made] == [1.5, 1.6]
    assert made[0]["late_s"]["rear"] > made[1]["at_s"]
    lived = payloads_by_port(tmp_path / "lived.pcap")
    assert_played({port: lived[port] for port in ports}, played(path, tmp_path, made, lived_s))


def test_a_broken_network_is_counted_and_no_fault_of_the_daemon(daemon, tmp_path, receiver):
    path, _ = rig(tmp_path, receiver)
    running = daemon(path)
    control = hilsim.connect(tmp_path / "control")
    control.change("fault", fault={"kind": "link_flap", "on": "front", "down_ms": 10_000.0})
    control.change("fault", fault={"kind": "duplicate", "on": "rear", "share": 1.0})
    with pytest.raises(hilsim.ConfigError, match=r"on must name what sends \(front, rear, street\), a flow of it like NAME/data, or be a pattern"):
        control.change("fault", fault={"kind": "loss", "on": "roof"})
    with pytest.raises(hilsim.ConfigError, match=r'vlan needs frames, network.mode = "ethernet", and front, rear, street has mode = "udp"'):
        control.change("fault", fault={"kind": "vlan"})
    time.sleep(2.5)
    assert "sensor_silent" not in str(control.health())
    counts = {name: sensor["flows"]["data"]["network_faults"] for name, sensor in control.state()["sensors"].items()}
    assert counts["front"]["lost"] > 1000
    assert counts["rear"]["repeated"] > 1000
    assert running.stop()[0] == 0


def test_a_rig_of_replays_alone_is_broken_and_mended(daemon, tmp_path, receiver):
    hilsim.record(write_rig(tmp_path), tmp_path / "recorded.pcap", duration_s=2.0)
    ports = [receiver().port, receiver().port]
    tables = REPLAY.format(name="one", retime="none", port=ports[0]) + REPLAY.format(name="two", retime="device", port=ports[1])
    path = write_rig(
        tmp_path, 'name = "replays"\n[metrics]\nport = 0\n' + LATE + tables + FAULT.format(kind="duplicate", on="two", keys="") + CONTROL
    )
    running = daemon(path, "--record", str(tmp_path / "lived.pcap"))
    control = hilsim.connect(tmp_path / "control")
    control.change("fault", fault={"kind": "loss", "on": "one/*", "share": 0.5})
    control.change("fault", fault={"kind": "delay", "jitter_ms": 9.0, "for_s": 0.5})
    with pytest.raises(hilsim.ConfigError, match=r"a rig must have a \[\[sensor\]\]"):
        control.change("fault", fault={"kind": "glare"})
    time.sleep(0.3)
    control.change("clear", name="loss")
    time.sleep(0.5)
    script = control.script()
    assert [change["kind"] for change in script] == ["fault", "fault", "clear"]
    lived_s = stopped_s(running, control)
    lived, later = payloads_by_port(tmp_path / "lived.pcap"), played(path, tmp_path, script, lived_s)
    assert all(len(lived[port]) > 300 for port in ports)
    assert_played(lived, later)


def test_rovers_have_the_faults_of_their_names(daemon, tmp_path):
    address = f"127.0.{195 + int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0').removeprefix('gw'))}.1"
    faults = FAULT.format(kind="loss", on="rover-1", keys="share = 0.5") + FAULT.format(kind="corrupt", on="rover-2/*", keys="share = 0.5")
    path = write_rig(tmp_path, ROVERS.format(address=address) + faults)
    running = daemon(path, "--record", str(tmp_path / "lived.pcap"))
    ports = (9001, 10_001, 9002, 10_002)
    await_payloads(tmp_path / "lived.pcap", ports, 15)
    assert running.stop()[0] == 0
    lived = payloads_by_port(tmp_path / "lived.pcap")
    hilsim.record(path, tmp_path / "played.pcap", duration_s=60.0)
    later = payloads_by_port(tmp_path / "played.pcap")
    assert all(len(lived[port]) > 15 for port in ports)
    assert_played(lived, later)
