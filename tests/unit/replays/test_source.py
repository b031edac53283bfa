"""One capture on its way into rings: reading ahead, faults, seeking, and reports to people."""

import gc
import time
import tracemalloc

import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile, PcapWriter
from hilsim.emulator.retime import StampClock
from hilsim.errors import CaptureError, TransmitError
from hilsim.parts.replays import source as source_module
from hilsim.parts.replays.flows import FlowRule
from hilsim.parts.replays.player import MAX_TRACKS, Word
from hilsim.parts.replays.source import ReplaySource
from hilsim.parts.replays.specs import ReplaySpec
from hilsim.protocols.ethernet import PAYLOAD_ONLY
from hilsim.transmit.ring import allocate_rings
from hilsim.transmit.scheduling import ThreadSettings
from tests.rings import peek
from tests.unit.replays.streams import BASE_NS, CAMERA, CEPTON, CYCLE_NS, Recording, frame_of, stamp_us_of

MS = 1_000_000
LIMIT_S = 30.0
FAST = 0.001
"""Of interval_scale: three seconds of a capture play in 3 ms."""
CLOCK = StampClock(shown_ns=1_700_000_000_000_000_000, utc_ns=1_700_000_000_000_000_000)


class Bench:
    """A replay source with rings; the test is the sending loop."""

    def __init__(self, path, *, rings=None, open_track=lambda _track: (0, PAYLOAD_ONLY), **settings):
        self.source = ReplaySource(ReplaySpec(**{"name": "recorded", "file": path.name, "interval_scale": FAST, "retime": "none"} | settings), path)
        self.rings = allocate_rings(2, 512, 2048) if rings is None else rings
        self.open_track = open_track
        self.sent = []

    def open(self):
        self.source.open(self.rings, self.open_track, ThreadSettings(scheduling="plain"))
        return self

    def start(self, epoch_ns=None):
        self.source.start(time.monotonic_ns() if epoch_ns is None else epoch_ns, CLOCK)
        return self

    def send(self):
        """Take what waits in the rings."""
        for row in range(self.rings.head.shape[0]):
            sent = peek(self.rings, row)
            self.rings.head[row, 0] += len(sent)
            self.sent += sent

    def send_until(self, condition):
        deadline_s = time.monotonic() + LIMIT_S
        while not condition(self.source.state()):
            assert time.monotonic() < deadline_s, self.source.state()
            self.send()
            time.sleep(0.001)
        self.send()
        return self

    def play(self):
        """To the end."""
        return self.send_until(lambda state: state.has_ended)

    @property
    def payloads(self):
        return [each.payload for each in self.sent]

    def word(self, word):
        return int(self.source._player.words[word])


@pytest.fixture
def bench():
    made = []

    def make(path, **settings):
        made.append(Bench(path, **settings))
        return made[-1]

    yield make
    for each in made:
        each.source.stop()


@pytest.fixture
def recording():
    """Three seconds of a sensor: thirty turns."""
    return Recording().add_turning(2261)


@pytest.fixture
def turning(recording, tmp_path):
    return recording.write(tmp_path / "turning.pcap")


# -- a whole capture --------------------------------------------------------------------------------------------------------------------


def test_a_capture_plays_to_its_end_and_says_so(bench, turning, recording):
    played = bench(turning, lookahead_packets=8192).open().start().play()
    state = played.source.state()
    assert played.payloads == recording.payloads()
    assert (state.played_packets, state.waiting_packets, state.passes, state.ratio, state.fault) == (2261, 0, 0, 1.0, "")
    assert state.underruns == 0
    assert abs(state.position_s - 2260 * CYCLE_NS / 1e9) < 0.005
    assert played.source.notes == ()


def test_nothing_is_played_before_it_is_started_and_seconds_of_it_are_read_ahead(bench, turning):
    waiting = bench(turning).open()
    assert waiting.source.state().waiting_packets >= 2048
    assert waiting.source.state().played_packets == 0
    assert not waiting.source.alive


def test_a_capture_larger_than_what_is_read_ahead_plays_on(bench, turning, recording):
    assert bench(turning, lookahead_packets=64).open().start().play().payloads == recording.payloads()


