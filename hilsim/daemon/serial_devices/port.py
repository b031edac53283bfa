"""Thread of one device on a serial port: it opens the port, passes received bytes to the device, and writes each frame when it is due.

It is an ordinary Python thread: a driver waits tens of milliseconds for a reading, and the packet path does not depend on it.
Each change of the port is logged once; frames due during a stall or without a port are skipped and never sent later.
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

import structlog

from hilsim.daemon.serial_devices.device import ConfiguredDevice, SerialDevice
from hilsim.errors import LinkError
from hilsim.faults.specs import FaultSpec
from hilsim.telemetry.readings import SerialDeviceReading
from hilsim.transmit.links.broken_line import BrokenLine
from hilsim.transmit.links.serial_port import OpenPort, open_serial
from hilsim.transmit.links.timed_bytes import TimedBytes
from hilsim.transmit.scheduling import ThreadSettings, enter

log = structlog.get_logger("hilsim")

_AHEAD_NS = 2_000_000
"""Time from making frames to the deadline of the last of them, over which poses are extrapolated."""
_STALL_NS = 20_000_000
_LONGEST_COUNT_NS = 1_000_000_000
_LONGEST_WAIT_NS = 10_000_000
_RETRY_S = 0.5
_MAX_QUEUED_BYTES = 256
"""Unsent bytes from which frames are skipped: the line is then slower than the device, and a queued frame would be old when it arrives."""
_PLAIN = ThreadSettings(scheduling="plain")


@dataclass(kw_only=True, eq=False)
class SerialDevicePort:
    """A device and its port.

    Attributes:
        configured: Device with its settings in the rig.
        seed: Random seed of the rig.
        line: Line of the port.
    """

    configured: ConfiguredDevice
    sent_frames: int = 0
    dropped_frames: int = 0
    device: str = ""
    line: BrokenLine = field(init=False)
    seed: int = 0
    _epoch_ns: int = 0
    _problem: str = ""
    _lasting_name: str | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __post_init__(self) -> None:
        self.line = BrokenLine(self.name, self.seed)

    def break_later(self, from_ns: int, faults: tuple[FaultSpec, ...]) -> None:
        """Let the device and its line have a rig's faults from a rig time on."""
        self.line.set_faults(from_ns, faults)
        if self.configured.break_later is not None:
            self.configured.break_later(from_ns, faults)

    @property
    def name(self) -> str:
        """Name for logs and metrics."""
        return self.configured.name

    def start(self, *, epoch_ns: int, utc_epoch_ns: int) -> None:
        """Start the thread; rig time 0 is CLOCK_MONOTONIC ``epoch_ns`` and UTC ``utc_epoch_ns``."""
        self._epoch_ns = epoch_ns
        self.line.begin(epoch_ns)
        self.configured.device.begin(utc_epoch_ns)
        self._thread = threading.Thread(target=self._run, name=f"serial-{self.name}", daemon=True)
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

    def reading(self) -> SerialDeviceReading:
        """Values for the metrics."""
        return SerialDeviceReading(device=self.name, is_open=bool(self.device), sent_frames=self.sent_frames, dropped_frames=self.dropped_frames)

    def _run(self) -> None:
        enter(_PLAIN)
        while not self._stop.is_set():
            port = self._open()
            if port is None:
                self._stop.wait(_RETRY_S)
                continue
            try:
                self._serve(self.configured.device, port.descriptor)
            except OSError as error:
                log.warning("serial_device.port_lost", serial_device=self.name, device=port.device, reason=os.strerror(error.errno or errno.EIO))
            finally:
                self.device = ""
                self.line.detach()
                port.close()

    def _open(self) -> OpenPort | None:
        try:
            self.line.require_in()
            port = open_serial(self.configured.serial, name=self._lasting_name)
            self.line.attach(port.descriptor)
        except LinkError as error:
            if str(error) != self._problem:
                self._problem = str(error)
                log.warning("serial_device.port_not_opened", serial_device=self.name, reason=self._problem)
            return None
        self._problem, self._lasting_name, self.device = "", port.name, port.device
        log.info("serial_device.port_opened", serial_device=self.name, device=port.device)
        return port

    def _now_ns(self) -> int:
        return time.monotonic_ns() - self._epoch_ns

    def _serve(self, device: SerialDevice, descriptor: int) -> None:
        """Serve the device at an open port until stopped.

        Raises:
            OSError: the port has disappeared.
        """
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        done_ns = max(self._now_ns(), 0)
        while not self._stop.is_set():
            wait_ns = min(device.next_ns(done_ns) - _AHEAD_NS - self._now_ns(), _LONGEST_WAIT_NS)
            if poller.poll(max(-(-wait_ns // 1_000_000), 0)):  # rounded up, otherwise it would spin for the last millisecond
                self._receive(device, descriptor, done_ns)
            now_ns = self._now_ns()
            if now_ns - done_ns > _STALL_NS:
                self._skip(device, done_ns, now_ns)
                done_ns = now_ns
            from_ns, done_ns = done_ns, max(now_ns + _AHEAD_NS, done_ns)
            if device.next_ns(from_ns) < done_ns:
                for frame in device.frames(from_ns, done_ns):
                    self._send(descriptor, frame)

    def _receive(self, device: SerialDevice, descriptor: int, done_ns: int) -> None:
        data = os.read(descriptor, 4096)
        if not data:
            raise OSError(errno.ENODEV, "the port has disappeared")
        for answer in device.receive(data, max(self._now_ns(), done_ns)):  # not before the frames that are already made
            os.write(descriptor, answer)

    def _skip(self, device: SerialDevice, from_ns: int, now_ns: int) -> None:
        """Skip and count the frames that were due; of a stall longer than a second, those of the last second."""
        self.dropped_frames += device.skip(max(from_ns, now_ns - _LONGEST_COUNT_NS), now_ns)

    def _send(self, descriptor: int, frame: TimedBytes) -> None:
        """Write a frame in one piece when it is due, or skip it if the line is too slow."""
        rest_ns = frame.time_ns - self._now_ns()
        if rest_ns > 0:
            time.sleep(rest_ns / 1e9)
        queued = struct.unpack("i", fcntl.ioctl(descriptor, termios.TIOCOUTQ, b"\0\0\0\0"))[0]
        try:
            is_sent = queued <= _MAX_QUEUED_BYTES and os.write(descriptor, frame.data) == len(frame.data)
        except BlockingIOError:
            is_sent = False
        self.sent_frames += is_sent
        self.dropped_frames += not is_sent
