"""Pauses and seeks at exact times: the player while packets flow, and a replay offline, do the same."""

import time
from collections import deque

import numpy as np
import pytest

from hilsim.capture.pcap import PcapWriter
from hilsim.parts.replays.actions.timed import CAPACITY, Action, TimedWord, act, allocate_actions
from hilsim.parts.replays.flows import LoopbackSources
from hilsim.parts.replays.offline import OfflineReplay, TimedAction
from hilsim.parts.replays.specs import ReplaySpec
from hilsim.transmit.packet_queue import allocate_packet_queue, put, take, waiting
from tests.unit.replays.streams import BASE_NS, Recording, frame_of
from tests.unit.replays.test_source import Bench

MS = 1_000_000
_NEVER_NS = -(2**62)


def queue_of(due_ns):
    queue = allocate_packet_queue(64, 16)
    for number, due in enumerate(due_ns):
        assert put(queue, 0, due, due, np.frombuffer(number.to_bytes(8, "little"), np.uint8).copy(), 8)
    return queue


def test_an_action_begins_with_the_first_packet_that_is_due_at_its_time():
    queue, timed = queue_of([10, 20, 30]), allocate_actions()
    timed.add(Action.PAUSE, 1020)
    assert act(queue, timed, 0, 1000, 1.0, 1000, _NEVER_NS) == 0
    assert (timed.decided_ns(0), timed.is_done(0), timed.held_ns) == (1020, False, 0)
    take(queue, 1)
    act(queue, timed, 0, 1000, 1.0, 1001, 1010)
    assert (timed.is_done(0), timed.held_ns) == (True, 1020)
    timed.add(Action.RESUME, 1500)
    act(queue, timed, 0, 1000, 1.0, 1030, 1010)
    assert (timed.held_ns, timed.moved_ns, timed.decided_ns(1)) == (0, 480, 1500)


def test_an_action_that_comes_too_late_begins_after_what_is_in_the_rings_and_states_it():
    queue, timed = queue_of([30]), allocate_actions()
    timed.add(Action.PAUSE, 1005)
    act(queue, timed, 0, 1000, 1.0, 1000, 1020)
    assert (timed.decided_ns(0), timed.held_ns) == (1021, 1021)
    timed.add(Action.RESUME, 1010)
    act(queue, timed, 0, 1000, 1.0, 1400, 1020)
    assert (timed.decided_ns(1), timed.moved_ns) == (1400, 379)  # nothing is due in the past


def test_a_seek_empties_the_queue_and_gives_its_place_on_the_line():
    queue, timed = queue_of([10, 20, 30]), allocate_actions()
    timed.add(Action.SEEK, 1020)
    assert act(queue, timed, 0, 1000, 0.5, 1000, 1004) == 0
    take(queue, 3)
    put(queue, 0, 45, 45, np.zeros(8, np.uint8), 8)
    assert act(queue, timed, 0, 1000, 0.5, 1001, 1004) == 1
    assert (timed.is_done(0), int(timed.line_ns[0]), waiting(queue)) == (True, 40, 0)


def test_actions_of_an_empty_queue_begin_when_their_time_has_come():
    queue, timed = queue_of([]), allocate_actions()
    timed.add(Action.PAUSE, 1020)
    act(queue, timed, 0, 1000, 1.0, 1019, _NEVER_NS)
    assert not timed.is_done(0)
    act(queue, timed, 0, 1000, 1.0, 1020, _NEVER_NS)
    assert timed.held_ns == 1020


def test_a_pause_by_hand_is_not_begun_again_and_a_seek_in_it_goes_on_from_there():
    queue, timed = queue_of([10]), allocate_actions()
    timed.add(Action.PAUSE, 1020)
    timed.add(Action.SEEK, 1030)
    act(queue, timed, 1005, 1000, 1.0, 1010, _NEVER_NS)
    assert (timed.held_ns, int(timed.line_ns[1])) == (0, 5)


def test_a_full_table_refuses_another_action():
    timed = allocate_actions()
    for _ in range(CAPACITY):
        timed.add(Action.PAUSE, 1)
    with pytest.raises(ValueError, match=f"at most {CAPACITY} actions may wait"):
        timed.add(Action.PAUSE, 1)
    timed.words[TimedWord.DONE] = 1
    assert timed.has_room


