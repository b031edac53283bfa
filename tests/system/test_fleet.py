"""Daemons that share one instant of rig time 0 emulate one world: together they send what one daemon sends."""

import signal
import time
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from hilsim.api.emulator import Emulator
from hilsim.capture.pcap import CaptureFile
from hilsim.config.chosen import chosen
from hilsim.config.rig import load_rig
from tests.system.conftest import SCENE

pytestmark = [pytest.mark.extended, pytest.mark.system]
NAMES = ("front", "left", "rear")
PROFILES = {"front": "vlp16", "left": "puck-hi-res", "rear": "hdl32e"}


def fleet(receiver, epoch):
    """Text of a rig of three models at three addresses."""
    parts = [SCENE.replace("\n", "\nlead_ms = 200.0\n", 1), f'[transmit]\nlate_policy = "send"\nepoch_utc = "{epoch}"\n']
    for number, name in enumerate(NAMES):
        parts.append(
            f'[[sensor]]\nname = "{name}"\nprofile = "{PROFILES[name]}"\n[sensor.network]\nsource = "127.0.1.{11 + number}"\n'
            f'source_ports = "any"\ndata_port = {receiver().port}\nposition_port = {receiver().port}\n'
        )
    return "".join(parts)


def utc(offset_s):
    return (datetime.now(UTC) + timedelta(seconds=offset_s)).isoformat().replace("+00:00", "Z")


def recorded(path):
    """Send time and payload of each packet by source address and destination port."""
    found = {}
    for each in CaptureFile(path):
        found.setdefault((each.flow.source, each.flow.destination_port), []).append((each.host_stamp_ns, bytes(each.payload)))
    return found


def assert_is_a_stretch(rig, capture):
    """Each flow of a capture is a stretch of what the rig sends, complete and never early; returns rig times of its beginning and end."""
    sent = recorded(capture)
    epoch_ns = rig.spec.transmit.epoch_utc_ns
    first_s, last_s = (edge(stamp_ns - epoch_ns for flow in sent.values() for stamp_ns, _ in flow) / 1e9 for edge in (min, max))
    emulated = {}
    for packet in Emulator(rig).packets(max(first_s - 1.0, 0.0), last_s + 0.1):
        emulated.setdefault((packet.source[0], packet.destination[1]), []).append((epoch_ns + packet.time_ns, packet.payload))
    assert sent.keys() == emulated.keys()
    for flow, packets in sent.items():
        payloads = [payload for _, payload in emulated[flow]]
        begin = payloads.index(packets[0][1])
        assert [payload for _, payload in packets] == payloads[begin : begin + len(packets)]
        late_ns = [stamp_ns - due_ns for (stamp_ns, _), (due_ns, _) in zip(packets, emulated[flow][begin:], strict=False)]
        assert min(late_ns) > -1_000_000  # the host's UTC may be set by a little meanwhile
        assert np.percentile(late_ns, 10) < 20_000_000  # a stall of the machine delays some, a wrong instant all
    return first_s, last_s


def test_daemons_with_one_instant_send_together_what_one_daemon_sends(daemon, receiver, rig, tmp_path):
    path = rig(fleet(receiver, utc(-3_600.0)), scene="")
    captures = [tmp_path / "one.pcap", tmp_path / "two.pcap"]
    choices = (["front"], ["left", "rear"])
    running = [
        daemon(path, *(word for name in names for word in ("--only", name)), "--record", capture, wait=False)
        for names, capture in zip(choices, captures, strict=True)
    ]
    for each in running:
        each.await_log(r"daemon\.joined")
    running[1].process.send_signal(signal.SIGHUP)
    running[1].await_log(r"rig\.reloaded")
    await_size(captures, 3_000_000)
    for each in running:
        assert each.stop()[0] == 0
    spans = [assert_is_a_stretch(chosen(load_rig(path), names), capture) for names, capture in zip(choices, captures, strict=True)]
    assert all(first_s > 3_600.0 for first_s, _ in spans)


def test_a_daemon_waits_for_an_instant_in_the_future_and_sends_from_the_first_packet_on(daemon, receiver, rig, tmp_path):
    path = rig(fleet(receiver, utc(60.0)), scene="")
    capture = tmp_path / "one.pcap"
    waiting = daemon(path, "--only", "left", "--record", capture, wait=False)
    waiting.await_log(r"daemon\.waiting|daemon\.joined")
    waiting.await_log(r"daemon\.started")
    await_size([capture], 500_000)
    assert waiting.stop()[0] == 0
    if "daemon.joined" not in waiting.text():  # else the machine needed more than a minute to start
        sent = recorded(capture)
        first = {}
        for packet in Emulator(chosen(load_rig(path), ["left"])).packets(0.0, 0.2):
            first.setdefault((packet.source[0], packet.destination[1]), packet.payload)
        assert {flow: packets[0][1] for flow, packets in sent.items()} == first
    assert_is_a_stretch(chosen(load_rig(path), ["left"]), capture)


def await_size(paths, size):
    until_s = time.monotonic() + 120
    while not all(path.exists() and path.stat().st_size > size for path in paths):
        assert time.monotonic() < until_s
        time.sleep(0.02)
