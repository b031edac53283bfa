"""Render threads with their threads and rings, without a sending loop: the test takes from the rings."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from hilsim.compilation.atomics import publish
from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.emulator.batch import Flow
from hilsim.emulator.lidar import LidarEmulator
from hilsim.errors import TransmitError
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.sensor.setup import WHOLE_TURN_DEG
from hilsim.streaming.device_loop import PACKETS_TOGETHER
from hilsim.streaming.render_state import LoopPlace, RenderCounter, allocate_state
from hilsim.streaming.render_thread import RenderThread
from hilsim.transmit.ring import allocate_rings, depth
from hilsim.transmit.scheduling import ThreadSettings
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import fixed_track
from hilsim.world.platforms.live import build_live_pose
from hilsim.world.platforms.platform import build_platform, live_platform
from hilsim.world.scene.materials import Material
from hilsim.world.scene.primitives import box
from hilsim.world.scene.world import SceneObject, build_world
from tests.devices import Device
from tests.lidars import lidar_setting
from tests.rings import peek

SECOND = 1_000_000_000
MS = 1_000_000
GROSS_LIMIT_S = 60.0
DATA, POSITION = 0, 1
PLASTER = Material(name="plaster", reflectivity=85)


def await_that(condition):
    deadline_s = time.monotonic() + GROSS_LIMIT_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.001)


@pytest.fixture(scope="module")
def lidar():
    spec = parse_table(VelodyneSpec, read_toml(profiles_directory() / "sensors" / "vlp16.toml"), "vlp16")
    flow = Flow(name="lidar/data", source="127.0.1.201", source_port=2368, destination="127.0.0.1", destination_port=2368)
    return LidarEmulator(
        setting=lidar_setting(spec),
        world=build_world([SceneObject(mesh=box((1.0, 30.0, 6.0), PLASTER), placement=Pose(position_m=(8.0, 0.0, 0.0)))]),
        platform=build_platform(fixed_track(Pose())),
        seed=9,
        utc_epoch_ns=0,
        data_flow=flow,
        position_flow=flow,
    )


class Bench:
    """Rings, render threads on them, and what was taken from them so far."""

    def __init__(self, lidar, renderer=None, *, slots=64):
        self.lidar, self.renderer = lidar, renderer
        self.rings = allocate_rings(2, slots, 1300)
        self.taken = {DATA: [], POSITION: []}
        self.render_threads = []
        self._stop, self._taker = threading.Event(), None
        self.render_thread(epoch_ns=0, lead_ns=0)  # kernels are there before a test sets its epoch

    def render_thread(self, *, epoch_ns, lead_ns, lidar=None, **changes):
        settings = ThreadSettings(scheduling="plain")
        made = RenderThread(
            lidar=lidar or self.lidar,
            **{"rings": self.rings, "data_flow": DATA, "position_flow": POSITION, "epoch_ns": epoch_ns, "lead_ns": lead_ns, "settings": settings}
            | {"renderer": self.renderer}
            | changes,
        )
        made.warm()
        self.render_threads.append(made)
        return made

    def take(self, limit=1_000_000):
        """Take up to so many from each ring."""
        for flow, taken in self.taken.items():
            found = peek(self.rings, flow)[:limit]
            taken.extend(found)
            publish(self.rings.head[flow], 0, int(self.rings.head[flow, 0]) + len(found))

    def keep_taking(self):
        def work():
            while not self._stop.wait(0.005):
                self.take()

        self._taker = threading.Thread(target=work)
        self._taker.start()

    def close(self):
        for render_thread in self.render_threads:
            render_thread.stop()
        self._stop.set()
        if self._taker is not None:
            self._taker.join()
        self.take()


@pytest.fixture(params=[None, Device], ids=["kernels", "device"])
def bench(lidar, request):
    """Whatever casts the rays, a render thread keeps the same promises."""
    made = []

    def make(**arguments):
        made.append(Bench(lidar, request.param and request.param(), **arguments))
        return made[-1]

    yield make
    for one in made:
        one.close()


def counter(render_thread, column):
    return int(render_thread.state.counters[column])


def rig_deadlines(taken, epoch_ns):
    return [datagram.deadline_ns - epoch_ns for datagram in taken]


@pytest.mark.extended
def test_twenty_hand_overs_lose_no_packet_and_repeat_none(bench, lidar):
    at = bench(slots=4096)
    epoch_ns = time.monotonic_ns() + 100 * SECOND  # nothing can be late, however busy the machine is
    render_thread = at.render_thread(epoch_ns=epoch_ns, lead_ns=103 * SECOND)
    successors = [at.render_thread(epoch_ns=epoch_ns, lead_ns=0) for _ in range(20)]
    at.keep_taking()
    render_thread.start()

    for successor in successors:
        reached = counter(render_thread, RenderCounter.NEXT_PACKET)
        await_that(lambda render_thread=render_thread, reached=reached: counter(render_thread, RenderCounter.NEXT_PACKET) > reached)
        render_thread.hand_over_to(successor)
        assert not render_thread.alive
        assert successor.alive
        render_thread = successor
    await_that(lambda: counter(render_thread, RenderCounter.NEXT_PACKET) > 1_500)
    render_thread.stop()
    at.close()

    offline = lidar.data_packets(0, len(at.taken[DATA]))
    assert rig_deadlines(at.taken[DATA], epoch_ns) == offline.deadline_ns.tolist()
    assert [datagram.payload for datagram in at.taken[DATA]] == [row.tobytes() for row in offline.payload]
    positions = lidar.position_span(0, int(offline.deadline_ns[-1]) + SECOND)
    count = len(at.taken[POSITION])
    assert count > 100
    assert rig_deadlines(at.taken[POSITION], epoch_ns) == positions.deadline_ns[:count].tolist()
    assert [datagram.payload for datagram in at.taken[POSITION]] == [row.tobytes() for row in positions.payload[:count]]
    assert counter(render_thread, RenderCounter.RENDERED) == len(at.taken[DATA])
    assert counter(render_thread, RenderCounter.POSITIONS) == count
    assert counter(render_thread, RenderCounter.SKIPPED) + counter(render_thread, RenderCounter.RING_FULL) == 0


def test_a_device_casts_several_packets_together(lidar):
    device = Device()
    at = Bench(lidar, device, slots=4096)
    render_thread = at.render_thread(epoch_ns=time.monotonic_ns() + 100 * SECOND, lead_ns=100 * SECOND + 200 * MS)
    del device.rays[:]
    render_thread.start()
    await_that(lambda: counter(render_thread, RenderCounter.RENDERED) >= 100)
    at.close()

    plan = lidar.plan
    in_packet = plan.sequences_per_packet * plan.firing_offset_ns.size * plan.beam.share.size
    assert device.rays[:12] == [PACKETS_TOGETHER * in_packet] * 12
    rendered = lidar.data_packets(0, len(at.taken[DATA]))
    assert [datagram.payload for datagram in at.taken[DATA]] == [row.tobytes() for row in rendered.payload]


def test_where_a_device_fails_the_kernels_go_on_with_the_very_next_packet(lidar):
    device = Device()
    at = Bench(lidar, device, slots=4096)
    render_thread = at.render_thread(epoch_ns=time.monotonic_ns() + 100 * SECOND, lead_ns=100 * SECOND + 50 * MS)
    at.render_thread(epoch_ns=0, lead_ns=0, renderer=None)  # its kernels are there
    render_thread.start()
    await_that(lambda: counter(render_thread, RenderCounter.RENDERED) >= 10)
    device.fails = True
    render_thread.set_lead_ns(100 * SECOND + 150 * MS)
    await_that(lambda: not render_thread.alive)
    assert str(render_thread.fault) == "a processor: has fallen off the bus"

    successor = render_thread.recover()
    at.render_threads.append(successor)
    await_that(lambda: counter(successor, RenderCounter.RENDERED) >= 100)
    at.close()

    assert successor.renderer is None
    assert counter(successor, RenderCounter.SKIPPED) == 0
    rendered = lidar.data_packets(0, len(at.taken[DATA]))
    assert [datagram.payload for datagram in at.taken[DATA]] == [row.tobytes() for row in rendered.payload]
    count = len(at.taken[POSITION])
    assert [datagram.payload for datagram in at.taken[POSITION]] == [row.tobytes() for row in lidar.position_span(0, SECOND).payload[:count]]


def test_a_successor_that_fires_otherwise_begins_behind_the_last_packet(bench, lidar):
    at = bench(slots=4096)
    epoch_ns = time.monotonic_ns() + 100 * SECOND
    dual = replace(lidar, setting=replace(lidar.setting, setup=replace(lidar.setting.setup, return_mode="dual")))
    first = at.render_thread(epoch_ns=epoch_ns, lead_ns=100 * SECOND + 50 * MS)
    second = at.render_thread(epoch_ns=epoch_ns, lead_ns=0, lidar=dual)
    first.start()
    await_that(lambda: counter(first, RenderCounter.NEXT_PACKET) >= 20)

    first.hand_over_to(second)
    boundary_ns = int(first.state.place[LoopPlace.DATA_FROM_NS])
    second.set_lead_ns(second.lead_ns + 50 * MS)
    await_that(lambda: second.covered_ns > epoch_ns + boundary_ns + 40 * MS)
    at.close()

    deadlines = rig_deadlines(at.taken[DATA], epoch_ns)
    of_first = lidar.data_span(0, boundary_ns)
    of_second = dual.data_packets(dual.first_data_packet(boundary_ns), len(deadlines) - of_first.size.size)
    assert of_second.size.size > 20
    assert deadlines == [*of_first.deadline_ns.tolist(), *of_second.deadline_ns.tolist()]
    assert at.taken[DATA][-1].payload == of_second.payload[-1].tobytes()
    count = len(at.taken[POSITION])
    assert rig_deadlines(at.taken[POSITION], epoch_ns) == lidar.position_span(0, SECOND).deadline_ns[:count].tolist()
    assert counter(second, RenderCounter.SKIPPED) == 0


def test_a_refused_successor_leaves_the_former_at_work(bench):
    at = bench(slots=4096)
    epoch_ns = time.monotonic_ns() + 100 * SECOND
    render_thread = at.render_thread(epoch_ns=epoch_ns, lead_ns=100 * SECOND + 10 * MS)
    refused = at.render_thread(epoch_ns=epoch_ns, lead_ns=0, settings=ThreadSettings(scheduling="plain", cpu=1023))
    render_thread.start()

    with pytest.raises(TransmitError, match="cpu must be one this process may use"):
        render_thread.hand_over_to(refused)

    rendered = counter(render_thread, RenderCounter.RENDERED)
    render_thread.set_lead_ns(100 * SECOND + 50 * MS)
    await_that(lambda: counter(render_thread, RenderCounter.RENDERED) > rendered + 10)
    assert not refused.alive


def test_only_a_running_render_thread_of_the_same_rows_and_epoch_can_hand_over(bench):
    at = bench()
    epoch_ns = time.monotonic_ns() + 100 * SECOND
    render_thread, other = at.render_thread(epoch_ns=epoch_ns, lead_ns=0), at.render_thread(epoch_ns=epoch_ns + 1, lead_ns=0)

    with pytest.raises(ValueError, match="a render thread must run to be succeeded"):
        render_thread.hand_over_to(other)
    render_thread.start()
    with pytest.raises(ValueError, match="a successor must render for the same rows from the same epoch"):
        render_thread.hand_over_to(other)

    assert render_thread.alive


def test_a_long_lead_fills_the_ring_from_the_first_packet_on_before_the_epoch(bench, lidar):
    at = bench()
    epoch_ns = time.monotonic_ns() + 100 * SECOND
    render_thread = at.render_thread(epoch_ns=epoch_ns, lead_ns=0)
    render_thread.start()
    assert render_thread.covered_ns == epoch_ns + lidar.data_packets(0, 1).deadline_ns[0]

    render_thread.set_lead_ns(100 * SECOND + 40 * MS)
    await_that(lambda: render_thread.covered_ns > epoch_ns + 20 * MS)
    await_that(lambda: depth(at.rings, POSITION) > 0)
    at.close()

    assert rig_deadlines(at.taken[DATA], epoch_ns)[:10] == lidar.data_packets(0, 10).deadline_ns.tolist()
    assert rig_deadlines(at.taken[POSITION], epoch_ns)[0] == lidar.position_span(0, SECOND).deadline_ns[0]
    assert counter(render_thread, RenderCounter.SKIPPED) == 0


def test_several_packets_are_rendered_at_a_wake_up_where_poses_are_known_and_one_where_they_are_not(bench, lidar):
    def first_ahead_ns(platform):
        at = bench(slots=4096)
        render_thread = at.render_thread(epoch_ns=time.monotonic_ns() + 100 * MS, lead_ns=40 * MS, lidar=replace(lidar, platform=platform))
        render_thread.start()
        await_that(lambda: counter(render_thread, RenderCounter.RENDERED) > 10)
        render_thread.stop()
        at.close()
        ahead_ns = [datagram.deadline_ns - datagram.pose_ns for datagram in at.taken[DATA]]
        assert max(ahead_ns) <= 40 * MS
        return ahead_ns[0]

    assert first_ahead_ns(lidar.platform) <= 35 * MS
    assert any(first_ahead_ns(live_platform(build_live_pose())) > 35 * MS for _ in range(30))  # however late some wake-ups are


def test_a_standstill_of_the_machine_is_not_what_a_packet_costs(bench, monkeypatch):
    render_thread, stops = bench().render_thread(epoch_ns=0, lead_ns=0), [0]

    def take_time(state, _rings, stop_packet, **_):
        state.place[LoopPlace.CPU_NS] = 100_000 * (stop_packet - stops[-1]) + (len(stops) == 12) * 200 * MS
        stops.append(stop_packet)

    monkeypatch.setattr(render_thread, "_render", take_time)
    cost_ns = render_thread.measure_stretch(0.6)  # 452 packets, 32 at a time, each after a loop without any

    assert stops == [0, 0, *(packet for chunk in range(32, 452, 32) for packet in (chunk, chunk)), 452]
    assert cost_ns == pytest.approx(100_000 * (452 + 3 * 32) / 452)


def test_what_starting_the_loop_takes_is_not_what_a_packet_costs(bench):
    render_thread, state = bench().render_thread(epoch_ns=0, lead_ns=0), allocate_state()
    render_thread.warm()
    begun_ns = time.thread_time_ns()
    render_thread._render(state, stop_packet=0)
    taken_ns = time.thread_time_ns() - begun_ns

    assert 0 < state.place[LoopPlace.CPU_NS] < taken_ns


def test_packets_that_a_late_start_cannot_make_are_counted_as_skipped(bench, lidar):
    at = bench(slots=4096)
    epoch_ns = time.monotonic_ns() - SECOND
    render_thread = at.render_thread(epoch_ns=epoch_ns, lead_ns=4 * MS)
    render_thread.start()
    await_that(lambda: counter(render_thread, RenderCounter.RENDERED) > 40)  # position packets are due among them
    render_thread.stop()
    at.close()

    first = lidar.first_data_packet(rig_deadlines(at.taken[DATA], epoch_ns)[0])
    skipped = counter(render_thread, RenderCounter.SKIPPED)
    assert skipped >= first > 700
    assert skipped + counter(render_thread, RenderCounter.RENDERED) == counter(render_thread, RenderCounter.NEXT_PACKET)
    first_position = lidar.position_span(0, rig_deadlines(at.taken[POSITION], epoch_ns)[0]).size.size
    assert counter(render_thread, RenderCounter.POSITIONS_SKIPPED) >= first_position > 100


def test_a_sensor_that_joins_later_does_not_count_what_was_before(bench):
    at = bench(slots=4096)
    epoch_ns = time.monotonic_ns() - 100 * SECOND
    render_thread = at.render_thread(epoch_ns=epoch_ns, lead_ns=5 * SECOND)
    render_thread.start(from_ns=102 * SECOND)
    await_that(lambda: counter(render_thread, RenderCounter.RENDERED) > 10)
    render_thread.stop()
    at.close()

    assert counter(render_thread, RenderCounter.SKIPPED) == 0
    assert 0 <= rig_deadlines(at.taken[DATA], epoch_ns)[0] - 102 * SECOND < 2 * MS


def test_a_full_ring_makes_the_render_thread_wait_for_room(bench, lidar):
    at = bench(slots=8)
    epoch_ns = time.monotonic_ns() + 100 * SECOND
    render_thread = at.render_thread(epoch_ns=epoch_ns, lead_ns=200 * SECOND)
    render_thread.start()
    await_that(lambda: depth(at.rings, DATA) == 8)
    time.sleep(0.02)
    assert counter(render_thread, RenderCounter.RENDERED) == 8

    at.take(3)
    await_that(lambda: counter(render_thread, RenderCounter.RENDERED) == 11)
    at.take()
    await_that(lambda: depth(at.rings, DATA) == 8)
    at.close()

    assert rig_deadlines(at.taken[DATA], epoch_ns) == lidar.data_packets(0, 19).deadline_ns.tolist()
    assert counter(render_thread, RenderCounter.RING_FULL) == 0


def test_packets_due_while_the_ring_is_full_are_counted(bench):
    at = bench(slots=8)
    render_thread = at.render_thread(epoch_ns=time.monotonic_ns(), lead_ns=20 * MS)
    render_thread.start()
    await_that(lambda: counter(render_thread, RenderCounter.RING_FULL) > 10)
    render_thread.stop()

    counted = sum(counter(render_thread, column) for column in (RenderCounter.RENDERED, RenderCounter.SKIPPED, RenderCounter.RING_FULL))
    assert counter(render_thread, RenderCounter.RENDERED) == 8
    assert counted >= counter(render_thread, RenderCounter.NEXT_PACKET)


def test_counters_never_fall_back_at_a_hand_over(bench):
    at = bench(slots=4096)
    epoch_ns = time.monotonic_ns() + 100 * SECOND
    first, second = at.render_thread(epoch_ns=epoch_ns, lead_ns=100 * SECOND + 20 * MS), at.render_thread(epoch_ns=epoch_ns, lead_ns=0)
    first.start()
    await_that(lambda: counter(first, RenderCounter.RENDERED) >= 10)
    rendered = counter(first, RenderCounter.RENDERED)
    first.hand_over_to(second)
    assert counter(second, RenderCounter.RENDERED) >= rendered

    second.set_lead_ns(second.lead_ns + 20 * MS)
    await_that(lambda: counter(second, RenderCounter.RENDERED) >= rendered + 10)
    second.stop()

    assert second.lead_ns == 100 * SECOND + 40 * MS
    assert int(np.sum(second.state.render)) == counter(second, RenderCounter.RENDERED)


def test_a_successor_with_another_field_of_view_fires_nothing_that_overlaps_the_last_packet(bench, lidar):
    limited, wider, turned = (170, 190), (10, 200), (300, 20)
    for before, after in ((limited, wider), (wider, turned), (turned, WHOLE_TURN_DEG), (WHOLE_TURN_DEG, limited)):
        at = bench(slots=4096)
        epoch_ns = time.monotonic_ns() + 100 * SECOND
        first_lidar, second_lidar = (
            replace(lidar, setting=replace(lidar.setting, setup=replace(lidar.setting.setup, field_of_view_deg=view))) for view in (before, after)
        )
        first = at.render_thread(epoch_ns=epoch_ns, lead_ns=100 * SECOND + 200 * MS, lidar=first_lidar)
        second = at.render_thread(epoch_ns=epoch_ns, lead_ns=0, lidar=second_lidar)
        first.start()
        await_that(lambda first=first: counter(first, RenderCounter.NEXT_PACKET) >= 3)

        first.hand_over_to(second)
        ended = counter(second, RenderCounter.NEXT_PACKET)
        second.set_lead_ns(second.lead_ns + 500 * MS)
        await_that(lambda second=second, ended=ended: counter(second, RenderCounter.NEXT_PACKET) >= ended + 3)
        at.close()

        stamps_us = np.array([int.from_bytes(datagram.payload[1200:1204], "little") for datagram in at.taken[DATA]])
        ends_us = np.array([datagram.deadline_ns - epoch_ns - first_lidar.plan.data_latency_ns for datagram in at.taken[DATA]]) / 1000.0
        assert (np.diff(stamps_us) > 0).all(), (before, after)
        assert (stamps_us[1:] >= np.floor(ends_us[:-1])).all(), (before, after)
        assert counter(second, RenderCounter.SKIPPED) == 0