def test_position_and_share_grow_with_the_capture(bench, turning):
    slow = bench(turning, interval_scale=0.2).open().start()
    seen = []
    slow.send_until(lambda state: seen.append((state.position_s, state.ratio)) or state.has_ended)
    positions, ratios = zip(*seen, strict=True)
    assert list(positions) == sorted(positions)
    assert list(ratios) == sorted(ratios)
    assert 0.0 <= ratios[0] < 0.5
    assert any(0.5 < position < 2.5 and abs(ratio - position / 3.0) < 0.02 for position, ratio in seen)


# -- faults of the file -----------------------------------------------------------------------------------------------------------------


def test_a_truncated_capture_plays_to_the_damage_and_says_where(bench, turning, recording):
    whole = turning.read_bytes()
    turning.write_bytes(whole[: 24 + 1000 * (16 + 1248) + 700])
    played = bench(turning).open().start().play()
    assert played.payloads == recording.payloads()[:1000]
    assert any("frame 1001" in note or "1264024" in note for note in played.source.notes), played.source.notes


def test_a_capture_damaged_in_its_middle_plays_what_came_before_and_says_where(bench, turning, recording):
    whole = bytearray(turning.read_bytes())
    at = 24 + 700 * (16 + 1248)
    whole[at + 8 : at + 12] = b"\xff\xff\xff\x7f"
    turning.write_bytes(bytes(whole))
    played = bench(turning).open().start().play()
    assert played.payloads == recording.payloads()[:700]
    assert played.source.notes
    assert played.source.state().fault == ""


def test_a_damaged_capture_loops_over_what_is_whole(bench, turning, recording):
    turning.write_bytes(turning.read_bytes()[: 24 + 300 * (16 + 1248) + 5])
    played = bench(turning, loop="plain", loops=3).open().start().play()
    assert played.payloads == recording.payloads()[:300] * 3


def test_a_capture_that_disappears_after_it_was_looked_over_is_a_fault_of_opening(bench, turning):
    gone = bench(turning)
    turning.unlink()
    with pytest.raises(CaptureError, match=r"turning\.pcap: cannot be opened: No such file"):
        gone.open()


def test_an_unreadable_later_part_is_a_fault_and_the_part_before_it_is_played(bench, turning, recording):
    opened = bench(turning, loop="plain").open()
    turning.unlink()
    opened.start().send_until(lambda state: state.fault and not state.waiting_packets)
    assert "turning.pcap: cannot be opened" in opened.source.state().fault
    assert opened.payloads[:2261] == recording.payloads()


@pytest.mark.parametrize(
    ("settings", "where"),
    [({"start_s": 7.5}, "from 7.5 s on, got none there"), ({"start_s": 2.9999, "duration_s": 1e-6}, "from 2.9999 s on for 1e-06 s")],
)
def test_a_beginning_beyond_the_end_is_a_fault_of_opening(bench, turning, settings, where):
    with pytest.raises(CaptureError, match=rf"turning\.pcap: must hold packets to be replayed {where}"):
        bench(turning, **settings).open()


def test_a_flow_that_cannot_be_opened_is_a_fault_of_opening(bench, turning):
    def refuse(_track):
        raise TransmitError("no row is free")

    with pytest.raises(CaptureError, match="no row is free"):
        bench(turning, open_track=refuse).open()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_of_this_program_while_reading_hangs_nothing(bench, turning):
    def fail(_track):
        raise ZeroDivisionError

    with pytest.raises(CaptureError, match=r"turning\.pcap: reading must not end by itself"):
        bench(turning, open_track=fail).open()


def test_more_flows_than_there_is_room_for_are_a_fault(bench, tmp_path):
    recording = Recording()
    for number in range(MAX_TRACKS + 1):
        recording.add(number * 1000, CAMERA._replace(source_port=1000 + number), b"x")
    with pytest.raises(CaptureError, match=r"must have at most 256 flows to be replayed, got more: choose some"):
        bench(recording.write(tmp_path / "many.pcap")).open()


# -- what is left out, and what is reported -------------------------------------------------------------------------------------------------


def test_datagrams_that_are_larger_than_any_in_the_beginning_are_left_out_and_counted(bench, tmp_path):
    recording = Recording()
    for number in range(4200):
        recording.add(number * 100_000, CAMERA, b"%d" % number)
    recording.add(421 * MS, CAMERA, bytes(3000)).add(422 * MS, CAMERA, b"last")
    played = bench(recording.write(tmp_path / "large.pcap")).open().start().play()
    assert len(played.payloads) == 4201
    assert played.payloads[-1] == b"last"
    assert "1 datagrams larger than 2048 bytes were left out" in played.source.notes


