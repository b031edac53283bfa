"""``hilsim replay`` over loopback: every capture, byte for byte, re-timed, looped, paused, and faults reported clearly."""

import json
import re
import struct
import subprocess
import sys
import time
from datetime import UTC, datetime

import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.read.analysis.conformance.checker import StreamChecker
from tests import commands
from tests.system.replaying import START_TIMEOUT_S, Arrivals, replay, rerouted

pytestmark = pytest.mark.system

VELODYNE = {
    "vlp16_strongest_gps.pcap": (2368, 8308),
    "vlp16_dual.pcap": (2368,),
    "vlp16_strongest_1200rpm.pcap": (2368, 8308),
    "hdl32e_strongest.pcap": (2368, 8308),
    "vlp32c_strongest_fov.pcap": (2368,),
}
CEPTON = "cepton_hr80_two_sensors.pcap"
SOME_FIRST = [*list(VELODYNE)[:2], *(pytest.param(name, marks=pytest.mark.extended) for name in list(VELODYNE)[2:])]
HOUR_US = 3_600_000_000


@pytest.fixture
def arrivals():
    made = []

    def listen(count):
        made.append(Arrivals(count))
        return made[-1]

    yield listen
    for each in made:
        each.close()


def payloads_by_flow(datagrams):
    found = {}
    for datagram in datagrams:
        found.setdefault((datagram.source, datagram.destination_port), []).append(datagram.payload)
    return found


@pytest.mark.parametrize("name", SOME_FIRST)
def test_payloads_arrive_byte_for_byte_and_in_order_with_re_timing_off(any_capture, arrivals, name):
    path, ports = any_capture(name), VELODYNE[name]
    heard = arrivals(len(ports))
    summary = replay(path, "--retime", "none", *rerouted(ports, heard.ports))
    recorded = payloads_by_flow(CaptureFile(path))
    for port, ours in zip(ports, heard.ports, strict=True):
        (sent,) = [payloads for (_, recorded_port), payloads in recorded.items() if recorded_port == port]
        assert [datagram.payload for datagram in heard.by_port(ours)] == sent
    assert sum(flow["dropped_packets"] for flow in summary["flows"]) == 0


def test_two_sensors_of_one_capture_arrive_from_two_addresses(any_capture, arrivals):
    path = any_capture(CEPTON)
    heard = arrivals(1)
    replay(path, "--retime", "none", *rerouted((8808,), heard.ports))
    arrived, recorded = payloads_by_flow(heard.close()), payloads_by_flow(CaptureFile(path))
    assert {source for source, _ in arrived} == {"127.0.32.87", "127.0.48.101"}
    for address in ("32.87", "48.101"):
        assert arrived[f"127.0.{address}", heard.ports[0]] == recorded[f"192.168.{address}", 8808]


def named_fields(payload):
    """Bytes that re-timing may change."""
    if len(payload) == 1206:
        return set(range(1200, 1204))
    sentence = payload[206:334].split(b"\0")[0]
    fields = set(range(198, 202))
    if sentence:
        parts = sentence.split(b",")
        fields |= set(range(206 + 7, 206 + 7 + len(parts[1])))
        date = 206 + len(b",".join(parts[:9])) + 1
        fields |= set(range(date, date + 6))
        star = 206 + sentence.index(b"*")
        fields |= {star + 1, star + 2}
    return fields


