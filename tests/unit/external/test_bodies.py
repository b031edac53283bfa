"""Poses that arrive late, jittered or never, and the keys that are committed of them."""

import math

import numpy as np
import pytest

from hilsim.parts.external.bodies import BodyCount, add_body, build_bodies, extend
from hilsim.parts.external.clock import SETTLING_NS, build_clock, note_arrival
from hilsim.parts.external.loop import ClockKind, LoopCount, build_receiver, take_message
from hilsim.parts.external.messages import HAS_RATES, HAS_VELOCITY, IS_HIDDEN, Fault, MessageKind, encode, poses_of
from hilsim.parts.external.recording import KeyRecorder, load_recording
from hilsim.world.geometry.live_keys import UNSEEN_M, build_live_keys, live_pose
from hilsim.world.geometry.rotations import about_axis
from hilsim.world.platforms.live import build_live_pose, live_state, write_state

MS = 1_000_000
AHEAD_NS, MARGIN_NS = 14 * MS, 5 * MS


class Bench:
    """A receiver whose time the test advances: each millisecond it takes what has arrived, and commits what is needed."""

    def __init__(self, *, delay_ms=40.0, clock=ClockKind.SENDER, coasts=False, is_logged=False, extrapolate_ms=100):
        self.live, self.keys = build_live_pose(4096), build_live_keys(2, 4096)
        standing = np.zeros(13)
        standing[:3], standing[6] = (1.0, 2.0, 3.0), 1.0
        self.live.state[0] = standing
        write_state(self.live, 0, standing)
        self.bodies = build_bodies(
            self.live,
            self.keys,
            speed_mps=100.0,
            extrapolate_ns=extrapolate_ms * MS,
            ahead_ns=AHEAD_NS,
            margin_ns=MARGIN_NS,
            delay_ns=round(delay_ms * MS),
            coasts=coasts,
            is_logged=is_logged,
        )
        add_body(self.bodies, 7, 0, 100.0)
        add_body(self.bodies, 9, 1, 100.0)
        self.receiver = build_receiver(self.bodies, clock)
        self.now_ns, self.epoch_ns, self.mail, self.state = 0, 0, [], np.zeros(13)

    def send(self, payload, arrival_ns):
        """Let a datagram arrive."""
        self.mail.append((arrival_ns, len(self.mail), payload))

    def run(self, until_ns):
        """Advance; returns what was readable at each millisecond: rig time, and pose of the platform at the latest firing that may be rendered."""
        self.mail.sort()
        seen = []
        while self.now_ns < until_ns:
            while self.mail and self.mail[0][0] <= self.now_ns:
                arrival_ns, _, payload = self.mail.pop(0)
                self.receiver.buffer[: len(payload)] = np.frombuffer(payload, np.uint8)
                take_message(self.receiver, len(payload), arrival_ns, self.epoch_ns, self.epoch_ns)
            extend(self.bodies, self.now_ns, self.receiver.words[5] != 0, self.state)
            at_ns = self.now_ns + AHEAD_NS
            seen.append((at_ns, live_state(self.live, at_ns), live_pose(self.keys, 0, at_ns)))
            self.now_ns += MS
        return seen

    def count(self, name):
        """A count of bodies or of the loop."""
        return int(self.bodies.counts[BodyCount[name]] if name in BodyCount.__members__ else self.receiver.counts[LoopCount[name]])


def path(time_ns):
    """Position and orientation on a circle of 25.5 m at 20 m/s and 45 deg/s."""
    angle = 1e-9 * time_ns * math.radians(45.0)
    radius = 20.0 / math.radians(45.0)
    return np.array((radius * math.cos(angle), radius * math.sin(angle), 1.5)), np.array(about_axis((0.0, 0.0, 1.0), angle + math.pi / 2))


def pose(time_ns, *, stamp_ns=None, identity=0, sequence=0, sender=1, flags=0):
    position, turn = path(time_ns)
    poses = poses_of([identity], [position], [turn])
    poses["flags"] = flags
    if flags & HAS_VELOCITY:
        angle = 1e-9 * time_ns * math.radians(45.0)
        poses["velocity_mps"] = (-20.0 * math.sin(angle), 20.0 * math.cos(angle), 0.0)
    if flags & HAS_RATES:
        poses["rates_radps"] = (0.0, 0.0, math.radians(45.0))
    return encode(MessageKind.POSES, poses, time_ns=time_ns if stamp_ns is None else stamp_ns, sender=sender, sequence=sequence)


