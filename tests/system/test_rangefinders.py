"""Range sensors as an autopilot or any other driver meets them: on pseudo-terminals in place of cables, read by parsers of our tests' own."""

import contextlib
import os
import signal
import struct
import time
import tty
from datetime import UTC, datetime

import numpy as np
import pytest
from pymavlink.dialects.v20 import common

import hilsim
from hilsim.config.profiles import profiles_directory
from hilsim.config.rig import load_rig
from hilsim_flight_controller.controller import Px4, Px4Spec
from tests.support import write_rig
from tests.system.flying import events, figures
from tests.unit.rangefinders.test_ld06 import parse as parse_ld06
from tests.unit.rangefinders.test_sf45 import frame as sf45_frame
from tests.unit.rangefinders.test_sf45 import parse as parse_sf45
from tests.unit.rangefinders.test_tfmini import parse as parse_tfmini

pytestmark = pytest.mark.system

# The vehicle looks east. A wall 5 m ahead, one 7 m to the right; nothing behind or to the left.
PLACE = """
name = "eyes"
seed = 3
[platform]
kind = "vehicle"
[[scene.box]]
position_m = [0.0, 0.0, -0.5]
size_m = [80.0, 80.0, 1.0]
material = "asphalt"
[[scene.box]]
position_m = [5.5, 0.0, 3.0]
size_m = [1.0, 8.0, 12.0]
material = "concrete"
[[scene.box]]
position_m = [0.0, -7.5, 3.0]
size_m = [8.0, 1.0, 12.0]
material = "brick"
[metrics]
port = 0
"""


class Cable:
    """The far end of a serial line."""

    def __init__(self, link):
        self.master, slave = os.openpty()
        tty.setraw(slave)
        os.set_blocking(self.master, False)
        link.unlink(missing_ok=True)
        link.symlink_to(os.ttyname(slave))
        os.close(slave)
        self.rest = b""

    def read(self):
        """What came now."""
        with contextlib.suppress(BlockingIOError, OSError):
            return os.read(self.master, 1 << 16)
        return b""

    def write(self, data):
        os.write(self.master, data)

    def pull(self):
        if self.master is not None:
            os.close(self.master)
            self.master = None


@pytest.fixture
def cable(tmp_path):
    made = []

    def plug(name):
        made.append(Cable(tmp_path / name))
        return made[-1]

    yield plug
    for each in made:
        each.pull()


def await_bytes(cable, size, timeout_s=20.0):
    """At least so many bytes."""
    data, deadline = b"", time.monotonic() + timeout_s
    while len(data) < size and time.monotonic() < deadline:
        data += cable.read()
        time.sleep(0.002)
    assert len(data) >= size
    return data


