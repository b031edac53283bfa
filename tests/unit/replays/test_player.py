"""The thread that plays a packet queue into rings. Its clock is the machine's: only recorded values and orders are asserted, never how long something took."""

import time
from itertools import pairwise

import dpkt
import numpy as np
import pytest

from hilsim.emulator.replaying import retiming_of
from hilsim.emulator.retime import NOTHING, StampClock
from hilsim.families.velodyne.recognition import VELODYNE_DATA_STYLE, VELODYNE_POSITION_STYLE, VelodyneKind
from hilsim.parts.replays.player import AHEAD_NS, Player, Word, put_run
from hilsim.protocols.ethernet import PAYLOAD_ONLY, build_framing
from hilsim.transmit.ring import allocate_rings, depth
from hilsim.transmit.scheduling import ThreadSettings
from tests.rings import peek
from tests.unit.replays.streams import CYCLE_NS, SENSOR, data_packet, stamp_us_of

MS = 1_000_000
LIMIT_S = 30.0
CLOCK = StampClock(shown_ns=1_700_000_000_000_000_000, utc_ns=1_800_000_000_000_000_000)


def await_that(condition):
    deadline_s = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.001)


class Bench:
    """A player with rings; the test is reader and sending loop."""

    def __init__(self, *, flows=2, ring_slots=1024, slots=512, scale=1.0, capacity=2048):
        self.rings = allocate_rings(flows, ring_slots, capacity + 42)
        settings = ThreadSettings(scheduling="plain")
        self.player = Player(name="test", rings=self.rings, slots=slots, capacity=capacity, scale=scale, settings=settings)
        for row in range(flows):
            self.player.route(row, row, NOTHING, PAYLOAD_ONLY)
        self.put_packets = 0

    def put(self, due_ns, *, track=0, stamp_ns=None, payload=None):
        """Packets that are due at these times of the line; returns how many found room."""
        due = np.atleast_1d(np.asarray(due_ns, np.int64))
        stamp = due if stamp_ns is None else np.atleast_1d(np.asarray(stamp_ns, np.int64))
        payloads = [payload if payload is not None else (self.put_packets + number).to_bytes(8, "little") for number in range(due.size)]
        stops = np.cumsum([len(each) for each in payloads], dtype=np.int64)
        data = np.frombuffer(b"".join(payloads), np.uint8)
        count = put_run(self.player.queue, np.full(due.size, track, np.int64), due, stamp, stamp, data, stops, 0, self.player.capture_ns)
        self.put_packets += count
        return count

    def word(self, word):
        return int(self.player.words[word])

    def start(self, epoch_ns):
        self.player.start(epoch_ns, CLOCK)

    def start_in_the_past(self):
        """Everything is due already, and is played at once."""
        epoch_ns = time.monotonic_ns() - 3600 * 1000 * MS
        self.start(epoch_ns)
        return epoch_ns

    def played(self, count, row=0):
        """Contents of a row once so many were played."""
        await_that(lambda: self.word(Word.PLAYED) >= count)
        return peek(self.rings, row)

    def send(self, row=0):
        """Take what waits in a row, as the sending loop does."""
        sent = peek(self.rings, row)
        self.rings.head[row, 0] += len(sent)
        return sent


@pytest.fixture
def bench():
    made = []

    def make(**arguments):
        made.append(Bench(**arguments))
        return made[-1]

    yield make
    for each in made:
        each.player.stop()


def numbers_of(queued):
    return [int.from_bytes(each.payload, "little") for each in queued]


# -- deadlines --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 0.5, 3.7])
def test_deadlines_are_the_epoch_and_the_scaled_time_of_the_line(bench, scale):
    player = bench(scale=scale)
    due_ns = np.cumsum(np.random.default_rng(2).integers(0, 3 * MS, 300))
    player.put(due_ns)
    epoch_ns = player.start_in_the_past()
    played = player.played(300)
    expected_ns = epoch_ns + (due_ns if scale == 1.0 else np.rint(due_ns * scale).astype(np.int64))
    assert [each.deadline_ns for each in played] == expected_ns.tolist()
    assert numbers_of(played) == list(range(300))
    assert player.word(Word.DUE_NS) == due_ns[-1]


