"""Control interfaces of the rig's Ousters, each at its sensor's address; the servers are imported only for a rig that has one."""

import asyncio
import importlib
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING

import structlog

from hilsim.config.rig import Rig
from hilsim.daemon.parts import Change, Part, RigContext
from hilsim.daemon.web.part import listen
from hilsim.errors import ConfigError, HilsimError
from hilsim.families.ouster.daemon.discovery import announced, require_zeroconf
from hilsim.families.ouster.family import OusterFamily

if TYPE_CHECKING:
    from hilsim.families.ouster.daemon.packets import RigPackets
    from hilsim.families.ouster.daemon.sensor import OusterSensor

log = structlog.get_logger("hilsim")

_POLL_S = 0.05
Ports = tuple[socket.socket, socket.socket]


class OusterControls(Part):
    """Control interfaces of Ousters."""

    def __init__(self, context: RigContext) -> None:
        super().__init__(context)
        self._listening: dict[str, Ports] = {}
        self._served: list[tuple[OusterSensor, RigPackets]] = []

    def open(self) -> None:
        """Open the ports of each control interface.

        Raises:
            ConfigError: a sensor shall be announced, and zeroconf is not installed.
            TransmitError: a port cannot be opened.
        """
        for sensor, lidar in zip(self.context.rig.spec.sensor, self.context.rig.lidars, strict=True):
            if sensor.web is None or lidar.family.name != OusterFamily.name:
                continue
            if sensor.web.discovery:
                require_zeroconf()
            http = listen(sensor, sensor.web.port)
            try:
                self._listening[sensor.name] = http, listen(sensor, sensor.web.commands_port, "commands_port")
            except HilsimError:
                http.close()
                raise

    def change(self, rig: Rig) -> Change:
        """After a reload sensors are as the rig says; a change of their interfaces is refused by ``SensorWebs``."""
        del rig
        return _Restored(self._served)

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Answer requests while packets flow."""
        if not self._listening:
            yield
            return
        await asyncio.to_thread(importlib.import_module, "hilsim.families.ouster.daemon.server")
        async with AsyncExitStack() as stack:
            for number, sensor in enumerate(self.context.rig.spec.sensor):
                if sensor.name in self._listening:
                    await self._serve_one(number, self._listening[sensor.name], stack)
            loading = asyncio.create_task(self._load_saved(), name="saved-settings")
            try:
                yield
            finally:
                loading.cancel()
                with suppress(asyncio.CancelledError):
                    await loading

    async def _serve_one(self, number: int, ports: Ports, stack: AsyncExitStack) -> None:
        from hilsim.families.ouster.daemon.lines import serve_lines  # noqa: PLC0415 - as below
        from hilsim.families.ouster.daemon.packets import RigPackets  # noqa: PLC0415
        from hilsim.families.ouster.daemon.sensor import OusterSensor  # noqa: PLC0415
        from hilsim.families.ouster.daemon.server import serve_http  # noqa: PLC0415 - slow to import: aiohttp

        spec, (http, lines) = self.context.rig.spec.sensor[number], ports
        if spec.web is None:
            raise AssertionError("a sensor with a control interface")
        packets = RigPackets(self.context, number)
        sensor = OusterSensor(spec.name, packets.at_start(), packets, boot_s=spec.web.boot_s)
        packets.settle(sensor.state)
        self._served.append((sensor, packets))
        stack.push_async_callback(sensor.close)
        await stack.enter_async_context(serve_http(sensor, http))
        await stack.enter_async_context(serve_lines(sensor, lines))
        address, port = http.getsockname()
        if spec.web.discovery:
            await self._announce(sensor, address, port, stack)
        log.info("sensor.ouster", sensor=spec.name, address=f"http://{address}:{port}", commands_port=lines.getsockname()[1])

    async def _announce(self, sensor: "OusterSensor", address: str, port: int, stack: AsyncExitStack) -> None:
        try:
            await stack.enter_async_context(announced(sensor.state, address, port))
        except (OSError, ConfigError) as error:
            log.warning("sensor.ouster.not_announced", sensor=sensor.name, address=address, reason=str(error))

    async def _load_saved(self) -> None:
        while self.context.make_change is None or not self.context.has_begun:  # noqa: ASYNC110 - set once, as packets begin to flow
            await asyncio.sleep(_POLL_S)
        for sensor, packets in self._served:
            try:
                state = await packets.saved(sensor.state)
                if state is not None:
                    await sensor.take_over(state)
                    log.info("sensor.ouster.saved_used", sensor=sensor.name)
            except HilsimError as error:
                log.warning("sensor.ouster.saved_not_used", sensor=sensor.name, reason=str(error))

    def stop(self) -> None:
        """Close the ports."""
        for ports in self._listening.values():
            for port in ports:
                port.close()
        self._listening.clear()

    @property
    def summary(self) -> str:
        """Text with the number of control interfaces, empty for none."""
        return f"{len(self._listening)} sensor control interface(s)" if self._listening else ""


class _Restored(Change):
    """After a reload, sensors send again, and to where the rig says."""

    def __init__(self, served: "list[tuple[OusterSensor, RigPackets]]") -> None:
        self._served = served

    def make(self) -> tuple[str, ...]:
        """Undo what control interfaces have set."""
        for sensor, packets in self._served:
            sensor.replace(packets.restore())
        return ()