@pytest.mark.parametrize("name", SOME_FIRST)
def test_re_timed_packets_differ_in_their_times_alone_and_name_the_present(any_capture, arrivals, name):
    path, ports = any_capture(name), VELODYNE[name]
    heard = arrivals(len(ports))
    replay(path, *rerouted(ports, heard.ports))
    recorded = payloads_by_flow(CaptureFile(path))
    for port, ours in zip(ports, heard.ports, strict=True):
        (sent,) = [payloads for (_, recorded_port), payloads in recorded.items() if recorded_port == port]
        arrived = heard.by_port(ours)
        assert len(arrived) == len(sent)
        for before, datagram in zip(sent, arrived, strict=True):
            after = datagram.payload
            changed = {at for at in range(len(before)) if before[at] != after[at]}
            assert changed <= named_fields(before)
            place = 1200 if len(after) == 1206 else 198
            (stamp_us,) = struct.unpack_from("<I", after, place)
            age_us = (datagram.host_stamp_ns // 1000 - stamp_us + HOUR_US // 2) % HOUR_US - HOUR_US // 2
            assert 0 < age_us < 500_000  # a packet is sent when it is complete; the rest is this machine's patience


def errors_of(datagrams, *, warned=()):
    """Errors of a live stream, and warnings of these kinds. Rules of spacing judge when packets arrived, which a busy machine decides; bench/bench_replay.py measures it."""
    checker = StreamChecker()
    checker.feed(datagrams)
    result = checker.result()
    assert result.sensors
    findings = [finding for sensor in result.sensors for finding in sensor.findings]
    wrong = [finding for finding in findings if finding.severity.value == "error" or finding.rule.startswith(warned)]
    return [str(finding) for finding in wrong if not finding.rule.startswith("spacing.")]


@pytest.mark.parametrize("name", VELODYNE)
def test_a_re_timed_replay_passes_the_conformance_checker(any_capture, arrivals, name):
    path, ports = any_capture(name), VELODYNE[name]
    heard = arrivals(len(ports))
    replay(path, *rerouted(ports, heard.ports))
    assert not errors_of(heard.close())


def test_the_sentence_of_a_re_timed_position_packet_names_the_second_of_its_stamp(any_capture, arrivals):
    heard = arrivals(2)
    replay(any_capture("vlp16_strongest_gps.pcap"), *rerouted((2368, 8308), heard.ports))
    positions = heard.by_port(heard.ports[1])
    assert positions
    for datagram in positions:
        (stamp_us,) = struct.unpack_from("<I", datagram.payload, 198)
        fields = datagram.payload[206:334].split(b"\0")[0].decode().split(",")
        named = datetime.strptime(fields[9] + fields[1].split(".")[0], "%d%m%y%H%M%S").replace(tzinfo=UTC)
        assert abs(named.timestamp() - datagram.host_stamp_ns / 1e9) < 2
        assert named.minute * 60 + named.second == stamp_us // 1_000_000


def test_ten_seamless_loops_are_one_continuous_stream(any_capture, arrivals):
    heard = arrivals(2)
    summary = replay(any_capture("vlp16_strongest_gps.pcap"), "--loop", "seamless", "--loops", "10", *rerouted((2368, 8308), heard.ports))
    assert summary["replays"][0]["passes"] == 10
    assert not errors_of(heard.close(), warned=("time.",))
    stamps = np.array([struct.unpack_from("<I", datagram.payload, 1200)[0] for datagram in heard.by_port(heard.ports[0])], np.int64)
    assert set(np.diff(stamps) % HOUR_US) <= {1327, 1328}


def test_several_captures_play_on_one_clock_with_their_offsets(any_capture, arrivals):
    first = arrivals(1)
    replay(
        any_capture("vlp16_dual.pcap"),
        any_capture("vlp32c_strongest_fov.pcap"),
        "--offset-s", "0", "--offset-s", "0.25",
        "--flow", f"192.168.1.201>:2368=127.0.1.201>127.0.0.1:{first.ports[0]}",
        "--retime", "device",
        check=True,
    )  # fmt: skip
    # Both captures have the same recorded addresses and so the same rule: both arrive at the first port, distinguished by their product byte.
    starts = {}
    for datagram in first.close():
        starts.setdefault(datagram.payload[1205], struct.unpack_from("<I", datagram.payload, 1200)[0])
    assert set(starts) == {0x22, 0x28}
    assert starts[0x28] - starts[0x22] == pytest.approx(250_000, abs=1_500)


def test_a_part_of_a_capture_is_replayed_from_start_to_duration(any_capture, arrivals):
    path = any_capture("hdl32e_strongest.pcap")
    heard = arrivals(2)
    replay(path, "--retime", "none", "--pace", "capture", "--start-s", "0.5", "--duration-s", "0.25", *rerouted((2368, 8308), heard.ports))
    recorded = list(CaptureFile(path))
    begin_ns = recorded[0].host_stamp_ns + 500_000_000
    wanted = [each.payload for each in recorded if begin_ns <= each.host_stamp_ns < begin_ns + 250_000_000 and each.destination_port == 2368]
    assert [datagram.payload for datagram in heard.by_port(heard.ports[0])] == wanted


def test_frames_keep_the_recorded_addresses(any_capture, tmp_path):
    """Whole frames through the loopback interface, as an analyser on it records them."""
    path = any_capture("vlp16_strongest_gps.pcap")
    seen = tmp_path / "seen.pcap"
    replay(
        path, "--frames", "--interface", "lo", "--destination-mac", "00:00:00:00:00:00", "--to", "recorded", "--broadcast",
        "--retime", "none", "--record", seen,
    )  # fmt: skip
    sent, recorded = list(CaptureFile(seen)), list(CaptureFile(path))
    flows = [payloads_by_flow(datagrams) for datagrams in (sent, recorded)]
    assert flows[0] == flows[1]
    for of_kind in (1206, 512):
        before = next(each for each in recorded if len(each.payload) == of_kind)
        after = next(each for each in sent if len(each.payload) == of_kind)
        assert after.link[6:14] == before.link[6:14]  # source MAC, type
        assert (after.link[22], after.link[20:22]) == (before.link[22], before.link[20:22])  # time to live, flags
        assert after.link[26:42] == before.link[26:42] or of_kind == 512  # addresses, ports, UDP length and checksum


def control(socket, *words):
    return commands.run("control", socket, *words)


def status_of(socket):
    return json.loads(control(socket, "status").stdout)["replays"][0]


def test_a_replay_is_paused_sought_and_resumed_while_it_runs(any_capture, arrivals, tmp_path):
    heard, socket = arrivals(2), tmp_path / "control"
    process = subprocess.Popen(
        [sys.executable, "-m", "hilsim", "replay", str(any_capture("vlp16_strongest_1200rpm.pcap")), "--loop", "plain", "--control", str(socket),
         *rerouted((2368, 8308), heard.ports)],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not heard.datagrams:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert control(socket, "pause").stdout == "ok\n"
        held = status_of(socket)
        while len(heard.datagrams) < held["played_packets"]:  # what was sent before is read a little later on a busy machine
            assert time.monotonic() < deadline
            time.sleep(0.01)
        count = len(heard.datagrams)
        time.sleep(0.3)
        assert held["is_paused"]
        assert len(heard.datagrams) == count
        assert control(socket, "seek", "1.5").stdout == "ok\n"
        assert control(socket, "resume").stdout == "ok\n"
        while len(heard.datagrams) < count + 50:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        resumed = status_of(socket)
        assert resumed["position_s"] >= 1.5 or resumed["passes"] > held["passes"]
        assert "must be pause" in control(socket, "dance").stderr
        assert control(socket, "pause", "nobody").returncode == 1
    finally:
        process.terminate()
        process.wait(60)
        process.stderr.close()
    data = heard.by_port(heard.ports[0])
    stamps = np.array([struct.unpack_from("<I", datagram.payload, 1200)[0] for datagram in data], np.int64)
    steps = np.diff(stamps) % HOUR_US
    assert (steps < HOUR_US // 2).all()  # the present only grows: through the pause, the seek and the loops
    recorded = [each.payload for each in CaptureFile(any_capture("vlp16_strongest_1200rpm.pcap")) if len(each.payload) == 1206]
    jump = data[int(np.argmax(steps)) + 1].payload
    place = next(number for number, payload in enumerate(recorded) if payload[:1200] == jump[:1200])
    assert place * 1327.104e-6 == pytest.approx(1.5, abs=0.1)


def written(path, datagrams=(), magic=b"\xd4\xc3\xb2\xa1", snap=None, stamps=None):
    """A classic little-endian capture of Ethernet frames around payloads."""
    records = b""
    for number, payload in enumerate(datagrams):
        udp = struct.pack(">HHHH", 2368, 2368, 8 + len(payload), 0) + payload
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes((10, 0, 0, 7)), bytes((10, 0, 0, 1))) + udp
        frame = bytes(12) + b"\x08\x00" + ip
        kept = frame[:snap]
        stamp_us = (stamps[number] if stamps else number * 1000) + 1_700_000_000_000_000
        records += struct.pack("<IIII", stamp_us // 1_000_000, stamp_us % 1_000_000, len(kept), len(frame)) + kept
    path.write_bytes(magic + struct.pack("<HHiIII", 2, 4, 0, 0, 262144, 1) + records)
    return path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"timestamp,x,y,z\n1,2,3,4\n", "is text"),
        (b"\x00\x01\x02\x03\x04\x05\x06\x07" * 10, "begins with bytes"),
    ],
)
def test_a_file_that_is_not_a_capture_is_named_with_its_kind(tmp_path, content, message):
    path = tmp_path / "odd.pcap"
    path.write_bytes(content)
    done = replay(path, check=False)
    assert done.returncode == 1
    assert str(path) in done.stderr
    assert message in done.stderr


