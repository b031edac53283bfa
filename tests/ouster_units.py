"""Control interface of an Ouster on loopback, without a rig: what follows its state is a list."""

import asyncio
import contextlib
import json
import socket
import threading

from hilsim.errors import ConfigError
from hilsim.families.ouster.daemon.lines import serve_lines
from hilsim.families.ouster.daemon.sensor import OusterSensor
from hilsim.families.ouster.daemon.server import serve_http
from hilsim.families.ouster.interface.answers import Conditions
from hilsim.families.ouster.interface.state import ControlState
from tests.ouster_sensors import sensor


class Followed:
    """Packets of no rig: states that they followed, and those that were saved."""

    def __init__(self, address):
        self.address, self.states, self.saved, self.refused = address, [], [], ""

    async def follow(self, former, state):
        del former
        if self.refused and self.refused in json.dumps(dict(state.active)):
            raise ConfigError(f"the rig must not be {self.refused}")
        self.states.append(state)

    def present(self, state):
        return state

    async def save(self, state):
        self.saved.append(state)

    def answers(self):
        return True

    def conditions(self):
        return Conditions(address=self.address, mac="bc:0f:a7:00:00:01", uptime_ns=1, device_ns=2, utc_ns=3)


class Unit:
    """A sensor that serves, and where."""

    def __init__(self, sensor_, packets, http, lines):
        self.sensor, self.packets = sensor_, packets
        self.address, self.port = http.getsockname()[:2]
        self.lines_port = lines.getsockname()[1]
        self.http = f"http://{self.address}:{self.port}"

    @property
    def state(self):
        return self.sensor.state


@contextlib.asynccontextmanager
async def serving(address="127.0.0.9", port=0, lines_port=0, boot_s=0.05, **facts):
    """Serve a unit in the running event loop."""
    packets = Followed(address)
    unit = OusterSensor("lidar", ControlState.of(sensor(**facts)), packets, boot_s=boot_s)
    http, lines = (socket.create_server((address, number)) for number in (port, lines_port))
    async with serve_http(unit, http), serve_lines(unit, lines):
        try:
            yield Unit(unit, packets, http, lines)
        finally:
            await unit.close()


@contextlib.contextmanager
def unit_in_thread(**settings):
    """Serve a unit in a thread with an event loop, so that a test can wait for clients."""
    ready, serving_unit = threading.Event(), []

    async def serve():
        async with serving(**settings) as unit:
            serving_unit[:] = [unit, asyncio.get_running_loop(), asyncio.Event()]
            ready.set()
            await serving_unit[2].wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(20)
        yield serving_unit[0]
    finally:
        if serving_unit:
            serving_unit[1].call_soon_threadsafe(serving_unit[2].set)
        thread.join(20)


def run_with_unit(announce, function):
    """Result of a function that is called beside a unit at port 80 which is announced, all in the calling thread's network namespace."""

    async def run():
        async with serving(port=80) as unit, announce(unit.state, unit.address, unit.port):
            return await asyncio.to_thread(function)

    return asyncio.run(run())