def errors(seen, delay_ns, from_ns):
    """Largest distance (m) and turn (deg) of what was readable from the path, delayed, and largest error of the delay (s): displacement along the path."""
    found = []
    for at_ns, (position, turn), _ in seen:
        if at_ns < from_ns:
            continue
        expected, expected_turn = path(at_ns - delay_ns)
        chord = min(np.linalg.norm(np.subtract(turn, expected_turn)), np.linalg.norm(np.add(turn, expected_turn)))
        away, ahead = np.subtract(position, expected), np.array((-expected[1], expected[0], 0.0)) / np.hypot(expected[0], expected[1])
        along = float(away @ ahead)
        found.append((np.linalg.norm(away - along * ahead), math.degrees(4.0 * math.asin(0.5 * chord)), abs(along) / 20.0))
    return np.max(found, axis=0)


@pytest.mark.parametrize(("rate_hz", "delay_ms"), [(1000, 40.0), (100, 50.0), (60, 60.0)])
@pytest.mark.parametrize("flags", [0, HAS_VELOCITY | HAS_RATES], ids=["poses only", "with velocities"])
def test_the_platform_follows_a_path_with_jitter_and_loss_at_the_declared_delay(rate_hz, delay_ms, flags):
    bench, rng = Bench(delay_ms=delay_ms), np.random.default_rng(4)
    for number in range(3 * rate_hz):
        time_ns = number * 10**9 // rate_hz
        if rng.random() > 0.02:
            arrival_ns = time_ns + 300_000 + round(5 * MS * rng.random())
            bench.send(pose(time_ns, stamp_ns=time_ns + 77 * 10**9, sequence=number, flags=flags), arrival_ns)
    seen = bench.run(3 * 10**9)
    offset_ns = int(bench.receiver.clock[2]) + 77 * 10**9  # the fastest message's time on the way
    assert 300_000 <= offset_ns < 500_000
    metres, degrees, seconds = errors(seen, round(delay_ms * MS) + offset_ns, 10**9)
    assert metres < 1e-3
    assert seconds < 0.2e-3
    assert degrees < 0.01
    assert bench.count("LOST") > 0


def test_a_platform_is_where_the_rig_has_it_until_its_first_pose_and_waits_there_until_the_clock_is_known():
    bench = Bench()
    assert {found[1][0] for found in bench.run(100 * MS)} == {(1.0, 2.0, 3.0)}
    for number in range(200):
        bench.send(pose(number * 5 * MS, sequence=number), 100 * MS + number * 5 * MS)
    seen = bench.run(1100 * MS)
    waiting = [found[1][0] for found in seen if 200 * MS < found[0] < 100 * MS + SETTLING_NS]
    assert set(waiting) == {tuple(path(0)[0])}
    metres, _, _ = errors(seen, 140 * MS, 100 * MS + SETTLING_NS + 60 * MS)
    assert metres < 1e-3


def test_a_key_never_changes_what_may_have_been_rendered():
    bench, rng = Bench(delay_ms=15.0), np.random.default_rng(1)  # most poses are late
    for number in range(2000):
        bench.send(pose(number * MS, sequence=number, identity=(0, 7)[number % 2]), number * MS + round(20 * MS * rng.random() ** 4))
    seen = bench.run(2000 * MS)
    assert bench.count("LATE") > 100
    assert bench.count("EXTRAPOLATED") > 100
    for at_ns, platform, thing in seen:
        assert live_state(bench.live, at_ns) == platform
        assert live_pose(bench.keys, 0, at_ns) == thing


@pytest.mark.parametrize("clock", ClockKind)
def test_no_key_is_committed_in_what_was_rendered_before_the_thread_began(tmp_path, clock):
    bench = Bench(clock=clock, is_logged=True)
    recorder = KeyRecorder(tmp_path / "keys", bench.bodies)
    bench.now_ns, bench.epoch_ns, bench.bodies.known[1] = -300 * MS, 10**9, 35 * MS
    for number in range(500):
        time_ns = (number - 300) * MS
        bench.send(pose(time_ns, stamp_ns=bench.epoch_ns + time_ns, sequence=number, identity=(0, 7)[number % 2]), time_ns)
    bench.run(200 * MS)
    recorder.close()
    for at_ns in range(0, 35 * MS, MS):
        assert tuple(live_state(bench.live, at_ns)[0]) == (1.0, 2.0, 3.0)
        assert live_pose(bench.keys, 0, at_ns)[0][2] == UNSEEN_M
    recorded = load_recording(tmp_path / "keys", {7: 0, 9: 1})
    assert live_state(recorded.live, 150 * MS) == live_state(bench.live, 150 * MS)
    assert live_pose(recorded.keys, 0, 150 * MS) == live_pose(bench.keys, 0, 150 * MS)