def test_datagrams_that_do_not_fit_into_a_frame_are_left_out_and_hang_nothing(bench, tmp_path):
    recording = Recording().add(0, CAMERA, b"first").add(MS, CAMERA, bytes(1990)).add(2 * MS, CAMERA, b"last")
    rings = allocate_rings(2, 64, 2000)
    played = bench(recording.write(tmp_path / "large.pcap"), rings=rings, mode="ethernet", interface="lo", destination_mac="02:00:00:00:00:01")
    assert played.open().start().play().payloads == [b"first", b"last"]
    assert "1 datagrams larger than 1958 bytes were left out" in played.source.notes


def test_empty_datagrams_are_played(bench, tmp_path):
    recording = Recording()
    for number in range(5):
        recording.add(number * MS, CAMERA, b"")
    assert bench(recording.write(tmp_path / "empty.pcap")).open().start().play().payloads == [b""] * 5


def test_formats_that_are_not_understood_are_named(bench, tmp_path):
    recording = Recording().add_turning(10).add(MS, CEPTON, b"STDT" + bytes(100)).add(2 * MS, CAMERA, b"x")
    played = bench(recording.write(tmp_path / "formats.pcap")).open().start().play()
    assert played.source.notes == ("replayed verbatim and by capture time, because the format is not understood: Cepton STDT points, not recognised",)


def test_a_recording_of_less_than_a_turn_is_looped_plainly_and_says_so(bench, tmp_path):
    recording = Recording().add_turning(50)
    played = bench(recording.write(tmp_path / "part.pcap"), loop="seamless", loops=2).open().start().play()
    assert played.payloads == recording.payloads() * 2
    assert any("a whole turn is needed" in note for note in played.source.notes)


def test_formats_that_cannot_be_cut_are_looped_plainly_and_say_so(bench, tmp_path):
    recording = Recording()
    for number in range(20):
        recording.add(number * MS, CAMERA, b"%d" % number)
    played = bench(recording.write(tmp_path / "camera.pcap"), loop="seamless", loops=2).open().start().play()
    assert played.payloads == recording.payloads(CAMERA) * 2
    assert any("cannot be cut seamlessly" in note for note in played.source.notes)


def test_a_cut_of_a_large_file_is_sought_while_it_plays(bench, turning, monkeypatch):
    monkeypatch.setattr(source_module, "SMALL_FILE_BYTES", 0)
    played = bench(turning, loop="seamless", loops=3, retime="utc", lookahead_packets=64).open()
    played.source._planner.join()  # in a large file the end is not read before the cut is known
    played.start().play()
    azimuth = np.array([int.from_bytes(payload[2:4], "little") for payload in played.payloads])
    assert np.abs((np.diff(azimuth) - 478 + 18_000) % 36_000 - 18_000).max() <= 12
    steps_us = np.diff([stamp_us_of(payload) for payload in played.payloads]) % 3_600_000_000
    assert set(steps_us.tolist()) <= {1, 2}  # a thousandth of 1327 us


# -- seeking ----------------------------------------------------------------------------------------------------------------------------


def seek_and_play(played, position_s):
    played.sent.clear()
    played.source.seek(position_s)
    played.send_until(lambda _state: bool(played.sent))
    return played.play()


def after(recording, position_s):
    """Payloads from a capture time on."""
    first_ns = recording.packets[0][0]
    return [payload for host_ns, _, payload, _ in recording.packets if host_ns - first_ns >= position_s * 1e9]


def test_seeking_after_the_end_plays_again_from_there(bench, turning, recording):
    played = bench(turning).open().start().play()
    for position_s in (1.5, 0.0, 2.9):
        assert seek_and_play(played, position_s).payloads == after(recording, position_s)


def test_ends_and_seeks_do_not_count_as_starvation(bench, tmp_path):
    recording = Recording().add_turning(200)  # one run: there is no moment at which more is waited for
    played = bench(recording.write(tmp_path / "short.pcap")).open().start().play()
    for position_s in (0.1, 0.0, 0.2):
        assert seek_and_play(played, position_s).payloads == after(recording, position_s)
    assert played.source.state().underruns == 0


