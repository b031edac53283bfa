"""A rig's sensors on a device, with real render threads; the device is a stand-in on the CPU, ``tests/system/test_record.py`` runs Numba's simulator."""

import time

import pytest

from hilsim.config.rig import load_rig
from hilsim.daemon.running_rig import RunningRig
from hilsim.daemon.streaming import device as devices
from hilsim.daemon.streaming.sensors import Sensors
from hilsim.errors import ConfigError, DeviceError
from hilsim.streaming.render_state import RenderCounter
from hilsim.streaming.render_thread import RenderThread
from tests.devices import Device
from tests.support import ROOM, write_rig

GROSS_LIMIT_S = 60.0
TWO = (
    ROOM.replace("sub_rays = 1\n", "").replace(
        'name = "lidar"', 'name = "lidar"\nsub_rays = 7\nnetwork = { source = "127.0.1.231", source_ports = "any" }'
    )
    + '[[sensor]]\nname = "single"\nsub_rays = 1\nnetwork = { source = "127.0.1.232", source_ports = "any" }\n'
)
QUIET = "[metrics]\nenabled = false\n[transmit]\nlock_memory = false\n"


def await_that(condition):
    deadline_s = time.monotonic() + GROSS_LIMIT_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


class Bench:
    """A running rig, and its events."""

    def __init__(self, directory, render, cores=None):
        self.said = []
        self.rig = load_rig(write_rig(directory, TWO + QUIET + f"[render]\n{render}\n"))
        self.running = RunningRig(rig=self.rig, say=lambda event, keys: self.said.append((event, dict(keys))))
        self.sensors = self.running.part(Sensors)
        if cores is not None:
            self.sensors.pacer.cores = cores
        self.running.build()
        self.running.open()

    def on_device(self):
        return {name for name, streaming in self.running.streams.items() if streaming.render_thread.renderer is not None}

    def rendered(self):
        return {name: int(streaming.render_thread.state.counters[RenderCounter.RENDERED]) for name, streaming in self.running.streams.items()}

    def keys(self, event):
        return next((keys for said, keys in self.said if said == event), None)

    def faults(self):
        return {fault.key: fault.text for fault in self.running.reading().faults}


@pytest.fixture
def bench(tmp_path):
    made = []

    def make(render, **arguments):
        made.append(Bench(tmp_path, render, **arguments))
        return made[-1]

    yield make
    for one in made:
        one.running.stop()


@pytest.fixture
def gpu(monkeypatch):
    found = Device()
    monkeypatch.setattr(devices, "open_gpu", lambda: found)
    return found


@pytest.fixture
def no_gpu(monkeypatch):
    def refuse():
        raise DeviceError("must have an NVIDIA GPU and its driver for cuda, found none")

    monkeypatch.setattr(devices, "open_gpu", refuse)


@pytest.mark.extended
def test_a_rig_that_asks_for_a_gpu_has_all_its_sensors_on_it(bench, gpu):
    at = bench('backend = "cuda"')
    assert at.on_device() == {"lidar", "single"}
    assert at.keys("rendering.on_device") == {"device": "a processor", "sensors": ["lidar", "single"]}
    del gpu.rays[:]
    before = sum(at.rendered().values())
    at.running.start()
    await_that(lambda: min(at.rendered().values()) > 100)

    assert 0 < len(gpu.rays) < sum(at.rendered().values()) - before
    assert "device_missing" not in at.faults()
    backends = {sensor.sensor: sensor.render_backend for sensor in at.running.reading().sensors}
    assert backends == {"lidar": "cuda", "single": "cuda"}


def test_automatic_scheduling_never_makes_device_rendering_real_time(bench, gpu):
    at = bench('backend = "cuda"')
    at.sensors.pace(time.monotonic_ns())

    assert gpu.rays
    assert {streaming.render_thread.settings.scheduling for streaming in at.running.streams.values()} <= {"slice", "plain"}


def test_a_rig_that_leaves_it_open_has_the_cores_render_what_they_can(bench, gpu):
    at = bench('backend = "auto"', cores=64)

    assert at.on_device() == set()
    assert gpu.rays == []
    assert at.keys("rendering.on_device") is None