def await_frame(cable, command, timeout_s=20.0):
    """Data of the next SF45 frame of a command; nothing may stand between frames."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        cable.rest += cable.read()
        size = ((cable.rest[1] | cable.rest[2] << 8) >> 6) + 5 if len(cable.rest) >= 3 else None
        if size is None or len(cable.rest) < size:
            time.sleep(0.001)
            continue
        found, payload = parse_sf45(cable.rest[:size])
        cable.rest = cable.rest[size:]
        if found == command:
            return payload
    pytest.fail(f"no frame of command {command}")


def held(tmp_path, *tables):
    hovering = "[vehicle]\nyaw_deg = 0.0\nposition_m = [0.0, 0.0, 0.01]\n"
    return write_rig(tmp_path, PLACE + hovering + "".join(tables))


def rangefinder(kind, path, extra=""):
    return f'[[rangefinder]]\nkind = "{kind}"\nport = "{path}"\n{extra}\n'


def test_each_rangefinder_says_where_the_walls_are_in_its_own_bytes(daemon, cable, tmp_path):
    names = ("tfmini", "sf45", "ld06")
    cables = {name: cable(name) for name in names}
    rigged = [rangefinder(name, tmp_path / name, "mount_position_m = [0.0, 0.0, 0.1]") for name in names]
    down = rangefinder("tfmini", tmp_path / "down", "mount_position_m = [0.0, 0.0, 0.5]\nmount_rotation_deg = [0, 90, 0]")
    cables["down"] = cable("down")
    running = daemon(held(tmp_path, *rigged, down), wait=False)
    running.await_log(r'"event": "daemon\.started"')
    for line in cables.values():
        line.read()
    assert {reading[0] for reading in parse_tfmini(await_bytes(cables["tfmini"], 90))[:-1]} <= {499, 500, 501}
    heights = [reading[0] for reading in parse_tfmini(await_bytes(cables["down"], 90))]
    assert heights
    assert all(50 <= height <= 90 for height in heights)  # half a metre above the centre of mass of a vehicle at rest

    line = cables["sf45"]
    line.write(sf45_frame(0))
    assert await_frame(line, 0)[:4] == b"SF45"
    for command, data in ((66, struct.pack("<B", 6)), (27, struct.pack("<I", 0x101)), (30, struct.pack("<I", 5))):
        line.write(sf45_frame(command, data, write=True))
        assert await_frame(line, command) == data
    seen = dict(reversed(struct.unpack("<hh", await_frame(line, 44))) for _ in range(1200))
    ahead = [distance for yaw, distance in seen.items() if abs(yaw) < 1000]
    right = [distance for yaw, distance in seen.items() if abs(yaw - 9000) < 1000]
    left = [distance for yaw, distance in seen.items() if abs(yaw + 9000) < 1000]
    assert ahead
    assert right
    assert all(498 <= distance <= 512 for distance in ahead)
    assert all(698 <= distance <= 715 for distance in right)
    assert left
    assert set(left) == {-100}

    data = await_bytes(cables["ld06"], 47 * 90)
    start = data.index(b"\x54\x2c")
    turn = np.full(360, -1)
    for at in range(start, len(data) - 46, 47):
        _, azimuths, distances, confidences, _ = parse_ld06(data[at : at + 47])
        for azimuth, distance, confidence in zip(azimuths, distances, confidences, strict=True):
            turn[int(azimuth / 100)] = distance if confidence >= 20 else 0
    assert (turn >= 0).mean() > 0.75  # 450 points a turn: every degree but what lies between two of them
    assert turn[2] == pytest.approx(5000, abs=30)
    assert turn[90] == pytest.approx(7000, abs=30)
    assert turn[182] in (0, -1)


@pytest.mark.extended
def test_a_rangefinder_sees_objects_that_are_added_and_moved_at_rig_times_and_a_reload_ends_it(daemon, cable, tmp_path):
    line = cable("tfmini")
    fixed = PLACE.replace('kind = "vehicle"', 'kind = "fixed"\nposition_m = [0.0, 0.0, 1.5]')
    path = write_rig(tmp_path, fixed + rangefinder("tfmini", tmp_path / "tfmini") + '[control]\nsocket = "control"\n')
    running = daemon(path, wait=False)
    running.await_log(r'"event": "daemon\.started"')
    control = hilsim.connect(tmp_path / "control")

    def distances_cm():
        line.read()
        time.sleep(0.1)
        line.read()
        return {reading[0] for reading in parse_tfmini(await_bytes(line, 90))[1:-1]}

    assert distances_cm() <= {499, 500, 501}
    crate = {"name": "crate", "size_m": [1.0, 1.0, 1.0], "position_m": [3.5, 0.0, 1.5], "material": "concrete"}
    control.change("add", box=crate)
    assert "crate" in control.state()["objects"]
    assert distances_cm() <= {299, 300, 301}
    control.change("move", at_s=control.state()["rig_s"] + 0.2, name="crate", position_m=[2.5, 0.0, 1.5])
    assert distances_cm() <= {199, 200, 201}
    assert [change["kind"] for change in control.script()] == ["add", "move"]
    running.process.send_signal(signal.SIGHUP)
    running.await_log(r'"event": "rig.reloaded"')
    assert distances_cm() <= {499, 500, 501}
    assert "crate" not in control.state()["objects"]


def test_a_rangefinder_whose_cable_is_pulled_and_plugged_in_again_goes_on_without_a_burst(daemon, cable, tmp_path):
    line = cable("tfmini")
    running = daemon(held(tmp_path, rangefinder("tfmini", tmp_path / "tfmini")))
    await_bytes(line, 90)
    line.pull()
    running.await_log(r'"event": "serial_device\.port_lost"')
    running.await_log(r'"event": "serial_device\.port_not_opened"')
    time.sleep(1.0)
    line = cable("tfmini")
    before = len(running.text())
    running.await_log(r'"event": "serial_device\.port_opened"', after=before)
    opened = datetime.fromisoformat(events(running, "serial_device.port_opened")[-1]["timestamp"])
    data = await_bytes(line, 9 * 60)
    since_s = (datetime.now(UTC) - opened).total_seconds()  # by the daemon's own stamp: its log may be read late
    assert len(data) // 9 <= 100 * since_s + 30  # a second was out; its hundred frames are not made up for
    assert running.text().count("serial_device.port_not_opened") == 1
    assert running.stop()[0] == 0


def post(tmp_path, wall_m, *rangefinders):
    """A post of 1 m with range sensors on it, which look east at a wall; no vehicle, no lidar."""
    scene = f"""
