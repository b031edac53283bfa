"""Keeps the link to the flight controller: opens it, hands it to the flight loop, closes it when it is gone, and opens it again; and serves ground stations.

Each event is logged once; a fault of the link reaches nothing else in the daemon.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from hilsim.autopilot.ground_stations.endpoints import Protocol, StationSpec
from hilsim.autopilot.ground_stations.forwarding import Forwarder, forward
from hilsim.autopilot.loop_setup import open_line
from hilsim.autopilot.specs import GroundStationSpec, VehicleRigSpec
from hilsim.daemon.flight.log import FlightLog
from hilsim.daemon.flight.truth_messages import tell_truth
from hilsim.daemon.flight.vehicle import FlyingVehicle, paced_line, rate_within
from hilsim.errors import LinkError
from hilsim.links.addresses import host_and_port
from hilsim.links.budget import Line as LineKind
from hilsim.links.budget import LinkRates, plan_link
from hilsim.links.serial_port import OpenPort, open_serial
from hilsim.links.serial_spec import SerialSpec
from hilsim.links.sockets import accept_controller, listen_tcp, open_udp
from hilsim.protocols.mavlink.messages import HIL_ACTUATOR_CONTROLS
from hilsim.telemetry.guarded import guarded

log = structlog.get_logger("hilsim")

_POLL_S = 0.02
_RETRY_S = 0.5
_CLOSING_S = 2.0


@asynccontextmanager
async def serve_link(vehicle: FlyingVehicle | None) -> AsyncIterator[None]:
    """Keep the link of a vehicle and forward to ground stations while the block runs; nothing of it outlives the block.

    Raises:
        LinkError: a port that hilsim itself is to listen on cannot be had.
    """
    if vehicle is None:
        yield
        return
    async with asyncio.TaskGroup() as tasks:
        teller = tasks.create_task(guarded("session", lambda: _tell_changes(vehicle)), name="session")
        try:
            if vehicle.spec.controller.kind in ("hold", "ardupilot"):
                yield
            else:
                async with _kept_link(vehicle):
                    yield
        finally:
            teller.cancel()


@asynccontextmanager
async def _kept_link(vehicle: FlyingVehicle) -> AsyncIterator[None]:
    shared = vehicle.loop_setup.shared
    stations = [station_of(station) for station in vehicle.spec.ground_station]
    async with forward(
        stations,
        from_controller=shared.to_stations,
        to_controller=shared.to_controller,
        arrival_descriptor=int(shared.wakes[1]),
        link_descriptor=int(shared.wakes[0]),
        listener=vehicle.note_frame,
    ) as forwarder:
        vehicle.forwarder = forwarder
        keeper = _keeper(vehicle, forwarder)
        async with contextlib.AsyncExitStack() as opened, asyncio.TaskGroup() as tasks:
            opened.callback(keeper.close)
            keeping = tasks.create_task(guarded("link", keeper.keep), name="link")
            telling = tasks.create_task(guarded("truth", lambda: tell_truth(vehicle, forwarder)), name="truth")
            try:
                yield
            finally:
                keeping.cancel()
                telling.cancel()
                await asyncio.gather(keeping, telling, return_exceptions=True)
                await keeper.release()
                vehicle.forwarder = None


def station_of(spec: GroundStationSpec) -> StationSpec:
    """A port for ground stations, from what the rig says."""
    host, port = host_and_port(spec.address)
    name = f"{spec.kind} {spec.address}"
    withhold = () if spec.actuators else (HIL_ACTUATOR_CONTROLS.id,)
    if spec.kind == "udp":
        own = "127.0.0.1" if host.startswith("127.") else "0.0.0.0"  # noqa: S104 - what leaves for another host needs no fixed address
        return StationSpec(name=name, address=own, remote=(host, port), withhold=withhold, truth=spec.truth)
    protocol = Protocol.TCP if spec.kind == "tcp" else Protocol.UDP
    return StationSpec(name=name, protocol=protocol, address=host, port=port, withhold=withhold, truth=spec.truth)


def rates_of(spec: VehicleRigSpec) -> LinkRates:
    """How often each message is to be sent."""
    return LinkRates(
        sensor_hz=spec.controller.rate_hz,
        gps_hz=spec.controller.gps_hz,
        distance_hz=sum(distance.rate_hz for distance in spec.distance),
        obstacle_hz=spec.obstacle.rate_hz if spec.obstacle else 0.0,
    )


def line_kind(is_uart: bool | None, detected: LineKind) -> LineKind:  # noqa: FBT001 - three-valued
    """The kind that a rig sets for a serial port, or else the one found out from the device."""
    if is_uart is None:
        return detected
    return LineKind.UART if is_uart else LineKind.USB


async def _tell_changes(vehicle: FlyingVehicle) -> None:
    """Log each change of the session, and what becomes of the vehicle, once."""
    flight_log = FlightLog(vehicle)
    while True:
        await asyncio.sleep(_POLL_S)
        flight_log.look()


class _Keeper:
    """Opens one kind of link again and again."""

    def __init__(self, vehicle: FlyingVehicle, forwarder: Forwarder) -> None:
        self.vehicle = vehicle
        self.forwarder = forwarder

    async def keep(self) -> None:
        """For ever."""
        self.close_link()  # where it begins again after an error of this program
        while True:
            try:
                await self.open()
            except LinkError as error:
                if self.vehicle.problem != str(error):
                    self.vehicle.problem = str(error)
                    log.warning("link.not_opened", reason=str(error))
                await asyncio.sleep(_RETRY_S)
                continue
            self.vehicle.problem = ""
            log.info("link.opened", device=self.vehicle.device, sensor_rate_hz=self.vehicle.rate_hz)
            while self.vehicle.is_linked:  # noqa: ASYNC110 - a thread without the GIL cannot set an Event
                await asyncio.sleep(_POLL_S)
            self.vehicle.device = ""
            self.close_link()
            await asyncio.sleep(_POLL_S)

    async def release(self) -> None:
        """Take the link from the loop."""
        self.vehicle.release_link()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING_S):
                while self.vehicle.is_linked and self.vehicle.alive:  # noqa: ASYNC110 - as above
                    await asyncio.sleep(_POLL_S)

    async def open(self) -> None:
        """Open the link and hand it over."""
        raise NotImplementedError

    def close_link(self) -> None:
        """Close what ``open`` opened."""
        raise NotImplementedError

    def close(self) -> None:
        """Close everything."""
        self.close_link()

    async def hand_over(self, descriptor: int, device: str, line: LineKind, baud: int) -> None:
        """Give the loop a link, as its budget has it."""
        controller = self.vehicle.spec.controller
        try:
            budget = plan_link(rates_of(self.vehicle.spec), line=line, baud=baud)
        except LinkError as error:
            self.vehicle.rate_hz = 0
            raise LinkError(f"{device}: {error}") from error
        rate_hz = rate_within(budget)
        if rate_hz < controller.rate_hz:
            log.warning("link.rate_lowered", asked_hz=controller.rate_hz, sensor_rate_hz=rate_hz, baud=baud, line_bytes_per_s=budget.line_bytes_per_s)
        self.forwarder.discard()
        self.vehicle.device = device
        controller_line = paced_line(controller.kind, budget) if line is LineKind.UART else open_line(controller.kind)
        await asyncio.to_thread(self.vehicle.link, descriptor, controller_line, rate_hz)


class _SerialKeeper(_Keeper):
    _port: OpenPort | None = None
    _name: str | None = None

    async def open(self) -> None:
        controller = self.vehicle.spec.controller
        spec = SerialSpec(port=controller.port, baud=controller.baud)
        self._port = await asyncio.to_thread(open_serial, spec, name=self._name)
        self._name = self._port.name
        try:
            await self.hand_over(self._port.descriptor, self._port.device, line_kind(controller.is_uart, self._port.line), controller.baud)
        except LinkError:
            self.close_link()
            raise

    def close_link(self) -> None:
        if self._port is not None:
            self._port.close()
            self._port = None


class _TcpKeeper(_Keeper):
    def __init__(self, vehicle: FlyingVehicle, forwarder: Forwarder) -> None:
        super().__init__(vehicle, forwarder)
        self._listener = listen_tcp(*vehicle.spec.controller.endpoint)
        self._connection: socket.socket | None = None

    async def open(self) -> None:
        while (connection := accept_controller(self._listener)) is None:  # noqa: ASYNC110 - nor wait for one with the loop's own accept, which keeps none of its settings
            await asyncio.sleep(_POLL_S)
        self._connection = connection
        host, port = connection.getpeername()
        await self.hand_over(connection.fileno(), f"{host}:{port}", LineKind.NETWORK, 0)

    def close_link(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        super().close()
        self._listener.close()


class _UdpKeeper(_Keeper):
    _socket: socket.socket | None = None

    async def open(self) -> None:
        host, port = self.vehicle.spec.controller.endpoint
        self._socket = open_udp("127.0.0.1" if host.startswith("127.") else "0.0.0.0", 0)  # noqa: S104 - as above
        self._socket.connect((host, port))
        await self.hand_over(self._socket.fileno(), f"{host}:{port}", LineKind.NETWORK, 0)

    def close_link(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _keeper(vehicle: FlyingVehicle, forwarder: Forwarder) -> _Keeper:
    kinds: dict[str, type[_Keeper]] = {"serial": _SerialKeeper, "tcp": _TcpKeeper, "udp": _UdpKeeper}
    return kinds[vehicle.spec.controller.kind](vehicle, forwarder)