def test_a_missing_file_and_every_other_faulty_capture_are_named_together(tmp_path):
    (tmp_path / "empty.pcap").write_bytes(b"")
    done = replay(tmp_path / "empty.pcap", tmp_path / "nothing.pcap", check=False)
    assert done.returncode == 1
    assert "empty.pcap" in done.stderr
    assert "nothing.pcap" in done.stderr


def test_a_filter_that_matches_nothing_says_what_there_is(tmp_path):
    path = written(tmp_path / "some.pcap", [b"x" * 100] * 3)
    done = replay(path, "--flow", "10.9.9.9", check=False)
    assert done.returncode == 1
    assert 'a flow must match "10.9.9.9"' in done.stderr
    assert "10.0.0.7:2368>10.0.0.1:2368 (3)" in done.stderr


def test_a_short_snap_length_is_reported_and_nothing_torn_is_sent(tmp_path):
    done = replay(written(tmp_path / "cut.pcap", [b"x" * 1206] * 3, snap=96), check=False)
    assert done.returncode == 1
    assert re.search(r"snap length", done.stderr)


def test_a_truncated_capture_is_replayed_to_the_damage_and_says_where(tmp_path, arrivals):
    path = written(tmp_path / "torn.pcap", [bytes([number]) * 200 for number in range(20)])
    path.write_bytes(path.read_bytes()[:-50])
    heard = arrivals(1)
    summary = replay(path, *rerouted((2368,), heard.ports))
    assert [datagram.payload[0] for datagram in heard.close()] == list(range(19))
    assert any("breaks off after frame 19" in note for note in summary["replays"][0]["notes"])


