"""Control interface of a Hesai on loopback, without a rig: what follows its state is a list."""

import asyncio
import contextlib
import socket
import threading
import time

from hilsim.errors import ConfigError
from hilsim.families.hesai.daemon.sensor import HesaiSensor
from hilsim.families.hesai.daemon.server import serve_http, serve_ptc
from hilsim.families.hesai.interface.requests import Conditions
from hilsim.families.hesai.interface.state import HesaiState, Unit
from hilsim.families.hesai.protocol.ptc import HEAD_SIZE, ReturnCode, encode_frame

UNIT = Unit(model="XT32", serial="XT32-1", mac=bytes(range(6)), angles_deg=tuple((15.0 - channel, 0.0) for channel in range(32)))


class Followed:
    """Packets of no rig: states that they followed."""

    def __init__(self):
        self.states, self.refused, self.has_power = [], None, True

    async def follow(self, former, state):
        del former
        if self.refused is not None and state.values.get(self.refused[0]) == self.refused[1]:
            raise ConfigError("the rig must not be so")
        self.states.append(state)

    async def save(self, state):
        """Nowhere."""

    def present(self, state):
        return state

    def answers(self):
        return self.has_power

    def conditions(self):
        return Conditions(now_ns=time.monotonic_ns())


class Served:
    """A sensor that serves, and where."""

    def __init__(self, sensor, packets, http, ptc):
        self.sensor, self.packets = sensor, packets
        self.http, self.ptc = http.getsockname()[:2], ptc.getsockname()[:2]


@contextlib.contextmanager
def unit_in_thread(address="127.0.89.2", boot_s=0.3, ptc_port=0):
    """Serve a unit in a thread with an event loop."""
    ready, found, loop = threading.Event(), [], []

    async def serve():
        packets = Followed()
        sensor = HesaiSensor("lidar", HesaiState.of(UNIT, {}), packets, boot_s=boot_s)
        http, ptc = (socket.create_server((address, port)) for port in (0, ptc_port))
        async with serve_http(sensor, http), serve_ptc(sensor, ptc):
            found.append(Served(sensor, packets, http, ptc))
            loop[:] = [asyncio.get_running_loop(), asyncio.Event()]
            ready.set()
            await loop[1].wait()
            await sensor.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(20)
        yield found[0]
    finally:
        if loop:
            loop[0].call_soon_threadsafe(loop[1].set)
        thread.join(20)


class Client:
    """A connection that asks one request after the other."""

    def __init__(self, place):
        self.socket = socket.create_connection(place, 20)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def take(self):
        """Command, result and payload of the next answer; None: the connection is closed."""
        head = self._read(HEAD_SIZE)
        if len(head) < HEAD_SIZE:
            return None
        assert head[:2] == b"\x47\x74"
        return head[2], ReturnCode(head[3]), self._read(int.from_bytes(head[4:], "big"))

    def _read(self, size):
        data = b""
        while len(data) < size and (more := self._receive(size - len(data))):
            data += more
        return data

    def _receive(self, size):
        try:
            return self.socket.recv(size)
        except ConnectionError:
            return b""

    def ask(self, command, payload=b""):
        self.socket.sendall(encode_frame(command, payload))
        answer = self.take()
        assert answer is not None
        assert answer[0] == command
        return answer[1:]