def test_times_of_a_year_are_exact(bench):
    player = bench()
    due_ns = 365 * 86_400 * 1000 * MS + 123_456_789
    player.put(due_ns)
    epoch_ns = time.monotonic_ns() - due_ns - 1000 * MS
    player.start(epoch_ns)
    assert player.played(1)[0].deadline_ns == epoch_ns + due_ns


def test_deadlines_never_fall_within_a_row_and_rows_do_not_hold_each_other_up(bench):
    player = bench()
    player.player.route(2, 1, NOTHING, PAYLOAD_ONLY)
    for track, due_ms in ((0, 50), (1, 10), (0, 20), (2, 5), (1, 30), (0, 60)):
        player.put(due_ms * MS, track=track)
    epoch_ns = player.start_in_the_past()
    player.played(6)
    deadlines = [[(each.deadline_ns - epoch_ns) // MS for each in peek(player.rings, row)] for row in range(2)]
    assert deadlines == [[50, 50, 60], [10, 10, 30]]


def test_nothing_is_put_into_its_ring_long_before_its_deadline(bench):
    player = bench()
    player.put([0, 100 * MS, 200 * MS])
    player.start(time.monotonic_ns() + 50 * MS)
    seen = []
    while len(seen) < 3:
        seen += [(time.monotonic_ns(), each.deadline_ns) for each in player.send()]
    assert all(seen_ns >= deadline_ns - AHEAD_NS for seen_ns, deadline_ns in seen)
    assert [later[1] - sooner[1] for sooner, later in pairwise(seen)] == [100 * MS, 100 * MS]


def test_a_packet_after_its_deadline_is_counted_and_put_into_the_ring(bench):
    player = bench()
    player.put([0, MS])
    player.start_in_the_past()
    assert len(player.played(2)) == 2
    assert player.word(Word.LATE) == 2


# -- stamps -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_stamps_name_the_instant_of_the_line_on_the_clock_that_was_given(bench, scale):
    player = bench(scale=scale)
    player.player.route(0, 0, retiming_of(VelodyneKind.DATA, b""), PAYLOAD_ONLY)
    stamps_ns = np.arange(5) * CYCLE_NS
    for stamp_ns in stamps_ns:
        player.put(stamp_ns + 1_427_000, stamp_ns=stamp_ns, payload=data_packet(4321, 77))
    epoch_ns = player.start_in_the_past()
    played = player.played(5)
    shown_us = (CLOCK.shown_ns + epoch_ns + np.rint(stamps_ns * scale).astype(np.int64)) // 1000 % 3_600_000_000
    assert [stamp_us_of(each.payload) for each in played] == shown_us.tolist()
    recorded = data_packet(4321, 77)
    assert all(each.payload[:1200] + each.payload[1204:] == recorded[:1200] + recorded[1204:] for each in played)


def test_packets_that_are_not_re_timed_stay_unchanged(bench):
    player = bench()
    payload = np.random.default_rng(4).bytes(1206)
    player.put(0, payload=payload)
    player.put(0, payload=b"")
    player.start_in_the_past()
    assert [each.payload for each in player.played(2)] == [payload, b""]


# -- pausing ----------------------------------------------------------------------------------------------------------------------------


def test_nothing_is_played_while_it_is_paused_and_everything_comes_later_by_the_pause(bench):
    player = bench()
    player.player.route(0, 0, retiming_of(VelodyneKind.DATA, b""), PAYLOAD_ONLY)
    due_ns = np.concatenate((np.arange(20), np.arange(1000, 1020))) * MS  # the pause begins in the gap, however slow the machine
    for due in due_ns:
        player.put(due, payload=data_packet(0, 0))
    epoch_ns = time.monotonic_ns()
    player.start(epoch_ns)
    player.played(20)
    player.player.pause(paused=True)
    await_that(lambda: time.monotonic_ns() > epoch_ns + 1100 * MS)
    assert player.word(Word.PLAYED) == 20
    assert player.word(Word.EPOCH_NS) == epoch_ns
    player.player.pause(paused=False)
    pause_ns = player.word(Word.EPOCH_NS) - epoch_ns
    played = player.played(40)
    delays = [each.deadline_ns - epoch_ns - due for each, due in zip(played, due_ns.tolist(), strict=True)]
    assert delays == [0] * 20 + [pause_ns] * 20
    shown_us = (CLOCK.shown_ns + epoch_ns + due_ns + np.array(delays)) // 1000 % 3_600_000_000
    assert [stamp_us_of(each.payload) for each in played] == shown_us.tolist()


def test_a_pause_within_a_gap_of_the_recording_leaves_the_gap_as_long_as_it_was(bench):
    player = bench()
    player.put([0, 400 * MS])
    epoch_ns = time.monotonic_ns()
    player.start(epoch_ns)
    player.played(1)
    player.player.pause(paused=True)
    time.sleep(0.02)
    player.player.pause(paused=False)
    pause_ns = player.word(Word.EPOCH_NS) - epoch_ns
    assert player.played(2)[1].deadline_ns == epoch_ns + 400 * MS + pause_ns


def test_short_pauses_never_let_time_go_back(bench):
    player = bench()
    player.player.route(0, 0, retiming_of(VelodyneKind.DATA, b""), PAYLOAD_ONLY)
    for number in range(300):
        player.put(number * MS, payload=data_packet(0, 0))
    player.start(time.monotonic_ns() + 20 * MS)
    epochs = []
    while player.word(Word.PLAYED) < 300:
        player.player.pause(paused=True)
        player.player.pause(paused=False)
        epochs.append(player.word(Word.EPOCH_NS))
        time.sleep(0.002)
    played = player.played(300)
    assert epochs == sorted(epochs)
    assert min(np.diff([each.deadline_ns for each in played])) >= MS
    assert min(np.diff([stamp_us_of(each.payload) for each in played]) % 3_600_000_000) >= 999


def test_pausing_twice_is_pausing_once(bench):
    player = bench()
    player.start(time.monotonic_ns())
    player.player.pause(paused=True)
    since_ns = player.word(Word.PAUSED_AT_NS)
    player.player.pause(paused=True)
    assert player.word(Word.PAUSED_AT_NS) == since_ns
    player.player.pause(paused=False)
    epoch_ns = player.word(Word.EPOCH_NS)
    player.player.pause(paused=False)
    assert (player.word(Word.EPOCH_NS), player.word(Word.PAUSED_AT_NS)) == (epoch_ns, 0)


def test_the_line_stands_still_during_a_pause_and_goes_on_from_there(bench):
    player = bench(scale=2.0)
    player.start(time.monotonic_ns() - 1000 * MS)
    player.player.pause(paused=True)
    line_ns = player.player.line_ns
    assert line_ns >= 500 * MS
    time.sleep(0.01)
    assert player.player.line_ns == line_ns
    player.player.pause(paused=False)
    assert player.player.line_ns >= line_ns


# -- rings and packet queue ---------------------------------------------------------------------------------------------------------------------


def test_nothing_is_lost_or_disordered_when_a_ring_is_full(bench):
    player = bench(ring_slots=4, flows=2)
    for number in range(200):
        player.put(number, track=number % 2)
    player.start_in_the_past()
    await_that(lambda: player.word(Word.WAITED_FOR_RING) > 0)
    assert max(depth(player.rings, row) for row in range(2)) == 4
    sent = [[], []]
    while sum(map(len, sent)) < 200:
        for row in range(2):
            sent[row] += numbers_of(player.send(row))
    assert sent == [list(range(0, 200, 2)), list(range(1, 200, 2))]
    assert player.word(Word.PLAYED) == 200


def test_a_full_packet_queue_takes_the_rest_of_a_run_later(bench):
    player = bench(slots=64)
    due_ns = np.arange(100, dtype=np.int64)
    stops = 8 * np.arange(1, 101)
    data = np.frombuffer(b"".join(number.to_bytes(8, "little") for number in range(100)), np.uint8)
    track = np.zeros(100, np.int64)
    assert put_run(player.player.queue, track, due_ns, due_ns, due_ns, data, stops, 0, player.player.capture_ns) == 64
    assert put_run(player.player.queue, track, due_ns, due_ns, due_ns, data, stops, 64, player.player.capture_ns) == 0
    player.start_in_the_past()
    await_that(lambda: player.player.waiting_packets == 0)
    assert put_run(player.player.queue, track, due_ns, due_ns, due_ns, data, stops, 64, player.player.capture_ns) == 36
    assert numbers_of(player.played(100)) == list(range(100))


def test_a_flush_throws_away_exactly_what_was_put_before_it(bench):
    player = bench()
    player.start(time.monotonic_ns())
    player.player.pause(paused=True)
    player.put(np.arange(50))
    player.player.flush()
    player.put(np.arange(50, 70))
    await_that(lambda: player.player.waiting_packets == 20)
    player.player.pause(paused=False)
    assert numbers_of(player.played(20)) == list(range(50, 70))
    assert player.word(Word.FLUSHED) == 50


def test_a_flush_of_an_empty_packet_queue_takes_nothing_away(bench):
    player = bench()
    player.start_in_the_past()
    player.player.flush()
    player.put(np.arange(5))
    assert numbers_of(player.played(5)) == list(range(5))
    player.player.flush()
    player.put(np.arange(5))
    assert len(player.played(10)) == 10
    assert player.word(Word.FLUSHED) == 0


def test_running_dry_is_counted_once_each_time_and_not_for_a_flush(bench):
    player = bench()
    player.put([0, 1])
    player.start_in_the_past()
    await_that(lambda: player.word(Word.UNDERRUNS) == 1)
    player.put([2])
    await_that(lambda: player.word(Word.UNDERRUNS) == 2)
    player.player.pause(paused=True)
    player.put([3])
    await_that(lambda: player.word(Word.IS_EMPTY) == 0)
    player.player.flush()
    await_that(lambda: player.word(Word.FLUSHED) == 1)
    player.player.pause(paused=False)
    time.sleep(0.02)
    assert player.word(Word.UNDERRUNS) == 2


def test_it_stops_whatever_it_waits_for(bench):
    for prepare in (lambda _player: None, lambda player: player.put([3600 * 1000 * MS]), lambda player: player.put(np.zeros(20))):
        player = bench(ring_slots=4)
        prepare(player)
        player.start(time.monotonic_ns())
        await_that(lambda playing=player.player: playing.alive)
        player.player.stop()
        assert not player.player.alive
    unstarted = bench()
    unstarted.player.stop()
    assert not unstarted.player.alive


# -- frames -----------------------------------------------------------------------------------------------------------------------------


def test_frames_have_the_headers_of_their_framing_and_count_from_one(bench):
    player = bench()
    macs = {"source_mac": "60:76:88:10:2f:6f", "destination_mac": "02:00:00:00:00:09"}
    styles = (VELODYNE_POSITION_STYLE, VELODYNE_DATA_STYLE)
    for track, style in enumerate(styles):
        player.player.route(track, track, NOTHING, build_framing(style, SENSOR, **macs))
        player.put(np.arange(5), track=track, payload=b"payload")
    player.start_in_the_past()
    player.played(10)
    for row, style in enumerate(styles):
        frames = [dpkt.ethernet.Ethernet(each.payload) for each in peek(player.rings, row)]
        assert [frame.ip.id for frame in frames] == ([1, 2, 3, 4, 5] if style.counting_identification else [0] * 5)
        for frame in frames:
            ip, udp = frame.ip, frame.ip.udp
            assert (frame.dst.hex(":"), frame.src.hex(":")) == (macs["destination_mac"], macs["source_mac"])
            assert (ip.ttl, ip.len, bool(ip.df)) == (style.ttl, 28 + 7, style.dont_fragment)
            assert (udp.sport, udp.dport, udp.ulen, udp.data) == (2368, 2368, 15, b"payload")
            assert (udp.sum != 0) == style.udp_checksum
            ip.sum, udp.sum, sums = 0, 0, (ip.sum, udp.sum)
            computed = dpkt.ip.IP(bytes(ip))  # dpkt fills in sums that are 0
            assert computed.sum == sums[0]
            assert not style.udp_checksum or computed.udp.sum == sums[1]


def test_the_same_packet_is_not_numbered_twice_because_its_ring_was_full(bench):
    player = bench(ring_slots=2)
    shape = build_framing(VELODYNE_POSITION_STYLE, SENSOR, source_mac="60:76:88:10:2f:6f", destination_mac="02:00:00:00:00:09")
    player.player.route(0, 0, NOTHING, shape)
    player.put(np.arange(30))
    player.start_in_the_past()
    await_that(lambda: player.word(Word.WAITED_FOR_RING) > 3)
    sent = []
    while len(sent) < 30:
        sent += player.send()
    assert [int.from_bytes(each.payload[18:20], "big") for each in sent] == list(range(1, 31))