@pytest.mark.parametrize("coasts", [False, True])
def test_while_the_sender_is_silent_the_platform_stops_or_goes_on_and_objects_are_not_seen(coasts):
    bench = Bench(coasts=coasts)
    for number in range(100):
        both = np.concatenate([poses_of([identity], [(0.01 * number * 10, 0.0, 0.0)], [(1.0, 0.0, 0.0, 0.0)]) for identity in (0, 7)])
        bench.send(encode(MessageKind.POSES, both, time_ns=number * 10 * MS, sender=1, sequence=number), number * 10 * MS)
    seen = bench.run(2000 * MS)
    platform = {at_ns: state[0][0] for at_ns, state, _ in seen}
    assert platform[1014 * MS] == pytest.approx(9.74, abs=0.01)
    if coasts:
        assert platform[2000 * MS] == pytest.approx(19.6, abs=0.05)
    else:
        assert platform[1500 * MS] == platform[2000 * MS] == pytest.approx(10.9, abs=0.1)
    assert [thing[0][2] for at_ns, _, thing in seen if at_ns in {900 * MS, 1400 * MS}] == [0.0, UNSEEN_M]
    assert bench.count("SILENCES") == 1


def test_an_object_that_its_sender_hides_is_not_seen_until_it_shows_it_again():
    bench = Bench(clock=ClockKind.MONOTONIC)
    for number in range(30):
        bench.send(pose(number * 10 * MS, identity=7, sequence=number, flags=IS_HIDDEN if 10 <= number < 20 else 0), number * 10 * MS)
    shown = {at_ns // MS: thing[0][2] < UNSEEN_M for at_ns, _, thing in bench.run(330 * MS)}
    assert [shown[at] for at in (60, 138, 141, 238, 241, 300)] == [True, True, False, False, True, True]


def test_a_pose_that_is_too_far_away_is_refused_and_a_sender_that_leaps_is_followed_in_a_nanosecond():
    bench = Bench(clock=ClockKind.MONOTONIC)
    for number in range(100):
        place = (0.0, 0.0, 0.0) if number < 50 else (30.0, 0.0, 0.0)
        bench.send(
            encode(MessageKind.POSES, poses_of([0], [place], [(1.0, 0.0, 0.0, 0.0)]), time_ns=number * 10 * MS, sequence=number), number * 10 * MS
        )
    seen = bench.run(1000 * MS)
    assert bench.count("LEAPS") > 25
    positions = [state[0][0] for at_ns, state, _ in seen if at_ns > 100 * MS]
    assert all(value == pytest.approx(0.0, abs=1e-9) or value == pytest.approx(30.0, abs=0.01) for value in positions)


def test_a_second_sender_is_refused_until_the_first_one_is_silent_or_says_bye():
    bench = Bench()
    for number in range(50):
        bench.send(pose(number * 10 * MS, sequence=number, sender=1), number * 10 * MS)
        bench.send(pose(number * 10 * MS, sequence=number, sender=2), number * 10 * MS + 1)
    bench.run(500 * MS)
    assert bench.count("STRANGERS") == 50
    bench.send(encode(MessageKind.BYE, time_ns=0, sender=1, sequence=50), 500 * MS)
    bench.send(pose(0, sender=2), 501 * MS)
    bench.run(510 * MS)
    assert (bench.count("STRANGERS"), int(bench.receiver.words[2])) == (50, 2)


def test_a_datagram_with_a_fault_and_a_record_with_a_fault_are_counted_by_their_fault():
    bench = Bench(clock=ClockKind.MONOTONIC)
    good = pose(0)
    bench.send(good[:31], 0)
    bench.send(good[:4] + b"\x09" + good[5:], 0)
    bench.send(good[:40] + np.array(np.nan).tobytes() + good[48:], 0)
    bench.send(pose(0, identity=99), 0)
    bench.run(5 * MS)
    assert (bench.count("MESSAGES"), bench.count("MALFORMED"), bench.count("REFUSED_POSES"), bench.count("UNKNOWN")) == (4, 2, 1, 1)
    assert [int(bench.receiver.faults[fault]) for fault in (Fault.SHORT, Fault.VERSION, Fault.NOT_FINITE)] == [1, 1, 1]


def test_lost_datagrams_are_those_that_do_not_come_even_late():
    bench, rng = Bench(), np.random.default_rng(6)
    lost, latest = 0, 900 * MS
    for number in range(1000):
        if number < 900 and number % 9 == 4:
            lost += 1
        else:
            bench.send(pose(number * MS, sequence=(number + 2**32 - 500) % 2**32), number * MS + round(20 * MS * rng.random()))
    bench.run(latest + 200 * MS)
    assert bench.count("LOST") == lost
    assert bench.count("REORDERED") > 300


def test_a_gap_of_many_datagrams_is_counted_whole():
    bench = Bench()
    for sequence in (0, 1000, 1001, 1100):
        bench.send(pose(0, sequence=sequence), sequence * MS)
    bench.run(1200 * MS)
    assert bench.count("LOST") == 999 + 98 - 63  # those of the last 64 may still come


def test_a_far_sequence_number_is_one_reordering_and_the_sender_goes_on():
    bench = Bench()
    for at, sequence in enumerate((0, 1, 2_000_000_000, 2, 3, 4)):
        bench.send(pose(0, sequence=sequence), at * MS)
    bench.run(10 * MS)
    assert (bench.count("LOST"), bench.count("REORDERED")) == (0, 2)  # there, and back


def test_a_pose_far_ahead_is_refused():
    bench = Bench(clock=ClockKind.MONOTONIC)
    bench.send(pose(10**9), 0)
    bench.run(5 * MS)
    assert (bench.count("EARLY"), bench.count("POSES")) == (1, 0)


def test_a_recording_gives_every_pose_that_was_readable_to_the_last_bit(tmp_path):
    bench, rng = Bench(delay_ms=25.0, is_logged=True), np.random.default_rng(2)
    recorder = KeyRecorder(tmp_path / "keys", bench.bodies)
    for number in range(1500):
        if rng.random() > 0.05:
            bench.send(pose(number * MS, sequence=number, identity=(0, 7)[number % 2]), number * MS + round(15 * MS * rng.random() ** 3))
    seen = bench.run(2000 * MS)
    recorder.close()
    recorded = load_recording(tmp_path / "keys", [7, 9])
    for at_ns, platform, thing in seen:
        assert live_state(recorded.live, at_ns) == platform
        assert live_pose(recorded.keys, 0, at_ns) == thing
    assert recorder.fault == ""


def test_a_mapping_that_began_with_messages_that_had_waited_begins_again():
    bench = Bench()
    for number in range(2000):
        bench.send(pose(number * MS, sequence=number), number * MS + (60 * MS if number < 800 else 100_000))
    seen = bench.run(2000 * MS)
    assert bench.count("RESTARTS") >= 1
    metres, _, seconds = errors(seen, 40 * MS, 1700 * MS)
    assert metres < 1e-3
    assert seconds < 0.2e-3


def test_the_first_message_after_a_silence_does_not_move_the_mapping():
    clock = build_clock()
    for number in range(3000):
        note_arrival(clock, number * MS, number * MS + 200_000 + number % 7 * MS)
    assert note_arrival(clock, 60_000 * MS, 60_004 * MS) - 60_000 * MS < 206_000


@pytest.mark.extended
@pytest.mark.parametrize("back_ms", [30, 300, 900])
def test_a_sender_whose_clock_pauses_or_is_set_back_is_followed_again_after_two_seconds(back_ms):
    bench = Bench()
    for number in range(800):
        time_ns = number * 10 * MS
        stamp_ns = 10**12 + time_ns - (0 if number < 200 else back_ms * MS)
        bench.send(pose(time_ns, stamp_ns=stamp_ns, sequence=number), time_ns + MS)
    seen = bench.run(8000 * MS)
    late = bench.count("LATE")
    assert np.all(errors(seen, 41 * MS, 5500 * MS) < (1e-3, 0.01, 1e-4))
    assert late < 220
    assert bench.count("RESTARTS") == 1


def test_the_mapping_follows_a_clock_that_drifts_and_does_not_follow_jitter():
    clock, rng, offsets = build_clock(), np.random.default_rng(3), []
    for number in range(60_000):
        sent_ns = number * MS
        stamp_ns = 5 * 10**9 + sent_ns + sent_ns // 50_000  # 20 ppm fast
        arrival_ns = sent_ns + 200_000 + round(5 * MS * rng.random())
        mapped_ns = note_arrival(clock, stamp_ns, max(arrival_ns, sent_ns))
        offsets.append(mapped_ns - sent_ns)
    late = np.array(offsets[3000:])
    assert abs(np.median(late) - 200_000) < 100_000
    assert np.abs(late - 200_000).max() < 200_000
