"""Control interface of a Livox on loopback, without a rig: what follows its state is a list."""

import asyncio
import contextlib
import fcntl
import socket
import struct
import tempfile
import threading
import time
from pathlib import Path

import pytest

from hilsim.errors import ConfigError
from hilsim.families.livox.daemon.sensor import LivoxSensor
from hilsim.families.livox.daemon.server import Server, open_ports
from hilsim.families.livox.interface.keys import HAP_PORTS, MID360_PORTS
from hilsim.families.livox.interface.state import Conditions, LidarState, Unit
from hilsim.families.livox.protocol.commands import ControlFrame, encode_frame, read_frame, read_pairs

SENSOR, HOST = "127.0.88.2", "127.0.88.9"


@pytest.fixture
def only_livox():
    """No other test has sensors or hosts at the ports of a Livox meanwhile: a host's broadcasts reach all sensors of the machine."""
    with (Path(tempfile.gettempdir()) / "hilsim-tests-livox").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def unit_of(address, model="mid360", boot_s=0.0, serial="47MDK000000001"):
    """Facts of a unit."""
    return Unit(
        model=model,
        device_type={"mid360": 9, "mid360s": 35, "hap": 10}[model],
        serial=serial,
        title="no real unit",
        mac=bytes(range(6)),
        address=address,
        ports=HAP_PORTS if model == "hap" else MID360_PORTS,
        boot_ns=round(boot_s * 1e9),
    )


class Followed:
    """Packets of no rig: states that they followed, and whether points are sent."""

    def __init__(self):
        self.states, self.shown, self.refused, self.has_power, self._begun_ns = [], [], None, True, time.monotonic_ns()

    async def follow(self, former, state):
        del former
        if self.refused is not None and state.values.get(self.refused[0]) == self.refused[1]:
            raise ConfigError("the rig must not be so")
        self.states.append(state)

    def show(self, state, now_ns):
        self.shown.append((state.work(now_ns), state.sends_points(now_ns), state.sends_imu(now_ns)))

    async def save(self, state):
        """Nowhere."""

    def present(self, state):
        return state

    def answers(self):
        return self.has_power

    def conditions(self):
        now_ns = time.monotonic_ns() - self._begun_ns
        return Conditions(now_ns=now_ns, local_ns=now_ns, time_type=0)


@contextlib.contextmanager
def units_in_thread(*units):
    """Serve units in a thread with an event loop; gives each one's packets and sensor."""
    ready, found, loop = threading.Event(), [], []

    async def serve():
        async with contextlib.AsyncExitStack() as stack:
            for unit in units:
                packets, server = Followed(), Server(unit.address, unit.ports)
                sensor = LivoxSensor("lidar", LidarState.of(unit, {}), packets, server.push)
                await stack.enter_async_context(server.serve(sensor, open_ports("lidar", unit.address, unit.ports)))
                found.append((packets, sensor))
            loop[:] = [asyncio.get_running_loop(), asyncio.Event()]
            ready.set()
            await loop[1].wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(20)
        yield found
    finally:
        if loop:
            loop[0].call_soon_threadsafe(loop[1].set)
        thread.join(20)


def counted_keys(keys):
    """Data of a query."""
    return struct.pack(f"<{len(keys) + 2}H", len(keys), 0, *keys)


def read_answered_pairs(data):
    """Keys and values of the answer to a query."""
    return read_pairs(data[1:3] + bytes(2) + data[3:])


class Host:
    """A socket of a host, and the number of its next request."""

    def __init__(self, address=HOST, port=0):
        self.socket, self.sequence = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        self.socket.bind((address, port))
        self.socket.settimeout(20)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, command, data=b"", to=(SENSOR, 56_100)):
        self.sequence += 1
        self.socket.sendto(encode_frame(ControlFrame(command=command, sequence=self.sequence, data=data)), to)

    def take(self):
        payload, sender = self.socket.recvfrom(2000)
        return read_frame(payload), sender

    def ask(self, command, data=b"", to=(SENSOR, 56_100)):
        self.send(command, data, to)
        frame, sender = self.take()
        assert (sender, frame.sequence, frame.command, frame.is_answer, frame.is_from_sensor) == (to, self.sequence, command, True, True)
        return frame.data

    def is_silent(self, seconds=0.3):
        self.socket.settimeout(seconds)
        try:
            self.socket.recv(2000)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(20)
        return False


def destination(key, port, address=HOST):
    return key, socket.inet_aton(address) + port.to_bytes(2, "little") + MID360_PORTS.of(key).to_bytes(2, "little")