def test_seeking_beyond_the_end_ends(bench, turning, recording):
    played = bench(turning).open().start().play()
    played.source.seek(50.0)
    played.send_until(lambda state: state.has_ended and played.source._seek_ns is None)
    assert seek_and_play(played, 2.0).payloads == after(recording, 2.0)


def test_seeking_while_it_plays_leaves_out_what_lies_between_and_its_position_is_reported(bench, turning, recording):
    slow = bench(turning, interval_scale=1.0).open().start()
    slow.send_until(lambda state: state.played_packets > 20)
    slow.source.seek(2.5)
    slow.send_until(lambda state: state.position_s >= 2.5).play()
    first = recording.payloads().index(after(recording, 2.5)[0])
    places = [recording.payloads().index(payload) for payload in slow.payloads]
    jump = int(np.argmax(np.diff(places))) + 1
    assert places == [*range(jump), *range(first, 2261)]
    assert jump < 700  # of 4 s that were read ahead nothing else is played
    deadlines = np.diff([each.deadline_ns for each in slow.sent])
    assert deadlines.min() >= 0
    assert deadlines[jump - 1] >= 30 * MS


def test_the_position_is_that_of_the_new_place_though_more_had_been_read_ahead(bench, turning):
    slow = bench(turning, interval_scale=1.0, loop="plain").open().start()
    slow.send_until(lambda state: state.played_packets > 200)
    slow.source.seek(0.05)
    slow.send_until(lambda _state: slow.word(Word.FLUSHED) > 0)
    played = slow.word(Word.PLAYED)
    slow.send_until(lambda state: state.played_packets > played + 20)
    assert 0.05 <= slow.source.state().position_s < 1.0


def test_of_two_quick_seeks_the_last_counts(bench, turning, recording):
    played = bench(turning).open().start().play()
    played.sent.clear()
    for position_s in (0.5, 2.0, 1.0, 2.75):
        played.source.seek(position_s)
    played.send_until(lambda _state: played.payloads[-len(after(recording, 2.75)) :] == after(recording, 2.75)).play()
    assert played.source.state().has_ended


def test_seeking_while_it_is_paused_takes_effect_when_it_goes_on(bench, turning, recording):
    slow = bench(turning, interval_scale=1.0).open().start()
    slow.send_until(lambda state: state.played_packets > 20)
    slow.source.pause(paused=True)
    slow.source.seek(2.8)
    slow.send_until(lambda state: slow.word(Word.FLUSHED) > 0 and state.waiting_packets > 100)
    held, epoch_ns, paused_at_ns = (slow.word(word) for word in (Word.PLAYED, Word.EPOCH_NS, Word.PAUSED_AT_NS))
    time.sleep(0.3)
    assert slow.word(Word.PLAYED) == held
    slow.sent.clear()
    slow.source.pause(paused=False)
    slow.play()
    assert slow.payloads == after(recording, 2.8)
    # Neither is the pause waited for again, nor is anything due at once.
    assert 50 * MS <= slow.sent[0].deadline_ns - slow.word(Word.EPOCH_NS) - (paused_at_ns - epoch_ns) < 80 * MS


@pytest.mark.extended
def test_a_seek_that_takes_long_loses_nothing(bench, tmp_path):
    """A part of the file without matching packets must be read through."""
    recording = Recording().add_turning(1507)
    unwanted = np.frombuffer(frame_of(CAMERA, b"x"), np.uint8)
    path = tmp_path / "long.pcap"
    with PcapWriter(path) as writer:
        for half in (recording.packets[:754], recording.packets[754:]):
            for host_ns, flow, payload, _ in half:
                writer.write(BASE_NS + host_ns, frame_of(flow, payload))
            if half[0][0] < 500 * MS:
                count = 150_000
                writer.write_many(np.full(count, BASE_NS + half[-1][0] + 1), np.tile(unwanted, (count, 1)), np.full(count, unwanted.size, np.int32))
    played = bench(path, flow=(FlowRule(match="192.168.1.201"),), interval_scale=1.0).open().start()
    played.send_until(lambda _state: played.source._has_read_all)
    seen_reading_ns = []

    def has_ended(state):
        if played.source._reader.skipped_datagrams < 2 * 150_000:
            seen_reading_ns.append(time.monotonic_ns())
            return False
        return state.has_ended

    played.source.seek((recording.packets[753][0] - recording.packets[0][0]) / 1e9 - 1e-6)
    played.send_until(has_ended)
    assert played.payloads[-754:] == recording.payloads()[753:]
    assert played.sent[-754].deadline_ns > seen_reading_ns[-1] + 40 * MS


