"""Maintain the link to the flight controller (open it, pass it to the flight loop, close it when it is lost, open it again), and serve ground stations.

Each event is logged once; a fault of the link has no effect on the rest of the daemon.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import structlog

from hilsim.config.script import ChangeSpec
from hilsim.errors import LinkError
from hilsim.parts.vehicle.autopilot.loop_setup import open_line
from hilsim.parts.vehicle.autopilot.session import SessionWord
from hilsim.parts.vehicle.flying import FlyingVehicle, paced_line, rate_within
from hilsim.parts.vehicle.ground_stations.endpoints import Protocol, StationSpec
from hilsim.parts.vehicle.ground_stations.failures import FailureInjector
from hilsim.parts.vehicle.ground_stations.forwarding import Forwarder, forward
from hilsim.parts.vehicle.log import FlightLog
from hilsim.parts.vehicle.specs import ControllerSpec, GroundStationSpec, VehicleRigSpec
from hilsim.parts.vehicle.truth_messages import tell_truth
from hilsim.protocols.mavlink.messages import HIL_ACTUATOR_CONTROLS
from hilsim.telemetry.guarded import guarded
from hilsim.transmit.links.addresses import host_and_port
from hilsim.transmit.links.broken_line import BreakableEndpoint, BrokenLine
from hilsim.transmit.links.budget import LinkRates, plan_link
from hilsim.transmit.links.endpoints import Endpoint, SerialEndpoint, TcpEndpoint, UdpEndpoint, address_towards_peer

MakeChange = Callable[[ChangeSpec], Awaitable[object]]

log = structlog.get_logger("hilsim")

_POLL_S = 0.02
_RETRY_S = 0.5
_CLOSING_S = 2.0


@asynccontextmanager
async def serve_link(vehicle: FlyingVehicle, make_change: MakeChange | None = None, ranges: Sequence[str] = ()) -> AsyncIterator[None]:
    """Maintain the link of a vehicle and forward to ground stations while the block runs; all links and ports are closed at its end.

    Args:
        vehicle: The vehicle.
        make_change: Makes a timed change, for failures that ground stations inject; None: the controller gets the commands.
        ranges: Names of the rig's range sensors, which they can break as well.

    Raises:
        LinkError: a port on which hilsim listens cannot be opened.
    """
    async with asyncio.TaskGroup() as tasks:
        teller = tasks.create_task(guarded("session", lambda: _tell_changes(vehicle)), name="session")
        try:
            if vehicle.spec.controller.kind in ("hold", "ardupilot"):
                yield
            else:
                async with _kept_link(vehicle, make_change, ranges):
                    yield
        finally:
            teller.cancel()


@asynccontextmanager
async def _kept_link(vehicle: FlyingVehicle, make_change: MakeChange | None, ranges: Sequence[str]) -> AsyncIterator[None]:
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
        injector = _injector(vehicle, forwarder, make_change, ranges) if make_change is not None else None
        endpoint = endpoint_of(vehicle.spec.controller, vehicle.line)
        keeper = _Keeper(vehicle, forwarder, endpoint)
        async with contextlib.AsyncExitStack() as opened, asyncio.TaskGroup() as tasks:
            opened.callback(endpoint.close)
            if injector is not None:
                forwarder.taker = injector.take
                opened.callback(injector.close)
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


def _injector(vehicle: FlyingVehicle, forwarder: Forwarder, make_change: MakeChange, ranges: Sequence[str]) -> FailureInjector:
    word = vehicle.loop_setup.shared.session.word
    return FailureInjector(
        controller=lambda: (int(word[SessionWord.SYSTEM]), int(word[SessionWord.COMPONENT])),
        motors=len(vehicle.profile.rotors),
        ranges=ranges,
        make_change=make_change,
        answer=forwarder.answer,
    )


def station_of(spec: GroundStationSpec) -> StationSpec:
    """Specification of a port for ground stations, from the rig's table."""
    host, port = host_and_port(spec.address)
    name = f"{spec.kind} {spec.address}"
    withhold = () if spec.actuators else (HIL_ACTUATOR_CONTROLS.id,)
    if spec.kind == "udp":
        return StationSpec(name=name, address=address_towards_peer(host), remote=(host, port), withhold=withhold, truth=spec.truth)
    protocol = Protocol.TCP if spec.kind == "tcp" else Protocol.UDP
    return StationSpec(name=name, protocol=protocol, address=host, port=port, withhold=withhold, truth=spec.truth)


def rates_of(spec: VehicleRigSpec) -> LinkRates:
    """Rate of each message."""
    return LinkRates(
        sensor_hz=spec.controller.rate_hz,
        gps_hz=spec.controller.gps_hz,
        distance_hz=sum(distance.rate_hz for distance in spec.distance),
        obstacle_hz=spec.obstacle.rate_hz if spec.obstacle else 0.0,
    )


async def _tell_changes(vehicle: FlyingVehicle) -> None:
    """Log each change of the session and of the vehicle once."""
    flight_log = FlightLog(vehicle)
    while True:
        await asyncio.sleep(_POLL_S)
        flight_log.look()


class _Keeper:
    """Opener of a link, which passes it to the flight loop and opens it again when it is lost."""

    def __init__(self, vehicle: FlyingVehicle, forwarder: Forwarder, endpoint: Endpoint) -> None:
        self.vehicle = vehicle
        self.forwarder = forwarder
        self.endpoint = endpoint

    async def keep(self) -> None:
        """Maintain the link until cancelled."""
        self.endpoint.close_link()  # when it begins again after an error of this program
        while True:
            try:
                await self._open()
            except LinkError as error:
                self.endpoint.close_link()
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
            self.endpoint.close_link()
            await asyncio.sleep(_POLL_S)

    async def release(self) -> None:
        """Take the link from the flight loop."""
        self.vehicle.release_link()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING_S):
                while self.vehicle.is_linked and self.vehicle.alive:  # noqa: ASYNC110 - a thread without the GIL cannot set an Event
                    await asyncio.sleep(_POLL_S)

    async def _open(self) -> None:
        """Open the link, and pass it to the flight loop with the rates that its budget allows."""
        controller = self.vehicle.spec.controller
        descriptor, device, line = await self.endpoint.open()
        try:
            budget = plan_link(rates_of(self.vehicle.spec), line=line)
        except LinkError as error:
            self.vehicle.rate_hz = 0
            raise LinkError(f"{device}: {error}") from error
        rate_hz = rate_within(budget)
        if rate_hz < controller.rate_hz:
            log.warning(
                "link.rate_lowered", asked_hz=controller.rate_hz, sensor_rate_hz=rate_hz, baud=line.baud, line_bytes_per_s=budget.line_bytes_per_s
            )
        self.forwarder.discard()
        self.vehicle.device = device
        controller_line = paced_line(controller.kind, budget) if line.bytes_per_s else open_line(controller.kind)
        await asyncio.to_thread(self.vehicle.link, descriptor, controller_line, rate_hz)


def endpoint_of(controller: ControllerSpec, line: BrokenLine) -> Endpoint:
    """Make the endpoint of the link to a flight controller from the rig's table; ``line`` is that of a serial port.

    Raises:
        LinkError: a port on which hilsim listens cannot be opened.
    """
    if controller.kind == "serial":
        return BreakableEndpoint(SerialEndpoint(controller, is_uart=controller.is_uart), line)
    return TcpEndpoint(*controller.endpoint) if controller.kind == "tcp" else UdpEndpoint(*controller.endpoint)
