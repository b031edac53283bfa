"""The loop that flies, in a thread of this process, with pymavlink at the other end of its link."""

import os
import socket
import threading
import time
from contextlib import suppress

from pymavlink.dialects.v20 import common

from hilsim.compilation.atomics import publish
from hilsim.parts.vehicle.autopilot.loop import fly
from hilsim.parts.vehicle.autopilot.loop_context import ControlWord, FlightCount
from hilsim.parts.vehicle.autopilot.loop_setup import build_loop_setup, open_line
from hilsim.parts.vehicle.autopilot.session import SessionState, SessionWord
from hilsim.parts.vehicle.specs import ControllerSpec, VehicleRigSpec
from hilsim.world.platforms.live import build_live_pose
from hilsim.world.scene.materials import DEFAULTS
from hilsim.world.scene.primitives import plane
from hilsim.world.scene.world import SceneObject, build_world
from hilsim_flight_controller.wire import Splitter, Writer
from tests.unit.vehicle.vehicles import profile

HIL, ARMED = 0x20, 0x80
UTC_EPOCH_NS = 1_780_000_000_000_000_000
_PATIENCE_S = 20.0
_BEAT_S = 0.5
_STEER_S = 0.02
_FLOOR = build_world([SceneObject(mesh=plane((100.0, 100.0), DEFAULTS["grass"]))])


def vehicle_spec(kind="serial", **controller):
    where = {"serial": {"port": "/dev/null"}, "udp": {"address": "127.0.0.1:1"}}.get(kind, {})
    return VehicleRigSpec(controller=ControllerSpec(kind=kind, **where, **controller))


class FlyingLoop:
    """A vehicle on a floor, flown in a thread until ``end``; ``plug`` gives it a link."""

    def __init__(self, spec):
        kind = spec.controller.kind
        self.made = build_loop_setup(spec, profile("iris"), open_line(kind), seed=3, rate_hz=spec.controller.rate_hz)
        self.shared, self.live = self.made.shared, build_live_pose()
        for column in range(2):
            self.shared.wakes[column] = os.eventfd(0, os.EFD_NONBLOCK)
        self.near = self.far = None
        self.splitter, self.writer, self.frames = Splitter(), Writer(1, 1), []
        self.steering = None
        self.steered_s = 0.0
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        made = self.made
        fly(made.context, made.flight, _FLOOR, self.live, made.shared, made.buffers, time.monotonic_ns(), UTC_EPOCH_NS)

    def begin(self):
        self.shared.control[ControlWord.ENDS] = 1
        self._run()  # compiles, so that no test waits for it later
        self.shared.control[ControlWord.ENDS] = 0
        self.thread.start()
        return self

    def plug(self, buffer_bytes=None):
        self.near, self.far = socket.socketpair()
        if buffer_bytes:
            self.near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes)
        self.near.settimeout(0)
        self.far.settimeout(0)
        publish(self.shared.control, ControlWord.LINK, self.near.fileno())

    def pull(self):
        """The cable is out."""
        self.far.close()
        self.far = None

    def end(self):
        publish(self.shared.control, ControlWord.ENDS, 1)
        self.thread.join(_PATIENCE_S)
        assert not self.thread.is_alive()
        for opened in (self.near, self.far):
            if opened is not None:
                opened.close()
        for column in range(2):
            os.close(int(self.shared.wakes[column]))

    def count(self, name):
        return int(self.shared.counts[FlightCount[name]])

    @property
    def state(self):
        return SessionState(int(self.shared.session.word[SessionWord.STATE]))

    @property
    def physics_ns(self):
        return int(self.made.flight.state.time_ns[0])

    def await_that(self, condition):
        """Read what comes until a condition holds; fails when it never does. Motor commands go on meanwhile, as a controller's do."""
        end_s = time.monotonic() + _PATIENCE_S
        while not condition():
            self.steer_on()
            assert time.monotonic() < end_s, (self.state, self.shared.counts.tolist(), [frame.identity for frame in self.frames[-20:]])
            self.read()
            time.sleep(0.001)

    def read(self):
        if self.far is None:
            return
        with suppress(BlockingIOError, ConnectionResetError):
            self.frames += self.splitter.feed(self.far.recv(1 << 16))

    def messages(self, name):
        """Messages that came so far of a name."""
        return [message for message in (frame.message() for frame in self.frames) if message is not None and message.get_type() == name]

    def await_messages(self, name, count):
        """The first ``count`` messages of a name from now on; a controller that flies says its heartbeats meanwhile."""
        self.read()
        self.frames.clear()
        end_s = time.monotonic() + 3 * _PATIENCE_S
        while len(found := self.messages(name)) < count:
            if self.state == SessionState.FLYING:
                self.beat()
            due_s = time.monotonic() + _BEAT_S
            self.await_that(lambda due_s=due_s: len(self.messages(name)) >= count or time.monotonic() > due_s)
            assert time.monotonic() < end_s, f"{len(found)} of {count} {name}"
        return found[:count]

    def say(self, message):
        self.far.sendall(self.writer.pack(message))

    def beat(self, mode=HIL, autopilot=common.MAV_AUTOPILOT_PX4):
        self.say(common.MAVLink_heartbeat_message(2, autopilot, mode, 0, 4, 3))

    def steer_on(self):
        """The latest motor command again, when it is old."""
        if self.steering is not None and self.far is not None and time.monotonic() - self.steered_s > _STEER_S:
            self.steered_s = time.monotonic()
            with suppress(BlockingIOError, BrokenPipeError):
                self.say(self.steering)

    def fall_silent(self):
        """No motor commands any more."""
        self.steering = None

    def steer(self, *controls, mode=ARMED, time_us=1_000_000, flags=0):
        """Command the motors, and go on with it while something is waited for; in lockstep once."""
        message = common.MAVLink_hil_actuator_controls_message(time_us, [*controls, *[0.0] * (16 - len(controls))], mode, flags)
        self.steering, self.steered_s = (message if flags == 0 else None), time.monotonic()
        self.say(message)

    def fly(self):
        """Plugged in, and steered from then on."""
        self.plug()
        self.beat()
        self.await_that(lambda: self.state == SessionState.FLYING)
