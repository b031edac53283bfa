"""The thread of one range sensor on a serial port: keeps the port, hears the autopilot's driver, and writes each frame when it is due.

It is an ordinary Python thread: an autopilot's driver waits tens of milliseconds for a reading, and nothing on the packet path waits for this. Rays are cast without the GIL, from where the vehicle is then.
Whatever happens to the port is said once in the log; after a stall, and while there is no port, frames are left out, never made up for.
"""

import errno
import fcntl
import os
import select
import struct
import termios
import threading
import time
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import structlog

from hilsim.autopilot.specs import AnyRangerSpec
from hilsim.errors import LinkError
from hilsim.links.serial_port import OpenPort, SerialSpec, open_serial
from hilsim.rangefinders.aim import live_rays
from hilsim.rangefinders.base import Ranger, TimedBytes
from hilsim.rangefinders.registry import build_ranger
from hilsim.render.cpu import cast_rays
from hilsim.scene.world import World
from hilsim.telemetry.vehicle_readings import RangerReading
from hilsim.transmit.scheduling import ThreadSettings, enter
from hilsim.vehicle.live import LivePose

log = structlog.get_logger("hilsim")

_AHEAD_NS = 2_000_000
"""Frames are made so long before the last of them is due: poses are carried on over it."""
_STALL_NS = 20_000_000
_LONGEST_COUNT_NS = 1_000_000_000
_LONGEST_WAIT_NS = 10_000_000
_RETRY_S = 0.5
_MOST_QUEUED_BYTES = 256
"""A line that still holds so much is slower than the sensor: what would queue up behind is old when it arrives."""
_NOISE_SIGMAS = 8.0
_PLAIN = ThreadSettings(scheduling="plain")


@dataclass(kw_only=True, eq=False)
class RangerPort:
    """A range sensor at its port.

    Attributes:
        name: For logs and metrics.
        spec: What the rig says.
        seed: Of the rig.
        stream: The ranger's number.
        world: What it sees.
        live: Where the vehicle is.
    """

    name: str
    spec: AnyRangerSpec
    seed: int
    stream: int
    world: World
    live: LivePose
    sent_frames: int = 0
    dropped_frames: int = 0
    device: str = ""
    _epoch_ns: int = 0
    _problem: str = ""
    _lasting_name: str | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def warm(self) -> None:
        """Load or compile what casts its rays."""
        self._sample(np.zeros(1, np.int64), np.zeros(1))

    def start(self, *, epoch_ns: int) -> None:
        """Begin; rig time 0 is CLOCK_MONOTONIC ``epoch_ns``."""
        self._epoch_ns = epoch_ns
        self._thread = threading.Thread(target=self._run, name=f"range-{self.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and close the port."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def reading(self) -> RangerReading:
        """What a scrape shows."""
        return RangerReading(ranger=self.name, is_open=bool(self.device), sent_frames=self.sent_frames, dropped_frames=self.dropped_frames)

    def _run(self) -> None:
        enter(_PLAIN)
        ranger = build_ranger(self.spec, seed=self.seed, stream=self.stream)
        while not self._stop.is_set():
            port = self._open()
            if port is None:
                self._stop.wait(_RETRY_S)
                continue
            try:
                self._serve(ranger, port.descriptor)
            except OSError as error:
                log.warning("ranger.port_lost", ranger=self.name, device=port.device, reason=os.strerror(error.errno or errno.EIO))
            finally:
                self.device = ""
                port.close()

    def _open(self) -> OpenPort | None:
        try:
            port = open_serial(SerialSpec(path=self.spec.port, baud=self.spec.baud), name=self._lasting_name)
        except LinkError as error:
            if str(error) != self._problem:
                self._problem = str(error)
                log.warning("ranger.port_not_opened", ranger=self.name, reason=self._problem)
            return None
        self._problem, self._lasting_name, self.device = "", port.name, port.device
        log.info("ranger.port_opened", ranger=self.name, device=port.device)
        return port

    def _now_ns(self) -> int:
        return time.monotonic_ns() - self._epoch_ns

    def _serve(self, ranger: Ranger, descriptor: int) -> None:
        """Be the sensor at an open port until told to stop.

        Raises:
            OSError: the port is gone.
        """
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        done_ns = max(self._now_ns(), 0)
        while not self._stop.is_set():
            wait_ns = min(ranger.next_ns(done_ns) - _AHEAD_NS - self._now_ns(), _LONGEST_WAIT_NS)
            if poller.poll(max(-(-wait_ns // 1_000_000), 0)):  # rounded up, or it would spin for the last millisecond
                self._hear(ranger, descriptor, done_ns)
            now_ns = self._now_ns()
            if now_ns - done_ns > _STALL_NS:
                self._skip(ranger, done_ns, now_ns)
                done_ns = now_ns
            from_ns, done_ns = done_ns, max(now_ns + _AHEAD_NS, done_ns)
            if ranger.next_ns(from_ns) < done_ns:
                for frame in ranger.frames(from_ns, done_ns, self._sample):
                    self._send(descriptor, frame)

    def _hear(self, ranger: Ranger, descriptor: int, done_ns: int) -> None:
        data = os.read(descriptor, 4096)
        if not data:
            raise OSError(errno.ENODEV, "the port is gone")
        for answer in ranger.receive(data, max(self._now_ns(), done_ns)):  # what is made already stays
            os.write(descriptor, answer)

    def _skip(self, ranger: Ranger, from_ns: int, now_ns: int) -> None:
        """Leave out what was due, and count it: of a stall longer than a second, the last second."""
        unseen = ranger.frames(max(from_ns, now_ns - _LONGEST_COUNT_NS), now_ns, lambda time_ns, _: np.full(time_ns.size, np.inf))
        self.dropped_frames += len(unseen)

    def _send(self, descriptor: int, frame: TimedBytes) -> None:
        """Write a frame in one piece when it is due, or leave it out where the line is behind."""
        rest_ns = frame.time_ns - self._now_ns()
        if rest_ns > 0:
            time.sleep(rest_ns / 1e9)
        queued = struct.unpack("i", fcntl.ioctl(descriptor, termios.TIOCOUTQ, b"\0\0\0\0"))[0]
        try:
            is_sent = queued <= _MOST_QUEUED_BYTES and os.write(descriptor, frame.data) == len(frame.data)
        except BlockingIOError:
            is_sent = False
        self.sent_frames += is_sent
        self.dropped_frames += not is_sent

    def _sample(self, time_ns: npt.NDArray[np.int64], azimuth_deg: npt.NDArray[np.float64]) -> npt.NDArray[np.floating]:
        rays = live_rays(self.spec, self.live, time_ns, azimuth_deg)
        range_m = np.empty(time_ns.size, np.float32)
        instance, triangle = np.empty(time_ns.size, np.int32), np.empty(time_ns.size, np.int32)
        reach_m = self.spec.range_max_m + _NOISE_SIGMAS * self.spec.range_noise_m
        cast_rays(self.world, rays.origin_m, rays.direction, time_ns, reach_m, range_m, instance, triangle)
        return range_m