name = "post"
[platform]
position_m = [0.0, 0.0, 1.0]
[[scene.box]]
position_m = [{wall_m + 0.5}, 0.0, 0.0]
size_m = [1.0, 8.0, 12.0]
[metrics]
port = 0
"""
    return write_rig(tmp_path, scene + "".join(rangefinders))


def tfmini_distances(line, frames=40):
    """Of the newest frames: what a pseudo-terminal held before is thrown away."""
    line.read()
    return {reading[0] for reading in parse_tfmini(await_bytes(line, 9 * frames))[1:-1]}


def test_a_rangefinder_on_a_post_is_a_rig_and_a_reload_shows_it_another_scene(daemon, cable, tmp_path):
    line = cable("tfmini")
    port = rangefinder("tfmini", tmp_path / "tfmini")
    running = daemon(post(tmp_path, 5.0, port), wait=False)
    running.await_log(r'"event": "serial_device\.port_opened"')
    assert tfmini_distances(line) == {500}
    post(tmp_path, 3.0, port)
    running.process.send_signal(signal.SIGHUP)
    running.await_log(r'"changes": \["tfmini: unchanged"')
    assert 300 in tfmini_distances(line, 20)
    assert tfmini_distances(line) == {300}
    assert running.text().count("serial_device.port_opened") == 1  # it kept its port
    assert running.stop()[0] == 0


def test_the_shipped_rig_of_a_rangefinder_runs_by_itself(daemon, cable, tmp_path):
    path = profiles_directory() / "rigs" / "rangefinder.toml"
    [shipped] = load_rig(path).spec.part("rangefinder")
    text = path.read_text().replace(f'"{shipped.port}"', f'"{tmp_path / "tfmini"}"')
    line = cable("tfmini")
    running = daemon(write_rig(tmp_path, text + "\n[metrics]\nport = 0\n"), wait=False)
    running.await_log(r'"event": "serial_device\.port_opened"')
    distances = [reading[0] for reading in parse_tfmini(await_bytes(line, 9 * 40))[1:-1]]
    assert all(492 <= distance <= 508 for distance in distances)  # noise of 1 cm
    assert len(set(distances)) > 1


class Board:
    """A scripted flight controller at a serial line, and every frame it was sent, read by pymavlink."""

    def __init__(self, cable):
        self.cable = cable
        self.controller = Px4(Px4Spec(utc_at_zero_us=time.time_ns() // 1000))
        self.reader = common.MAVLink(None)
        self.reader.robust_parsing = True
        self.begun_ns = time.monotonic_ns()
        self.heard = []

    def run(self, seconds):
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            now_us = (time.monotonic_ns() - self.begun_ns) // 1000
            data = self.cable.read()
            self.controller.receive(now_us, data, held_up=True)
            self.cable.write(self.controller.advance(now_us))
            for message in self.reader.parse_buffer(data) or []:
                self.heard.append((time.monotonic(), message))
            time.sleep(0.002)

    def of(self, kind, component=196):
        return [(at_s, message) for at_s, message in self.heard if message.get_type() == kind and message.get_srcComponent() == component]


LIDAR = """
[[sensor]]
name = "top"
mount_position_m = [0.0, 0.0, 0.1]
mount_rotation_deg = [0.0, 0.0, 40.0]
[sensor.network]
source_ports = "any"
"""


STEERED = """
[vehicle]
yaw_deg = 0.0
position_m = [0.0, 0.0, 0.01]
obstacle = { sensor = "top", range_max_m = 30.0, low_m = 0.0 }
[[vehicle.distance]]
sensor = "top"
rate_hz = 20.0
orientation = "right"
sensor_id = 4
[[vehicle.distance]]
sensor = "top"
orientation = "backward"
sensor_id = 5
range_max_m = 8.0
"""
THROWN_AWAY = 12
"""Frames that a port holds of 0.2 s without motor commands, when what waits there is thrown away: 45 a second, and one of each kind."""


@pytest.fixture
def seeing(daemon, cable, receiver, tmp_path):
    """A daemon that tells a board what its vehicle's lidar sees."""
    line = cable("board")
    ports = receiver(), receiver()
    steered = STEERED.replace("[vehicle]\n", f'[vehicle]\ncontroller = {{ kind = "serial", port = "{tmp_path / "board"}" }}\n')
    lidar = LIDAR + f"data_port = {ports[0].port}\nposition_port = {ports[1].port}\n"
    return daemon(write_rig(tmp_path, PLACE + steered + lidar)), Board(line)


