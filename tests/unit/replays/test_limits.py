"""Captures that no replay can follow: passes of microseconds, stamps of other centuries, flows without end."""

from collections import deque
from itertools import takewhile

import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.errors import CaptureError
from hilsim.parts.replays.flows import LoopbackSources
from hilsim.parts.replays.limits import REPLAY_FLOWS
from hilsim.parts.replays.offline import OfflineReplay
from hilsim.parts.replays.player import MAX_TRACKS
from hilsim.parts.replays.recorded.plan import begin_times_ns, look_over
from hilsim.parts.replays.recorded.reader import CaptureReader
from hilsim.parts.replays.specs import ReplaySpec
from hilsim.protocols.flow_key import FlowKey
from tests.unit.capture import frames_by_hand as by_hand
from tests.unit.replays.streams import CAMERA, CEPTON, SENSOR, Recording, data_packet, stdv_packet

MS = 1_000_000


def spec_of(**settings):
    return ReplaySpec(name="recorded", file="recorded.pcap", **settings)


def pcapng(path, stamps_ns, payload=b"x"):
    """A capture of datagrams with these stamps, up to 2^64 ns."""
    frames = [by_hand.enhanced(stamp_ns % (1 << 64), by_hand.udp_frame(payload)) for stamp_ns in stamps_ns]
    path.write_bytes(by_hand.section() + by_hand.interface(resolution=9) + b"".join(frames))
    return path


def test_a_loop_whose_pass_lasts_microseconds_is_refused_in_one_sentence(tmp_path):
    recording = Recording()
    for number in range(5):
        recording.add(number * 1325, SENSOR, data_packet(0, number))
    path = recording.write(tmp_path / "x.pcap")
    with pytest.raises(CaptureError, match=r"x\.pcap: a pass of a loop must be at least 0\.01 s, got 6\.6\d+e-06 s$"):
        look_over(path, spec_of(loop="plain", pace="capture"))
    assert look_over(path, spec_of(pace="capture")).first_ns
    assert look_over(path, spec_of(pace="capture", loop="plain", loops=1)).first_ns


def test_a_loop_of_more_packets_than_can_be_sent_is_refused(tmp_path):
    recording = Recording()
    for number in range(4000):
        recording.add(number * 4000, CAMERA, b"x")
    with pytest.raises(CaptureError, match=r"packets of a loop a second must be at most 200,000 Hz, got 250,000 Hz"):
        look_over(recording.write(tmp_path / "x.pcap"), spec_of(loop="plain", pace="capture"))


def test_a_pass_of_a_long_capture_is_looked_at_when_it_was_read(tmp_path):
    recording = Recording()
    for number in range(6000):
        recording.add(number * 4000, CAMERA, b"x")
    path = recording.write(tmp_path / "x.pcap")
    spec = spec_of(loop="plain", pace="capture")
    reader = CaptureReader(CaptureFile(path), spec, look_over(path, spec).first_ns, lambda **_: None, "")
    with pytest.raises(CaptureError, match="packets of a loop a second must be at most 200,000 Hz, got 250,000 Hz"):
        deque(takewhile(lambda cues: cues.passes < 3, reader.runs()), maxlen=0)


def test_a_loop_of_stamps_that_stand_still_ends_by_itself(tmp_path):
    path = Recording().add(0, CAMERA, b"x").write(tmp_path / "x.pcap")
    assert look_over(path, spec_of(loop="plain", pace="capture")).first_ns


@pytest.mark.parametrize("stamp_ns", [(1 << 63) - 1, (1 << 62) + 1])
@pytest.mark.parametrize("pace", ["capture", "device"])
def test_a_stamp_of_another_century_is_refused_with_its_frame(tmp_path, stamp_ns, pace):
    path = pcapng(tmp_path / "x.pcapng", [0, 1000, stamp_ns])
    spec = spec_of(pace=pace)
    with pytest.raises(CaptureError, match=r"x\.pcapng: frame 3: distance of a time stamp from 1970 must be at most 4,611"):
        list(CaptureReader(CaptureFile(path), spec, look_over(path, spec).first_ns, lambda **_: None, "").runs())


def test_clocks_that_leap_to_and_fro_by_decades_are_refused(tmp_path):
    far = (1 << 62) - 1
    path = pcapng(tmp_path / "x.pcapng", [far >> number // 2 if number % 2 else 0 for number in range(40)])
    spec = spec_of(pace="capture")
    with pytest.raises(
        CaptureError, match=r"x\.pcapng: (time stamps leap back and forth by more than|distance of a packet from the replay's beginning must be)"
    ):
        list(CaptureReader(CaptureFile(path), spec, look_over(path, spec).first_ns, lambda **_: None, "").runs())


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_a_capture_that_stretches_to_centuries_is_refused_where_it_is_recorded_offline(tmp_path, scale):
    path = pcapng(tmp_path / "x.pcapng", [0, 1000, (1 << 61) + 1])
    replay = OfflineReplay(spec_of(pace="capture", interval_scale=scale), path, LoopbackSources(), utc_epoch_ns=0)
    with pytest.raises(CaptureError, match="distance of a packet from the replay's beginning must be at most 2,305,843,009,213,693,952 ns"):
        replay.span(1 << 62)


@pytest.mark.parametrize("pace", ["capture", "device"])
def test_sensor_clocks_that_leap_by_decades_never_overflow(tmp_path, pace):
    rng = np.random.default_rng(5)
    recording = Recording()
    for number in range(600):
        recording.add(number * MS, CEPTON, stdv_packet(int(rng.integers(0, 1 << 52))))
    path = recording.write(tmp_path / "x.pcap")
    spec = spec_of(pace=pace)
    reader = CaptureReader(CaptureFile(path), spec, look_over(path, spec).first_ns, lambda **_: None, "")
    assert sum(len(cues.payloads) for cues in reader.runs()) == 600


def test_captures_recorded_lifetimes_apart_cannot_begin_so():
    aligned = spec_of(align="capture")
    with pytest.raises(CaptureError, match="replay recorded: distance of a capture's beginning from the first's must be at most"):
        begin_times_ns([(aligned, 0), (aligned, 1 << 62)])


def test_more_flows_than_can_be_replayed_are_refused(tmp_path):
    recording = Recording()
    for number in range(300):
        recording.add(number * MS, FlowKey("192.168.1.201", 1000 + number, "192.168.1.77", 2368), b"x")
    path = recording.write(tmp_path / "x.pcap")
    spec = spec_of(pace="capture")
    with pytest.raises(CaptureError, match=r"x\.pcap: must have at most 256 flows to be replayed, got more: choose some"):
        list(CaptureReader(CaptureFile(path), spec, look_over(path, spec).first_ns, lambda **_: None, "").runs())


def test_the_player_has_room_for_as_many_flows_as_the_table_of_limits_says():
    assert REPLAY_FLOWS.bound == MAX_TRACKS
