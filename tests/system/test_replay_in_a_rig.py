"""Replays as sources of a rig: beside an emulated sensor, on one clock, reloaded, recorded offline, checked."""

import json
import signal
import time
import urllib.request

import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.read.analysis.conformance.checker import StreamChecker
from tests import commands
from tests.support import ROOM, write_rig
from tests.system.conftest import sensor_table

pytestmark = pytest.mark.system

UTC = "2026-03-01T10:59:59Z"  # the hour ends a second after the beginning


@pytest.fixture
def recording(tmp_path_factory):
    """A capture of our own: three seconds of a room."""
    directory = tmp_path_factory.mktemp("recording")
    return recorded(write_rig(directory, ROOM), directory / "room.pcap", duration_s=3)


def recorded(rig, output, duration_s):
    done = commands.run("record", rig, "-o", output, "--duration-s", duration_s, "--start-utc", UTC)
    assert done.returncode == 0, done.stderr
    return output


def replay_table(name, file, data_port, position_port, extra=""):
    return f"""
[[replay]]
name = "{name}"
file = "{file}"
{extra}
[[replay.flow]]
match = ">:2368"
send = ">127.0.0.1:{data_port}"
[[replay.flow]]
match = ">:8308"
send = ">127.0.0.1:{position_port}"
"""


def result_of(path):
    checker = StreamChecker()
    checker.feed(CaptureFile(path))
    return checker.result()


def stamps_of(received):
    return np.array([int.from_bytes(payload[1200:1204], "little") for payload, _ in received], np.int64)


def assert_plays_on(received, recording):
    """One recorded packet follows the other; what a busy machine was late with came later, and nothing is lost by that."""
    recorded = [datagram.payload[:1200] for datagram in CaptureFile(recording) if datagram.destination_port == 2368]
    begin = recorded.index(received[0][0][:1200])
    assert [payload[:1200] for payload, _ in received] == [recorded[(begin + number) % len(recorded)] for number in range(len(received))]
    assert (np.diff(stamps_of(received)) % 3_600_000_000 >= 1327).all()


def test_a_recorded_and_an_emulated_sensor_run_in_step_on_one_clock(daemon, rig, receiver, recording):
    live, live_position, replayed, replayed_position = (receiver() for _ in range(4))
    sensor = sensor_table("side", live.port, live_position.port, extra='clock = { sync = "free", offset_s = 100.0 }')
    replay = replay_table("front", recording, replayed.port, replayed_position.port, 'retime = "device"\nclock_offset_s = 100.0\nloop = "seamless"')
    daemon(rig(sensor, replay, '[transmit]\nlate_policy = "send"\n'))  # the first packets are needed, on a busy machine too
    emulated, recorded_ = live.take(100), replayed.take(100)
    assert {address for _, (address, _) in recorded_} == {"127.1.1.201"}  # 127.0.1.201 is the emulated sensor's
    # Both device clocks read 100 s at rig time 0, when the emulated sensor fires for the first time; the first recorded packet is due 2 ms later.
    assert stamps_of(emulated)[0] == 100_000_000
    assert 0 <= stamps_of(recorded_)[0] - 100_000_000 < 2_000


def test_a_reload_leaves_the_replays_that_did_not_change_alone(daemon, rig, receiver, recording):
    first, second, position = receiver(), receiver(), receiver()
    one = replay_table("one", recording, first.port, position.port, 'loop = "seamless"')
    two = replay_table("two", recording, second.port, position.port, 'loop = "seamless"')
    running = daemon(rig(one, scene='name = "bench"\n[metrics]\nport = 0\n'))
    first.take(100)
    rig(one, two, scene='name = "bench"\n[metrics]\nport = 0\n')
    running.process.send_signal(signal.SIGHUP)
    running.await_log("two: started with its new settings")
    assert "one: unchanged" in running.text()
    assert len(second.take(50)) == 50
    first.drain()
    assert_plays_on(first.take(300), recording)
    rig(two, scene='name = "bench"\n[metrics]\nport = 0\n')
    running.process.send_signal(signal.SIGHUP)
    running.await_log("one: removed")
    time.sleep(0.1)
    first.drain()
    time.sleep(0.2)
    assert first.drain() == []
    assert running.stop()[0] == 0


