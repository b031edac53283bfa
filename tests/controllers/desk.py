"""The reference bridge in real time, for tests: a controller at a device or as a TCP client, ground stations over UDP."""

import os
import select
import socket
import time
from contextlib import suppress

from hilsim_flight_controller.lines import raw
from hilsim_flight_controller.wire import Splitter

_WAKE_MS = 1


class Serial:
    """A device; it may go and come again."""

    def __init__(self, path):
        self.path, self.fd = path, None

    def open(self):
        with suppress(FileNotFoundError):
            self.fd = os.open(self.path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
            raw(self.fd)

    def close(self):
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None


class Server:
    """One controller over TCP."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.socket.settimeout(0.0)
        self.fd = None

    @property
    def address(self):
        return "127.0.0.1:{1}".format(*self.socket.getsockname())

    def open(self):
        with suppress(BlockingIOError):
            connection, _ = self.socket.accept()
            connection.settimeout(0.0)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.fd = connection.detach()

    def close(self):
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
        self.socket.close()


class Desk:
    """``bridge`` at ``line``; ``stations`` are UDP addresses of ground stations. ``run`` returns when ``stop()`` says so. Not ``paced``, in lockstep, time is as fast as both ends are."""

    def __init__(self, bridge, line, stations=(), *, paced=True):
        self.bridge, self.line, self.paced = bridge, line, paced
        self.waiting = bytearray()
        self.bridge_us = 0
        self.sockets = [self._connected(address) for address in stations]
        self.begun_ns = time.monotonic_ns()
        bridge.utc_at_zero_us = time.time_ns() // 1000

    @staticmethod
    def _connected(address):
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.connect(address)
        udp.settimeout(0.0)
        return udp

    def run(self, stop, *, most_s=90.0):
        now_us = 0
        try:
            while not stop() and now_us < most_s * 1e6:
                self._wait()
                now_us = (time.monotonic_ns() - self.begun_ns) // 1000
                self._turn(now_us)
        finally:
            self.line.close()
            for udp in self.sockets:
                udp.close()

    def _wait(self):
        if self.line.fd is None:
            time.sleep(_WAKE_MS * 1e-3)
        else:
            wake_s = 0.0 if not self.paced and not self.bridge.waiting and self.bridge.heard_us is not None else _WAKE_MS * 1e-3
            select.select([self.line.fd, *self.sockets], [], [], wake_s)

    def _turn(self, now_us):
        if self.line.fd is None:
            self.line.open()
        for udp in self.sockets:
            with suppress(BlockingIOError, ConnectionRefusedError):
                for frame in Splitter().feed(udp.recv(65_536)):
                    self.bridge.from_ground(frame.raw)
        if self.line.fd is not None:
            self._exchange(now_us if self.paced else max(self.bridge_us, self.bridge.due_us))
        for raw_frame in self.bridge.to_ground:
            for udp in self.sockets:
                with suppress(ConnectionRefusedError):
                    udp.send(raw_frame)
        self.bridge.to_ground.clear()

    def _exchange(self, now_us):
        self.bridge_us = now_us
        try:
            self.waiting += self.bridge.advance(now_us)
            if self.waiting:
                with suppress(BlockingIOError):
                    del self.waiting[: os.write(self.line.fd, self.waiting)]
            with suppress(BlockingIOError):
                self.bridge.receive(now_us, self._read())
        except OSError:
            self._gone()

    def _read(self):
        data = os.read(self.line.fd, 65_536)
        if not data:
            raise OSError
        return data

    def _gone(self):
        os.close(self.line.fd)
        self.line.fd = None
        self.waiting.clear()
        self.bridge.unplugged()