def test_seeking_before_it_is_started_decides_where_it_begins(bench, turning, recording):
    waiting = bench(turning).open()
    waiting.source.seek(1.0)
    waiting.send_until(lambda _state: waiting.source._seek_ns is None and waiting.source._has_read_all)
    epoch_ns = time.monotonic_ns() - 10 * MS
    waiting.start(epoch_ns).send_until(lambda state: state.played_packets > 0).play()
    assert waiting.payloads == after(recording, 1.0)
    assert 0 <= waiting.sent[0].deadline_ns - epoch_ns < 5 * MS


def test_passes_are_counted_from_what_was_played_and_not_from_what_was_read_ahead(bench, tmp_path):
    recording = Recording().add_turning(100)
    slow = bench(recording.write(tmp_path / "short.pcap"), interval_scale=1.0, loop="plain", loops=8).open().start()
    slow.send_until(lambda state: state.played_packets > 150)
    slow.source.seek(0.0)
    slow.send_until(lambda _state: slow.word(Word.FLUSHED) > 0).play()
    before = int(np.argmax(np.diff([each.deadline_ns for each in slow.sent]))) + 1
    assert before > 150
    assert len(slow.sent) - before == 100 * (8 - (before - 1) // 100)


# -- ending -----------------------------------------------------------------------------------------------------------------------------


def test_it_stops_at_once_whatever_it_waits_for(bench, turning):
    looped = {"loop": "plain", "interval_scale": 1.0}
    for settings in ({"lookahead_packets": 64}, looped, looped | {"offset_s": 5.0}):
        opened = bench(turning, **settings).open()
        opened.source.stop()
        assert not opened.source.alive
    paused = bench(turning, **looped).open().start()
    paused.source.pause(paused=True)
    paused.source.seek(1.0)
    paused.source.stop()
    unopened = bench(turning)
    unopened.source.stop()
    assert not any(thread.is_alive() for thread in (paused.source._thread, unopened.source._thread) if thread)


def test_a_planner_that_takes_long_does_not_hold_up_the_end(bench, turning, monkeypatch):
    """It is a thread of which the process need not see the end: a 50 GB capture takes it a minute."""
    monkeypatch.setattr(source_module, "SMALL_FILE_BYTES", 0)
    opened = bench(turning, loop="seamless").open()
    assert opened.source._planner.daemon


@pytest.mark.extended
def test_memory_stays_as_it_is_through_hours_of_looping(bench, tmp_path):
    recording = Recording().add_turning(152)
    for number in range(10):
        recording.add(number * 20 * MS, CAMERA, b"frame")
    path = recording.write(tmp_path / "short.pcap")
    rings = allocate_rings(2, 512, 2048)
    # What is read ahead comes and goes: the fewest packets, so that they are no growth.
    looped = bench(path, rings=rings, loop="seamless", lookahead_packets=64).open().start()

    def least_bytes(after_passes):
        """Of twenty moments, that at which the least is read ahead."""
        sizes = []
        for passes in range(after_passes, after_passes + 20):
            looped.send_until(lambda state, passes=passes: looped.sent.clear() or state.passes >= passes)
            sizes.append(tracemalloc.get_traced_memory()[0])
        return min(sizes)

    gc.collect()
    tracemalloc.start()
    try:
        grown = -least_bytes(60) + least_bytes(240)
    finally:
        tracemalloc.stop()
    assert grown < 150_000  # five bytes a packet
    assert len(looped.source._positions) < 300


def test_a_real_capture_loops_without_a_starvation(bench, any_capture):
    path = any_capture("vlp16_strongest_gps.pcap")
    wanted = [datagram.payload for datagram in CaptureFile(path)]
    played = bench(path, loop="plain", loops=2, interval_scale=0.05, pace="capture").open().start().play()
    assert sorted(played.payloads) == sorted(wanted * 2)
    assert played.source.state().underruns == 0
