"""UDP server of a Livox: discovery, commands and push messages at the sensor's own address.

A socket that is bound to the address sends each answer: hosts take a packet from another address for that of another sensor. Broadcasts arrive at a further
socket, which other sensors and a host on the same machine may have, too.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from hilsim.errors import TransmitError
from hilsim.families.livox.daemon.sensor import LivoxSensor
from hilsim.families.livox.interface.keys import SEARCH_PORT, Destination, Ports
from hilsim.families.livox.protocol.commands import Command, ControlFrame, read_frame
from hilsim.limits import CONTROL_REQUESTS_A_SECOND, SENSOR_WAITING_REQUESTS
from hilsim.telemetry.allowance import Allowance

BROADCAST = "255.255.255.255"
_ANSWER_S = 0.004
"""Time from a request to its answer: Livox-SDK2 enters a command into its list after it has sent it, and drops an answer that is faster."""
Host = tuple[str, int]


def open_ports(name: str, address: str, ports: Ports) -> dict[tuple[str, int], socket.socket]:
    """Sockets of a sensor by address and port: one for each of its own ports, and one for broadcasts.

    Raises:
        TransmitError: a port cannot be opened.
    """
    opened: dict[tuple[str, int], socket.socket] = {}
    try:
        for place in ((address, SEARCH_PORT), (address, ports.command), (address, ports.push), (BROADCAST, SEARCH_PORT)):
            if place not in opened:
                opened[place] = _open(*place)
    except OSError as error:
        for each in opened.values():
            each.close()
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise TransmitError(f"network.source of {name} must have the free UDP port {place[1]}, got {place[0]}: {reason}") from error
    return opened


def _open(address: str, port: int) -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        if port == SEARCH_PORT:  # hosts on this machine and other sensors have it as well
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((address, port))
    except OSError:
        opened.close()
        raise
    return opened


class _Receiver(asyncio.DatagramProtocol):
    """A port whose datagrams go to a function; what a host refuses is none of the sensor's business."""

    def __init__(self, receive: Callable[[bytes, Host], None]) -> None:
        self._receive = receive

    def datagram_received(self, data: bytes, addr: Host) -> None:
        self._receive(data, addr)


class Server:
    """Ports of a sensor, and what is sent from them."""

    def __init__(self, address: str, ports: Ports) -> None:
        """Serve nothing yet."""
        self._address, self._ports = address, ports
        self._transports: dict[tuple[str, int], asyncio.DatagramTransport] = {}
        self._waiting: asyncio.Queue[tuple[ControlFrame, int, Host]] = asyncio.Queue(SENSOR_WAITING_REQUESTS.bound)
        self._allowance = Allowance(most=CONTROL_REQUESTS_A_SECOND.bound)

    def push(self, payload: bytes, host: Destination) -> None:
        """Send a push message."""
        transport = self._transports.get((self._address, self._ports.push))
        if transport is not None:
            transport.sendto(payload, (host.address, host.port))

    @asynccontextmanager
    async def serve(self, sensor: LivoxSensor, sockets: dict[tuple[str, int], socket.socket]) -> AsyncIterator[None]:
        """Answer requests while the block runs."""
        loop = asyncio.get_running_loop()
        tasks = []
        try:
            for place, each in sockets.items():
                transport, _ = await loop.create_datagram_endpoint(lambda place=place: _Receiver(self._receiver(*place)), sock=each)  # type: ignore[misc]
                self._transports[place] = transport
            tasks = [asyncio.create_task(each, name=f"livox-{sensor.name}") for each in (self._answer(sensor), sensor.run())]
            yield
        finally:
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            for transport in self._transports.values():
                transport.abort()
            self._transports.clear()

    def _receiver(self, address: str, port: int) -> Callable[[bytes, Host], None]:
        is_broadcast = address == BROADCAST

        def receive(payload: bytes, host: Host) -> None:
            try:
                frame = read_frame(payload)
            except ValueError:
                return
            is_search = frame.command == Command.SEARCH
            is_request = not frame.is_answer and not frame.is_from_sensor and is_search >= is_broadcast
            if is_request and self._allowance.take():
                with suppress(asyncio.QueueFull):
                    self._waiting.put_nowait((frame, port, host))

        return receive

    async def _answer(self, sensor: LivoxSensor) -> None:
        while True:
            frame, port, host = await self._waiting.get()
            if not sensor.answers():
                continue
            answer = await sensor.request(frame)
            await asyncio.sleep(_ANSWER_S)
            self._transports[(self._address, port)].sendto(answer, host)
