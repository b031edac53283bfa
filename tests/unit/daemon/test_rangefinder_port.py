"""A range sensor's thread at a pseudo-terminal: frames, a line without a reader, a stall, a port that is not there."""

import contextlib
import os
import time
import tty

import numpy as np
import pytest
from structlog.testing import capture_logs

from hilsim.assembly.build import Scenery
from hilsim.daemon.serial_devices.device import ConfiguredDevice
from hilsim.daemon.serial_devices.port import SerialDevicePort
from hilsim.faults.specs import FAULT_SPECS
from hilsim.parts.rangefinders.device import RangefinderDevice
from hilsim.parts.rangefinders.ld06 import Ld06Spec
from hilsim.parts.rangefinders.tfmini import TfminiSpec
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import fixed_track
from hilsim.world.platforms.live import build_live_pose
from hilsim.world.platforms.platform import build_platform, live_platform
from hilsim.world.scene.materials import DEFAULTS
from hilsim.world.scene.primitives import box
from hilsim.world.scene.world import SceneObject, build_world
from tests.cables import await_bytes
from tests.unit.rangefinders.test_tfmini import parse


@pytest.fixture(scope="module")
def world():
    """A wall 4 m ahead."""
    return build_world([SceneObject(mesh=box((1.0, 6.0, 6.0), DEFAULTS["concrete"]), placement=Pose(position_m=(4.5, 0.0, 0.0)))])


@pytest.fixture
def at_port(world, tmp_path):
    """Makes a port's thread, and the far end of its line; the device is at the origin and looks at the wall."""
    made = []

    def make(kind, *, is_there=True):
        link = tmp_path / "port"
        master, slave = os.openpty()
        tty.setraw(slave)
        os.set_blocking(master, False)
        if is_there:
            link.symlink_to(os.ttyname(slave))
        os.close(slave)
        spec = kind(port=str(link))
        device = RangefinderDevice(spec, seed=1, stream=0, scenery=Scenery(world=world, platform=build_platform(fixed_track(Pose()))), name="one")
        device.warm()
        port = SerialDevicePort(configured=ConfiguredDevice(name="one", serial=spec, identity=spec, device=device, break_later=device.break_later))
        made.append((port, master))
        return port, master

    yield make
    for port, master in made:
        port.stop()
        os.close(master)


def awaited(condition, timeout_s=20.0):
    deadline = time.monotonic() + timeout_s
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def test_frames_say_how_far_the_wall_is_and_end_with_the_thread(at_port):
    port, master = at_port(TfminiSpec)
    port.start(epoch_ns=time.monotonic_ns(), utc_epoch_ns=time.time_ns())
    assert awaited(lambda: port.sent_frames >= 20)
    await_bytes(master, 20 * 9)
    assert {distance for distance, *_ in parse(os.read(master, 20 * 9))} == {400}
    reading = port.reading()
    assert (reading.device, reading.is_open, port.alive) == ("one", True, True)
    port.stop()
    assert (port.reading().is_open, port.alive) == (False, False)


def distances(port, master, faults, count=30):
    """Distances (cm) that a driver reads from now on, of a sensor with faults that begin now."""
    begin_ns = time.monotonic_ns() - port._epoch_ns
    port.break_later(begin_ns, faults)
    time.sleep(0.1)
    with contextlib.suppress(BlockingIOError):
        os.read(master, 1 << 16)
    await_bytes(master, count * 9)
    return [distance for distance, *_ in parse(os.read(master, count * 9))]


def test_a_sensor_that_runs_reads_wrong_is_stuck_falls_silent_and_is_mended(at_port):
    port, master = at_port(TfminiSpec)
    port.start(epoch_ns=time.monotonic_ns(), utc_epoch_ns=time.time_ns())
    assert set(distances(port, master, ())) == {400}
    assert set(distances(port, master, (FAULT_SPECS["range_wrong"](bias_m=1.5),))) == {550}
    scattered = distances(port, master, (FAULT_SPECS["range_wrong"](bias_m=0.0, scatter_m=0.2),), count=200)
    assert np.std(scattered) == pytest.approx(20.0, rel=0.35)
    assert set(distances(port, master, (FAULT_SPECS["range_stuck"](),))) <= set(scattered) | {400}
    port.break_later(0, (FAULT_SPECS["range_off"](),))
    time.sleep(0.1)
    with contextlib.suppress(BlockingIOError):
        os.read(master, 1 << 16)
    time.sleep(0.2)
    with pytest.raises(BlockingIOError):
        os.read(master, 9)
    assert set(distances(port, master, ())) == {400}