def test_times_that_go_backwards_lose_nothing_and_are_reported(tmp_path, arrivals):
    stamps = [0, 1000, 900, 2000, -3_600_000_000, -3_599_999_000]
    path = written(tmp_path / "back.pcap", [bytes([number]) * 200 for number in range(6)], stamps=stamps)
    heard = arrivals(1)
    summary = replay(path, *rerouted((2368,), heard.ports))
    assert [datagram.payload[0] for datagram in heard.close()] == list(range(6))
    assert any("go back" in note or "earlier" in note for note in summary["replays"][0]["notes"])


def test_options_that_make_no_sense_are_all_named(tmp_path):
    path = written(tmp_path / "some.pcap", [b"x" * 100] * 3)
    done = replay(path, "--interval-scale", "0", "--start-s", "-1", "--to", "255.255.255.255", check=False)
    assert done.returncode == 1
    for part in ("interval_scale must be", "start_s must be", "broadcast must be true"):
        assert part in done.stderr
    assert replay(path, "--flow", "300.1.1.1", check=False).returncode == 1
    assert replay(path, "--start-s", "2", "--end-s", "1", check=False).returncode == 2


def test_a_source_address_that_is_not_this_hosts_is_named_with_what_to_do(tmp_path):
    path = written(tmp_path / "some.pcap", [b"x" * 100] * 3)
    done = replay(path, "--from", "203.0.113.5", check=False)
    assert done.returncode == 1
    assert "203.0.113.5" in done.stderr
    assert "ip address add" in done.stderr
