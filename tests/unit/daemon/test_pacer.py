"""The pacer with real render threads in a room; loads that are too much for a machine are made by saying that it has fewer cores."""

import time

import pytest

from hilsim.config.rig import load_rig
from hilsim.daemon.running_rig import RunningRig
from hilsim.daemon.streaming.sensors import Sensors
from hilsim.streaming.render_state import RenderCounter
from tests.support import ROOM, write_rig

GROSS_LIMIT_S = 60.0


def await_that(condition):
    deadline_s = time.monotonic() + GROSS_LIMIT_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


class Bench:
    """A running whose machine has as many cores as the test says."""

    def __init__(self, directory, cores, text):
        self.said = []
        rig = load_rig(write_rig(directory, text))
        self.running = RunningRig(rig=rig, say=lambda event, keys: self.said.append((event, dict(keys))))
        self.pacer = self.running.part(Sensors).pacer
        self.pacer.cores = self.pacer._fifo.cores = self.pacer._rays.cores = cores
        self.running.build()
        self.running.open()
        self.sensor = self.running.streams["lidar"]

    def events(self):
        return [event for event, _ in self.said]

    def step_to(self, time_s):
        self.pacer.step(self.running.streams, round(time_s * 1e9))

    def close(self):
        self.running.stop()


@pytest.fixture
def bench(tmp_path):
    made = []

    def make(cores):
        text = (
            ROOM.replace("sub_rays = 1\n", "").replace('name = "lidar"', 'name = "lidar"\nsub_rays = 7')
            + "[metrics]\nenabled = false\n[transmit]\nlock_memory = false\n"
        )
        made.append(Bench(tmp_path, cores, text))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_the_first_packets_say_what_a_sensor_costs_and_one_that_fits_keeps_its_rays(bench):
    at = bench(cores=64)

    assert 1_000 < at.sensor.render_thread.state.counters[RenderCounter.ESTIMATE_NS] < 1e9
    assert at.sensor.rays == 7
    assert "rays.given_up" not in at.events()


def test_a_machine_that_is_too_small_is_named_at_start_and_gets_fewest_rays_under_a_short_slice(bench):
    at = bench(cores=0.001)

    assert at.sensor.rays == 1
    assert at.sensor.lidar.plan.beam.share.size == 1
    assert [event for event in at.events() if not event.startswith("rendering.")] == ["rays.given_up", "rig.machine_too_small"]
    needed = dict(at.said)["rig.machine_too_small"]
    assert needed["needed_cores"] > needed["needed_cores_with_fewest_rays"] > needed["cores"]
    assert at.sensor.render_thread.settings.scheduling in ("slice", "plain")


def test_rays_change_while_packets_flow_and_each_is_rendered_or_counted(bench):
    at = bench(cores=64)
    at.running.start()
    sensor, first = at.sensor, at.sensor.render_thread
    await_that(lambda: sensor.render_thread.state.counters[RenderCounter.RENDERED] > 50)

    sensor.set_rays(1)
    reached = int(sensor.render_thread.state.counters[RenderCounter.NEXT_PACKET])
    await_that(lambda: sensor.render_thread.state.counters[RenderCounter.NEXT_PACKET] > reached + 50)
    sensor.set_rays(7)

    assert sensor.reading(time.monotonic_ns()).rays_per_beam == 7
    sensor.render_thread.stop()
    counters = sensor.render_thread.state.counters
    made = [RenderCounter.RENDERED, RenderCounter.SKIPPED, RenderCounter.RING_FULL]
    assert not first.alive
    assert sum(int(counters[column]) for column in made) == counters[RenderCounter.NEXT_PACKET] > reached + 50


def test_a_sensor_that_does_not_fit_gives_up_rays_and_says_so(bench):
    at = bench(cores=64)
    at.running.start()
    at.pacer._rays.cores = 0.001
    at.step_to(1.0)
    await_that(lambda: at.sensor.render_thread.state.counters[RenderCounter.RENDERED] > 100)
    at.step_to(1.5)

    at.step_to(2.0)

    assert at.sensor.rays == 1
    _, keys = next(entry for entry in at.said if entry[0] == "rays.given_up")
    assert (keys["sensor"], keys["rays"], keys["former_rays"], keys["wanted_rays"]) == ("lidar", 1, 7, 7)
    assert at.sensor.reading(time.monotonic_ns()).wanted_rays_per_beam == 7


def test_a_running_render_thread_leaves_real_time_scheduling_when_its_share_is_too_large(bench):
    at = bench(cores=64)
    at.running.start()
    at.pacer._fifo.cores = 0.001  # too small for any share

    at.step_to(1.0)

    assert at.sensor.render_thread.scheduling_mode in ("slice", "plain")
    assert at.sensor.render_thread.settings.scheduling in ("slice", "plain")


def test_the_lead_follows_what_was_late(bench):
    at = bench(cores=64)
    at.running.start()
    at.step_to(1.0)
    before_ns = at.sensor.render_thread.lead_ns
    at.sensor.render_thread.state.counters[RenderCounter.LATE] += 1000  # as if; the loop only adds to it

    at.step_to(1.5)

    assert before_ns == 40_000_000
    assert at.sensor.render_thread.state.lead[0] == 60_000_000
    assert at.sensor.reading(time.monotonic_ns()).render_lead_s == 0.06


def test_the_cost_of_a_packet_follows_a_change_of_rays_at_once(bench):
    at = bench(cores=64)
    seven_ns = at.pacer._look("lidar", at.sensor).cost_ns

    at.sensor.set_rays(1)

    assert at.pacer._look("lidar", at.sensor).cost_ns == pytest.approx(seven_ns / 2.86)


def test_one_look_during_a_standstill_of_the_host_does_not_count(bench, monkeypatch):
    at = bench(cores=64)
    cpu_ns, rendered = 1, 0
    costs = []
    for taken_ns in (300, 300, 300, 5_000, 300):
        cpu_ns, rendered = cpu_ns + 100 * taken_ns, rendered + 100
        at.sensor.render_thread.state.counters[RenderCounter.RENDERED] = rendered
        monkeypatch.setattr(type(at.sensor.render_thread), "cpu_ns", cpu_ns)
        costs.append(at.pacer._look("lidar", at.sensor).cost_ns)

    assert costs[1:] == [300] * 4