@pytest.fixture
def gpu_costs(monkeypatch):
    """Let a packet on the GPU take this share of its time on the cores: the stand-in is never cheaper."""
    measured = RenderThread.measure

    def share(ratio):
        def measure(thread):
            on_cores_ns = int(thread.state.counters[RenderCounter.ESTIMATE_NS])
            measured(thread)
            if thread.renderer is not None:
                thread.state.counters[RenderCounter.ESTIMATE_NS] = int(ratio * on_cores_ns)

        monkeypatch.setattr(RenderThread, "measure", measure)

    return share


def test_where_the_cores_are_too_few_sensors_of_several_rays_go_to_the_gpu(bench, gpu, gpu_costs):
    gpu_costs(0.5)
    at = bench('backend = "auto"', cores=0.001)

    assert gpu.rays
    assert at.on_device() == {"lidar"}, "one ray a beam is no work for a GPU"
    assert at.keys("rendering.on_device")["sensors"] == ["lidar"]


def test_a_sensor_that_takes_more_of_the_cores_with_the_gpu_stays_with_them(bench, gpu, gpu_costs):
    gpu_costs(1.1)
    at = bench('backend = "auto"', cores=0.001)

    assert gpu.rays
    assert at.on_device() == set()
    assert at.keys("rendering.on_device") is None
    assert "device_missing" not in at.faults()


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_the_cores_render_and_health_says_why(bench):
    at = bench('backend = "cuda"')
    at.running.start()
    await_that(lambda: min(at.rendered().values()) > 20)

    assert at.on_device() == set()
    assert at.faults()["device_missing"] == "must have an NVIDIA GPU and its driver for cuda, found none; the cores cast the rays"
    assert at.keys("rendering.device_refused") == {"reason": "must have an NVIDIA GPU and its driver for cuda, found none"}


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_a_rig_that_leaves_it_open_lacks_nothing(bench):
    at = bench('backend = "auto"', cores=0.001)

    assert at.on_device() == set()
    assert "device_missing" not in at.faults()
    assert at.keys("rendering.device_refused") is None


def test_sensors_of_a_gpu_that_fails_go_on_without_a_gap(bench, gpu):
    at = bench('backend = "cuda"')
    at.running.start()
    await_that(lambda: min(at.rendered().values()) > 50)

    gpu.fails = True
    await_that(lambda: not any(streaming.render_thread.alive for streaming in at.running.streams.values()))
    at.running.pace()

    reached = at.rendered()
    await_that(lambda: all(count > reached[name] + 50 for name, count in at.rendered().items()))
    assert at.on_device() == set()
    assert at.faults()["device_missing"] == "a processor: has fallen off the bus; the cores cast the rays"
    for streaming in at.running.streams.values():
        streaming.render_thread.stop()
        counters = streaming.render_thread.state.counters
        made = [RenderCounter.RENDERED, RenderCounter.SKIPPED, RenderCounter.RING_FULL]
        assert sum(int(counters[column]) for column in made) == counters[RenderCounter.NEXT_PACKET]


def test_a_gpu_that_fails_while_it_is_tried_is_not_used(bench, gpu):
    gpu.fails = True
    at = bench('backend = "cuda"')

    assert at.on_device() == set()
    at.running.start()
    await_that(lambda: min(at.rendered().values()) > 20)
    assert at.faults()["device_missing"].startswith("a processor: has fallen off the bus")


@pytest.mark.usefixtures("gpu")
def test_a_sensor_that_joins_is_cast_by_the_gpu_too(bench, tmp_path):
    at = bench('backend = "cuda"')
    at.running.start()
    third = '[[sensor]]\nname = "third"\nnetwork = { source = "127.0.1.233" }\n'
    changed = load_rig(write_rig(tmp_path, TWO + third + QUIET + '[render]\nbackend = "cuda"\n'))

    at.running.change(changed)

    assert at.on_device() == {"lidar", "single", "third"}
    await_that(lambda: at.rendered()["third"] > 20)


def test_the_backend_cannot_change_while_packets_flow(bench, tmp_path):
    at = bench('backend = "cpu"')
    changed = load_rig(write_rig(tmp_path, TWO + QUIET + '[render]\nbackend = "cuda"\n'))

    with pytest.raises(ConfigError, match=r"\[render\].*cannot change while packets flow"):
        at.running.change(changed)


def test_the_share_for_real_time_rendering_is_the_rigs(bench):
    at = bench("real_time_share = 0.0")
    at.sensors.pacer.step(at.running.streams, 1)

    assert at.sensors.pacer.real_time_share == 0.0
    assert {streaming.render_thread.settings.scheduling for streaming in at.running.streams.values()} <= {"slice", "plain"}
