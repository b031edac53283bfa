"""The control interface that an Ouster serves at its own address: HTTP, commands in words, mDNS."""

import asyncio
import importlib
from contextlib import AsyncExitStack

import structlog

from hilsim.daemon.interfaces.part import SensorInterface
from hilsim.daemon.interfaces.served import ServedSensor
from hilsim.errors import ConfigError
from hilsim.families.ouster.daemon.discovery import announced, require_zeroconf

log = structlog.get_logger("hilsim")


class Interface(SensorInterface):
    """Control interface of one sensor."""

    def open(self) -> None:
        """Open the ports of HTTP and of commands.

        Raises:
            ConfigError: the sensor shall be announced, and zeroconf is not installed.
            TransmitError: a port cannot be opened.
        """
        if self.web.discovery:
            require_zeroconf()
        self._http = self.listen(self.web.port)
        self._lines = self.listen(self.family.interface_port(self.web, "commands_port"), "commands_port")

    async def serve(self, stack: AsyncExitStack, sensor: ServedSensor) -> None:
        """Answer requests until the stack is closed."""
        await asyncio.to_thread(importlib.import_module, "hilsim.families.ouster.daemon.server")
        from hilsim.families.ouster.daemon.lines import serve_lines  # noqa: PLC0415 - as below
        from hilsim.families.ouster.daemon.packets import RigPackets  # noqa: PLC0415
        from hilsim.families.ouster.daemon.sensor import OusterSensor  # noqa: PLC0415
        from hilsim.families.ouster.daemon.server import serve_http  # noqa: PLC0415 - slow to import: aiohttp

        packets = RigPackets(sensor)
        self.kept = unit = OusterSensor(self.spec.name, packets.at_start(), packets, boot_s=self.web.boot_s)
        packets.settle(unit.state)
        stack.push_async_callback(unit.close)
        await stack.enter_async_context(serve_http(unit, self._http))
        await stack.enter_async_context(serve_lines(unit, self._lines))
        address, port = self._http.getsockname()
        if self.web.discovery:
            try:
                await stack.enter_async_context(announced(unit.state, address, port))
            except (OSError, ConfigError) as error:
                log.warning("sensor.ouster.not_announced", sensor=self.spec.name, address=address, reason=str(error))
        log.info("sensor.ouster", sensor=self.spec.name, address=f"http://{address}:{port}", commands_port=self._lines.getsockname()[1])
