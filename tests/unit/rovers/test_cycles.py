"""Cycles of rovers on a clock of the test's own: every byte, every deadline, and what is left out when something is not in time."""

import struct
from collections import defaultdict

import numpy as np
import pytest

from hilsim.parts.rovers.cycles import advance
from hilsim.parts.rovers.fleet import NO_CHANGE, RoverCount, Row, allocate_fleet, put_command
from hilsim.parts.rovers.protocol import CHUNK_HEADER_DTYPE, LARGEST_PACKET, POSE_DTYPE, TELEMETRY_DTYPE, allocate_draft
from hilsim.parts.rovers.scan_queue import ANY_CYCLE, allocate_scan_queues, put_scan, waiting_scans
from hilsim.transmit.ring import allocate_rings

MS = 1_000_000
EPOCH_NS = 5_000 * MS
PERIOD_NS = 100 * MS


class Bench:
    """Rovers, and a sending loop that takes everything at once."""

    def __init__(self, rovers=1, *, noise=(0.0, 0.0, 0.0), period_ns=PERIOD_NS, slots=64, seed=5):
        self.fleet, self.queues = allocate_fleet(rovers), allocate_scan_queues(rovers, 4, 200_000)
        self.rings = allocate_rings(3 * rovers, slots, LARGEST_PACKET)
        self.rovers, self.seed = range(rovers), np.uint64(seed)
        for rover in self.rovers:
            self.fleet.row[rover] = 3 * rover + np.arange(3)
            self.fleet.number[rover], self.fleet.period_ns[rover], self.fleet.noise[rover] = rover + 1, period_ns, noise
        self.draft = allocate_draft()
        self.sent = []  # (made at, deadline, row, payload)
        self.is_taking = True

    def put(self, points=3, rover=0, first=0.0):
        pose = np.arange(6, dtype=np.float32) + np.float32(first)
        cloud = (np.arange(3 * points, dtype=np.float32).reshape(-1, 3) + np.float32(first)).astype(np.float32)
        return put_scan(self.queues, rover, ANY_CYCLE, pose, cloud), pose, cloud

    def run(self, from_ns, until_ns, step_ns=MS):
        """Let the loop wake every ``step_ns`` of rig time."""
        for at_ns in range(from_ns, until_ns, step_ns):
            now_ns = EPOCH_NS + at_ns
            for rover in self.rovers:
                again_ns = now_ns
                while again_ns <= now_ns:
                    again_ns = advance(self.queues, self.fleet, rover, self.rings, EPOCH_NS, now_ns, self.seed, self.draft)
                    if self.is_taking:
                        self.take(at_ns)
        return self.sent

    def take(self, at_ns):
        for row in range(self.rings.head.shape[0]):
            while self.rings.head[row, 0] < self.rings.tail[row, 0]:
                slot = self.rings.head[row, 0] % self.rings.deadline_ns.shape[1]
                size = self.rings.size[row, slot]
                self.sent.append((at_ns, int(self.rings.deadline_ns[row, slot]) - EPOCH_NS, row, self.rings.payload[row, slot, :size].tobytes()))
                self.rings.head[row, 0] += 1

    def of(self, row, rover=0):
        return [payload for _, _, sent_row, payload in self.sent if sent_row == 3 * rover + row]

    def deadlines(self, row, rover=0):
        return [deadline for _, deadline, sent_row, _ in self.sent if sent_row == 3 * rover + row]

    def counts(self, rover=0):
        return {name: int(self.fleet.counters[rover, name]) for name in (RoverCount.CYCLES, RoverCount.LATE, RoverCount.EMPTY)}


def test_a_cycles_packets_are_the_documented_bytes():
    bench = Bench()
    _, pose, cloud = bench.put(points=250)
    put_command(bench.fleet, 0, 0x0A)
    bench.run(0, 200 * MS)
    assert bench.of(Row.POSE) == [struct.pack("<d6f", 0.1, *pose)]
    chunks = [struct.pack("<dIII", 0.1, number, 3, len(part)) + part.tobytes() for number, part in enumerate(np.split(cloud, (100, 200)))]
    assert bench.of(Row.LIDAR) == chunks
    assert bench.of(Row.TELEMETRY) == [struct.pack("<dB", 0.1, 0x0A)]
    assert [len(payload) for payload in (*bench.of(Row.POSE), *chunks, *bench.of(Row.TELEMETRY))] == [32, 1220, 1220, 620, 9]


@pytest.mark.parametrize(("points", "sizes"), [(0, []), (1, [32]), (100, [1220]), (101, [1220, 32]), (28_800, [1220] * 288)])
def test_a_scan_comes_in_full_chunks_and_a_rest(points, sizes):
    bench = Bench()
    bench.put(points=points)
    bench.run(0, 200 * MS)
    assert [len(payload) for payload in bench.of(Row.LIDAR)] == sizes
    assert len(bench.of(Row.POSE)) == len(bench.of(Row.TELEMETRY)) == 1


