"""The control interface that an Ouster serves at its own address: HTTP, commands in words, mDNS."""

import asyncio
import importlib
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import structlog

from hilsim.daemon.interfaces.part import SensorInterface
from hilsim.daemon.interfaces.served import ServedSensor
from hilsim.errors import ConfigError, HilsimError
from hilsim.families.ouster.daemon.discovery import announced, require_zeroconf

if TYPE_CHECKING:
    from hilsim.families.ouster.daemon.packets import RigPackets
    from hilsim.families.ouster.daemon.sensor import OusterSensor

log = structlog.get_logger("hilsim")


class Interface(SensorInterface):
    """Control interface of one sensor."""

    _sensor: "OusterSensor"
    _packets: "RigPackets"

    def open(self) -> None:
        """Open the ports of HTTP and of commands.

        Raises:
            ConfigError: the sensor shall be announced, and zeroconf is not installed.
            TransmitError: a port cannot be opened.
        """
        if self.web.discovery:
            require_zeroconf()
        self._http = self.listen(self.web.port)
        self._lines = self.listen(self.web.commands_port, "commands_port")

    async def serve(self, stack: AsyncExitStack, sensor: ServedSensor) -> None:
        """Answer requests until the stack is closed."""
        await asyncio.to_thread(importlib.import_module, "hilsim.families.ouster.daemon.server")
        from hilsim.families.ouster.daemon.lines import serve_lines  # noqa: PLC0415 - as below
        from hilsim.families.ouster.daemon.packets import RigPackets  # noqa: PLC0415
        from hilsim.families.ouster.daemon.sensor import OusterSensor  # noqa: PLC0415
        from hilsim.families.ouster.daemon.server import serve_http  # noqa: PLC0415 - slow to import: aiohttp

        self._packets = RigPackets(sensor)
        self._sensor = OusterSensor(self.spec.name, self._packets.at_start(), self._packets, boot_s=self.web.boot_s)
        self._packets.settle(self._sensor.state)
        stack.push_async_callback(self._sensor.close)
        await stack.enter_async_context(serve_http(self._sensor, self._http))
        await stack.enter_async_context(serve_lines(self._sensor, self._lines))
        address, port = self._http.getsockname()
        if self.web.discovery:
            try:
                await stack.enter_async_context(announced(self._sensor.state, address, port))
            except (OSError, ConfigError) as error:
                log.warning("sensor.ouster.not_announced", sensor=self.spec.name, address=address, reason=str(error))
        log.info("sensor.ouster", sensor=self.spec.name, address=f"http://{address}:{port}", commands_port=self._lines.getsockname()[1])

    async def load_saved(self) -> None:
        """Take over saved settings; those that cannot be used are logged."""
        try:
            state = await self._packets.saved(self._sensor.state)
            if state is not None:
                await self._sensor.take_over(state)
                log.info("sensor.ouster.saved_used", sensor=self.spec.name)
        except HilsimError as error:
            log.warning("sensor.ouster.saved_not_used", sensor=self.spec.name, reason=str(error))

    async def start_again(self) -> None:
        """Begin an initialisation with the saved settings."""
        await self._sensor.start_again()

    def restore(self) -> None:
        """Send again, and to where the rig says."""
        self._sensor.replace(self._packets.restore())