def not_got(board):
    """Frames about obstacles and distances that never came, by the gaps of their numbers."""
    numbers = np.array([message.get_seq() for _, message in board.heard if message.get_srcComponent() == 196])
    return int((np.diff(numbers) % 256 - 1).sum())


def not_sent(said):
    """Those that the daemon says it left out, and the most that silences can have cost."""
    left_out = said["hilsim_link_unsent_obstacle_frames_total"] + said["hilsim_link_untaken_obstacle_frames_total"]
    return left_out + said["hilsim_link_silences_total"] * THROWN_AWAY


@pytest.mark.extended
def test_a_controller_receives_obstacles_and_distances_in_its_own_axes_at_their_rates(seeing):
    running, board = seeing
    board.run(6.0)
    rings = board.of("OBSTACLE_DISTANCE")[-30:]
    assert len(rings) == 30
    ring = rings[-1][1]
    periods_us = np.diff([message.time_usec for _, message in rings])
    assert np.median(periods_us) == pytest.approx(66_667, abs=10_000)  # by the sender's stamps: a busy machine leaves some out
    assert (ring.frame, ring.increment, ring.increment_f, ring.angle_offset, ring.min_distance, ring.max_distance) == (12, 5, 5.0, 0.0, 50, 3000)
    assert ring.distances[0] == pytest.approx(500, abs=4)
    assert ring.distances[18] == pytest.approx(700, abs=4)
    assert [ring.distances[sector] for sector in (36, 54, 45)] == [3001, 3001, 3001]
    beams = {which: [pair for pair in board.of("DISTANCE_SENSOR") if pair[1].id == which][-30:] for which in (4, 5)}
    periods_ms = np.diff([message.time_boot_ms for _, message in beams[4]])
    assert np.median(periods_ms) == pytest.approx(50.0, abs=10.0)  # by the sender's stamps
    right, behind = beams[4][-1][1], beams[5][-1][1]
    assert (right.orientation, right.current_distance) == (2, pytest.approx(700, abs=4))
    assert (behind.orientation, behind.max_distance, behind.current_distance) == (4, 800, 801)
    assert not_got(board) <= not_sent(figures(running))  # a board that is kept waiting gets fewer, and they are counted


@pytest.mark.extended
def test_a_board_that_does_not_read_for_a_while_gets_nothing_old_and_what_it_does_not_get_is_counted(seeing):
    running, board = seeing
    for _ in range(3):
        board.run(1.5)
        time.sleep(0.6)
    board.run(1.5)
    said = figures(running)
    assert said["hilsim_link_silences_total"] >= 3
    assert said["hilsim_link_unsent_obstacle_frames_total"] > 0
    assert 0 < not_got(board) <= not_sent(said)
    stamps_us = np.array([message.time_usec for _, message in board.of("OBSTACLE_DISTANCE")])
    steps_us = np.diff(stamps_us)
    assert (steps_us > 0).all()
    assert (steps_us > 300_000).sum() >= 3  # nothing of a silence is sent after it