@pytest.mark.parametrize("points", [0, 1000, 9000, 28_800, 100_000])
def test_every_cycle_begins_on_its_time_and_is_sent_before_the_next(points):
    bench = Bench()
    for cycle in range(12):
        bench.put(points=points)
        bench.run(cycle * 100 * MS - 50 * MS, cycle * 100 * MS + 50 * MS)
    assert bench.deadlines(Row.POSE) == [cycle * 100 * MS for cycle in range(1, 12)][: len(bench.of(Row.POSE))]
    assert len(bench.of(Row.POSE)) >= 10
    by_deadline = sorted(bench.sent, key=lambda each: each[1])
    assert by_deadline == sorted(bench.sent, key=lambda each: (struct.unpack_from("<d", each[3]), each[1]))  # no cycle reaches into the next one
    kinds = defaultdict(list)
    for _, _, row, payload in by_deadline:
        kinds[payload[:8]].append(row)
    for rows in list(kinds.values())[:-1]:
        assert rows == [Row.POSE, *[Row.LIDAR] * -(-points // 100), Row.TELEMETRY]


def test_chunks_are_spread_over_the_cycle_and_not_sent_at_once():
    bench = Bench()
    bench.put(points=28_800)
    bench.run(0, 200 * MS)
    distances = np.diff(bench.deadlines(Row.LIDAR))
    assert len(set(distances.tolist())) == 1
    assert 200_000 < distances[0] <= 280_000


def test_nothing_is_put_into_the_rings_more_than_20_ms_ahead_or_late():
    bench = Bench()
    bench.put(points=28_800)
    bench.run(0, 200 * MS)
    ahead = [deadline - made for made, deadline, _, _ in bench.sent]
    assert max(ahead) <= 20 * MS
    assert min(ahead) > 0


def test_all_packets_of_a_cycle_bear_one_time_stamp_to_the_bit_and_stamps_are_exact():
    bench = Bench()
    for cycle in range(5):
        bench.put(points=1000)
        bench.run(cycle * 100 * MS, (cycle + 1) * 100 * MS)
    stamps = [payload[:8] for payload in bench.of(Row.POSE)]
    assert [struct.unpack("<d", stamp)[0] for stamp in stamps] == [cycle * 100_000_000 / 1e9 for cycle in range(1, len(stamps) + 1)]
    assert {payload[:8] for payload in bench.of(Row.LIDAR) + bench.of(Row.TELEMETRY)} <= set(stamps)


def test_rovers_of_other_rates_keep_their_own_time():
    bench = Bench(rovers=2)
    bench.fleet.period_ns[1] = 40 * MS
    for at_ns in range(0, 1000 * MS, 20 * MS):
        for rover in bench.rovers:
            bench.put(rover=rover)
        bench.run(at_ns, at_ns + 20 * MS)
    assert bench.deadlines(Row.POSE, 0)[:5] == [100 * MS, 200 * MS, 300 * MS, 400 * MS, 500 * MS]
    assert bench.deadlines(Row.POSE, 1)[:5] == [40 * MS, 80 * MS, 120 * MS, 160 * MS, 200 * MS]


# -- noise ------------------------------------------------------------------------------------------------------------------------------


def noisy_differences(seed, cycles=4, step_ns=MS):
    bench = Bench(noise=(0.5, 0.25, 0.125), seed=seed)
    for cycle in range(cycles):
        _, pose, cloud = bench.put(points=3000)
        bench.run(cycle * 100 * MS, (cycle + 1) * 100 * MS, step_ns)
    poses = np.array([struct.unpack_from("<6f", payload, 8) for payload in bench.of(Row.POSE)])
    points = np.concatenate([np.frombuffer(payload, "<f4", offset=20).reshape(-1, 3) for payload in bench.of(Row.LIDAR)])
    scans = len(points) // 3000
    return poses - pose, points[: scans * 3000].reshape(scans, 3000, 3) - cloud


def test_noise_is_normal_independent_and_of_the_sizes_asked_for():
    poses, points = noisy_differences(seed=1, cycles=40)
    assert np.std(points) == pytest.approx(0.125, rel=0.02)
    assert abs(np.mean(points)) < 0.002
    assert np.std(poses[:, :3]) == pytest.approx(0.5, rel=0.2)
    assert np.std(poses[:, 3:]) == pytest.approx(0.25, rel=0.2)
    flat = points.reshape(len(points), -1)
    assert np.abs(np.corrcoef(flat[:5]) - np.eye(5)).max() < 0.04  # of one cycle and the next
    assert np.abs(np.corrcoef(points.reshape(-1, 3).T) - np.eye(3)).max() < 0.01  # of x, y and z
    fourth = np.mean((points / 0.125) ** 4)
    assert fourth == pytest.approx(3.0, abs=0.1)


def test_noise_is_the_seeds_and_does_not_depend_on_when_the_loop_woke():
    again = noisy_differences(seed=1)
    assert all(np.array_equal(one, other) for one, other in zip(noisy_differences(seed=1, step_ns=7 * MS), again, strict=True))
    assert not np.array_equal(noisy_differences(seed=2)[1], again[1])


# -- commands ---------------------------------------------------------------------------------------------------------------------------


def test_commands_are_obeyed_one_a_cycle_in_their_order_and_an_empty_one_takes_a_cycle():
    bench = Bench()
    for buttons in (1, 2, 0xFF, NO_CHANGE, 9, 0):
        put_command(bench.fleet, 0, buttons)
    for cycle in range(9):
        bench.put()
        bench.run(cycle * 100 * MS, (cycle + 1) * 100 * MS)
    assert [payload[8] for payload in bench.of(Row.TELEMETRY)][:8] == [1, 2, 255, 255, 9, 0, 0, 0]


def test_a_command_that_comes_before_a_cycle_begins_is_answered_in_it():
    bench = Bench()
    for _ in range(3):
        bench.put(points=1000)
    bench.run(0, 200 * MS)  # the next cycle's pose and first chunks are made already
    put_command(bench.fleet, 0, 7)
    bench.run(200 * MS, 300 * MS)
    assert [payload[8] for payload in bench.of(Row.TELEMETRY)] == [0, 7]


def test_commands_that_come_too_fast_are_refused_and_the_others_kept():
    bench = Bench()
    assert [put_command(bench.fleet, 0, 1) for _ in range(1025)] == [True] * 1024 + [False]


# -- what is not in time ----------------------------------------------------------------------------------------------------------------


def test_a_cycle_without_a_scan_is_counted_and_its_scan_comes_with_the_next():
    bench = Bench()
    bench.run(0, 150 * MS)
    bench.put()
    bench.run(150 * MS, 300 * MS)
    assert bench.deadlines(Row.POSE) == [200 * MS]
    assert bench.counts()[RoverCount.EMPTY] == 2  # of 100 ms, and that of 300 ms
    assert bench.counts()[RoverCount.LATE] == 0


def test_after_a_standstill_the_cycles_missed_are_counted_and_never_sent_at_once():
    bench = Bench()
    for _ in range(4):
        bench.put()
    bench.run(0, 110 * MS)
    bench.run(475 * MS, 700 * MS)
    assert bench.deadlines(Row.POSE) == [100 * MS, 500 * MS, 600 * MS, 700 * MS]
    assert bench.counts() == {RoverCount.CYCLES: 3, RoverCount.LATE: 3, RoverCount.EMPTY: 0}


def test_a_full_ring_makes_a_rover_wait_and_loses_nothing():
    bench = Bench(slots=4)
    bench.put(points=1000)
    bench.is_taking = False
    for at_ns in range(80 * MS, 115 * MS, MS):
        bench.run(at_ns, at_ns + MS)
        bench.take(at_ns)
    assert [struct.unpack_from("<I", payload, 8)[0] for payload in bench.of(Row.LIDAR)] == list(range(10))


def test_a_scan_stays_on_the_queue_until_its_cycle_has_ended():
    bench = Bench()
    bench.put(points=10_000)
    bench.run(0, 105 * MS)
    assert waiting_scans(bench.queues, 0) == 1
    bench.run(105 * MS, 160 * MS)
    assert waiting_scans(bench.queues, 0) == 0


def test_a_queue_takes_scans_while_there_is_room_for_them_and_their_points_and_wraps():
    queues = allocate_scan_queues(1, 4, 1000)
    pose, cloud = np.zeros(6, np.float32), np.zeros((400, 3), np.float32)
    assert [put_scan(queues, 0, ANY_CYCLE, pose, cloud) for _ in range(3)] == [True, True, False]
    assert [put_scan(queues, 0, ANY_CYCLE, pose, cloud[:1]) for _ in range(3)] == [True, True, False]


def test_points_that_wrap_around_the_queues_memory_are_sent_as_they_were():
    bench = Bench()
    bench.queues = allocate_scan_queues(1, 4, 1000)
    clouds = []
    for cycle in range(6):
        is_put, _, cloud = bench.put(points=700, first=1000.0 * cycle)
        clouds += [cloud] if is_put else []
        bench.run(cycle * 100 * MS + 30 * MS, (cycle + 1) * 100 * MS + 30 * MS)  # its chunks take 1.5 ms
    sent = b"".join(payload[20:] for payload in bench.of(Row.LIDAR))
    assert len(clouds) > 3
    assert sent == b"".join(cloud.tobytes() for cloud in clouds)[: len(sent)]
    assert len(sent) >= 3 * 700 * 12


def test_the_records_for_reading_packets_are_of_the_documented_sizes():
    assert (POSE_DTYPE.itemsize, CHUNK_HEADER_DTYPE.itemsize, TELEMETRY_DTYPE.itemsize) == (32, 20, 9)