def test_a_driver_sees_half_frames_and_lost_bytes_of_the_line(at_port):
    port, master = at_port(TfminiSpec)
    port.break_later(0, (FAULT_SPECS["half_frames"](share=0.5, on="one"), FAULT_SPECS["range_wrong"](on="two")))
    port.start(epoch_ns=time.monotonic_ns(), utc_epoch_ns=time.time_ns())
    await_bytes(master, 900)
    raw = os.read(master, 900)
    assert 20 < raw.count(b"\x59\x59\x90\x01") < 140  # 400 cm
    assert len(raw) / 9 < raw.count(b"\x59\x59")


def test_a_line_without_a_reader_drops_frames_and_queues_none(at_port):
    port, master = at_port(Ld06Spec)
    port.start(epoch_ns=time.monotonic_ns(), utc_epoch_ns=time.time_ns())
    assert awaited(lambda: port.dropped_frames > 20)
    assert port.alive
    sent = port.sent_frames
    while sent == port.sent_frames:
        with contextlib.suppress(BlockingIOError):  # what was written is still on its way
            os.read(master, 1 << 16)
        assert awaited(lambda: port.dropped_frames > 0)
        time.sleep(0.01)


def test_frames_due_in_a_stall_are_skipped_and_counted(at_port):
    port, _ = at_port(TfminiSpec, is_there=False)
    device = port.configured.device
    port._skip(device, 1_000_000_000, 1_300_000_000)
    assert port.dropped_frames == 30
    port._skip(device, 2_000_000_000, 3_600_000_000_000)
    assert port.dropped_frames == 130  # of an hour, the last second


def test_a_port_that_is_not_there_is_reported_once_and_waited_for(at_port, tmp_path):
    port, _ = at_port(TfminiSpec, is_there=False)
    with capture_logs() as logs:
        port.start(epoch_ns=time.monotonic_ns(), utc_epoch_ns=time.time_ns())
        assert awaited(lambda: logs)
        time.sleep(1.2)
        assert [entry["event"] for entry in logs] == ["serial_device.port_not_opened"]
        master, slave = os.openpty()
        (tmp_path / "port").symlink_to(os.ttyname(slave))
        os.close(slave)
        assert awaited(lambda: port.sent_frames > 0)
        port.stop()
        os.close(master)
    assert [entry["event"] for entry in logs] == ["serial_device.port_not_opened", "serial_device.port_opened"]


def test_a_rangefinder_sees_from_where_its_platform_is(at_port, world):
    device = at_port(TfminiSpec, is_there=False)[0].configured.device
    ahead_and_behind = np.zeros(2, np.int64), np.array([0.0, 180.0])
    np.testing.assert_allclose(device.sample(*ahead_and_behind), [4.0, np.inf], atol=1e-3)
    live = build_live_pose()
    device.see(Scenery(world=world, platform=live_platform(live)))
    live.written[0] = 1
    live.state[0, 0] = 1.5
    np.testing.assert_allclose(device.sample(*ahead_and_behind), [2.5, np.inf], atol=1e-3)


def test_a_rangefinder_sees_a_changed_world_from_its_rig_time_on(at_port, world):
    device = at_port(TfminiSpec, is_there=False)[0].configured.device
    device.see_later(
        2_000_000, build_world([SceneObject(mesh=box((1.0, 6.0, 6.0), DEFAULTS["concrete"]), placement=Pose(position_m=(7.5, 0.0, 0.0)))])
    )
    times_ns = np.array([3_000_000, 1_999_999, 2_000_000, 0])
    np.testing.assert_allclose(device.sample(times_ns, np.zeros(4)), [7.0, 4.0, 7.0, 4.0], atol=1e-3)
    device.see(Scenery(world=world, platform=build_platform(fixed_track(Pose()))))
    np.testing.assert_allclose(device.sample(times_ns, np.zeros(4)), 4.0, atol=1e-3)