@pytest.fixture
def turning(tmp_path):
    recording = Recording().add_turning(2260)  # three seconds
    path = tmp_path / "turning.pcap"
    with PcapWriter(path) as writer:
        for host_ns, flow, payload, _ in recording.packets:
            writer.write(BASE_NS + host_ns, frame_of(flow, payload))
    return path


def offline(path, actions, step_ns=7 * MS, **settings):
    """Deadlines in rig time and payloads of a replay offline."""
    spec = ReplaySpec(**{"name": "recorded", "file": path.name, "retime": "none"} | settings)
    replay = OfflineReplay(spec, path, LoopbackSources(), utc_epoch_ns=0)
    replay.actions = deque(TimedAction(*action) for action in actions)
    found = []
    for stop_ns in range(step_ns, 6000 * MS, step_ns):
        for batch in replay.span(stop_ns):
            found += [
                (due, payload[42:size].tobytes())
                for due, payload, size in zip(batch.deadline_ns.tolist(), batch.payload, batch.size.tolist(), strict=True)
            ]
    return found


def test_offline_a_pause_makes_everything_later_and_a_seek_goes_on_at_a_capture_time(turning):
    plain = offline(turning, [])
    moved = offline(turning, [(500 * MS, Action.PAUSE), (900 * MS, Action.RESUME)])
    assert moved == [(due + (400 * MS if due >= 500 * MS else 0), payload) for due, payload in plain]
    sought = offline(turning, [(500 * MS, Action.SEEK, 2000 * MS)])
    count = sum(due < 500 * MS for due, _ in plain)
    assert sought[:count] == plain[:count]
    after = [payload for _, payload in plain][-(len(sought) - count) :]
    assert [payload for _, payload in sought[count:]] == after
    assert 500 * MS <= sought[count][0] < 505 * MS
    assert abs((plain[-len(after)][0]) - 2000 * MS) < 5 * MS


ACTIONS = [
    (200 * MS, Action.PAUSE),
    (350 * MS + 123_457, Action.RESUME),
    (500 * MS, Action.SEEK, 2000 * MS),
    (700 * MS, Action.PAUSE),
    (710 * MS, Action.SEEK, 1000 * MS),
    (900 * MS, Action.RESUME),
    (1300 * MS, Action.SEEK, 2700 * MS),
]


def test_offline_the_length_of_a_step_changes_nothing(turning):
    plain = offline(turning, ACTIONS)
    assert plain == offline(turning, ACTIONS, step_ns=333 * MS)
    assert all(not 200 * MS <= due < 350 * MS and not 700 * MS <= due < 900 * MS for due, _ in plain)


@pytest.mark.parametrize("scale", [1.0, 0.7])
def test_a_running_replay_and_an_offline_one_play_the_same(turning, scale):
    bench = Bench(turning, interval_scale=scale).open()
    try:
        epoch_ns = time.monotonic_ns() + 100 * MS
        bench.start(epoch_ns)
        made = []
        for planned_ns, action, *position in ACTIONS:
            # What a busy machine has not yet read of a seek cannot be played before the next action begins.
            bench.send_until(
                lambda state, planned_ns=planned_ns: (
                    time.monotonic_ns() >= epoch_ns + planned_ns - 70 * MS and (state.waiting_packets > 0 or state.is_paused)
                )
            )
            at_ns = max(planned_ns, time.monotonic_ns() - epoch_ns + 70 * MS)
            paused = {Action.PAUSE: True, Action.RESUME: False}.get(action)
            begun_ns = bench.source.act(epoch_ns + at_ns, paused=paused, position_s=position[0] / 1e9 if position else None)
            made.append((begun_ns - epoch_ns, action, *position))
            assert begun_ns - epoch_ns >= at_ns
        bench.send_until(lambda state: state.has_ended)
        bench.send()
        assert bench.source.state().postponed_s == 0.0
    finally:
        bench.source.stop()
    lived = [(each.deadline_ns - epoch_ns, bytes(each.payload)) for each in bench.sent]
    assert lived == offline(turning, made, interval_scale=scale)