def test_metrics_tell_what_is_replayed(daemon, rig, receiver, recording):
    data, position = receiver(), receiver()
    running = daemon(rig(replay_table("front", recording, data.port, position.port, 'loop = "plain"'), scene='name = "bench"\n[metrics]\nport = 0\n'))
    data.take(200)
    address = running.await_log(r'"metrics": "(http://[^"]+)"')[1]
    with urllib.request.urlopen(address, timeout=10) as answer:  # noqa: S310 - the daemon's own loopback address
        text = answer.read().decode()
    values = {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if not line.startswith("#")}
    assert values['hilsim_sent_packets_total{flow="data",sensor="front"}'] >= 200
    assert values['hilsim_replay_played_packets_total{sensor="front"}'] >= 200
    assert values['hilsim_replay_position_seconds{sensor="front"}'] > 0.2
    assert values['hilsim_replay_lookahead_packets{sensor="front"}'] > 100
    assert not [name for name in values if 'fault="replay_failed"' in name]


@pytest.mark.extended
def test_a_rig_with_replays_is_recorded_offline_always_the_same(tmp_path, recording):
    text = ROOM + replay_table("front", recording, 2368, 8308, 'loop = "seamless"\noffset_s = 0.5')
    rig = write_rig(tmp_path, text)
    first, second = (recorded(rig, tmp_path / name, duration_s=8) for name in ("first.pcap", "second.pcap"))
    assert first.read_bytes() == second.read_bytes()
    datagrams = list(CaptureFile(first))
    assert {datagram.source for datagram in datagrams} == {"127.0.1.201", "127.1.1.201"}
    begin_ns = datagrams[0].host_stamp_ns
    replayed = [datagram for datagram in datagrams if datagram.source == "127.1.1.201"]
    assert replayed[0].host_stamp_ns - begin_ns == pytest.approx(500_000_000, abs=2_000_000)
    result = result_of(first)
    findings = [str(finding) for sensor in result.sensors for finding in sensor.findings]
    assert result.passed, findings  # two and a half loops, over the end of an hour
    assert not [text for text in findings if "time." in text], findings


def test_a_check_reads_the_captures_too(tmp_path, recording):
    text = 'name = "bench"\n' + replay_table("front", recording, 2368, 8308)
    done = commands.run("check", "--json", write_rig(tmp_path, text))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["replay"][0]["name"] == "front"
    (tmp_path / "torn.pcap").write_bytes(b"\xd4\xc3\xb2\xa1 and nothing more")
    rig = write_rig(tmp_path, text.replace(str(recording), "torn.pcap"), "torn.toml")
    done = commands.run("check", "--json", rig)
    assert done.returncode == 1
    assert "torn.pcap" in done.stderr


def test_names_of_sensors_and_replays_must_differ(tmp_path, recording):
    rig = write_rig(tmp_path, ROOM + replay_table("lidar", recording, 2368, 8308))
    done = commands.run("check", rig)
    assert done.returncode == 1
    assert "names of sensors and replays must differ, got lidar more than once" in done.stderr


def test_captures_of_one_drive_begin_as_far_apart_as_they_were_recorded(tmp_path, recording):
    text = 'name = "bench"\n' + "".join(
        replay_table(name, recording, 2368, 8308, f'align = "capture"\nstart_s = {start_s}\npace = "capture"')
        for name, start_s in (("one", 0), ("two", 0))
    )
    late = tmp_path / "late.pcap"
    data = bytearray(recording.read_bytes())
    seconds = int.from_bytes(data[24:28], "little")
    at = 24
    while at < len(data):  # the same recording, captured a second and a half later
        stamp_ns = int.from_bytes(data[at : at + 4], "little") * 10**9 + int.from_bytes(data[at + 4 : at + 8], "little") + 1_500_000_000
        data[at : at + 8] = (stamp_ns // 10**9).to_bytes(4, "little") + (stamp_ns % 10**9).to_bytes(4, "little")
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
    late.write_bytes(data)
    assert seconds > 0
    first, second = text.split('[[replay]]\nname = "two"')
    rig = write_rig(tmp_path, first + '[[replay]]\nname = "two"' + second.replace(str(recording), str(late)))
    datagrams = list(CaptureFile(recorded(rig, tmp_path / "both.pcap", duration_s=6)))
    starts = {}
    for datagram in datagrams:
        starts.setdefault(datagram.source, datagram.host_stamp_ns)
    assert len(starts) == 2
    assert max(starts.values()) - min(starts.values()) == pytest.approx(1_500_000_000, abs=1_000)
