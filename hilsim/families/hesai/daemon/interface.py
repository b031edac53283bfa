"""The control interface that a Hesai serves at its own address: PTC and HTTP."""

import asyncio
import importlib
from contextlib import AsyncExitStack

import structlog

from hilsim.daemon.interfaces.part import SensorInterface
from hilsim.daemon.interfaces.served import ServedSensor

log = structlog.get_logger("hilsim")


class Interface(SensorInterface):
    """Control interface of one sensor."""

    def open(self) -> None:
        """Open the ports of HTTP and of PTC.

        Raises:
            TransmitError: a port cannot be opened.
        """
        self._http = self.listen(self.web.port)
        self._ptc = self.listen(self.family.interface_port(self.web, "commands_port"), "commands_port")

    async def serve(self, stack: AsyncExitStack, sensor: ServedSensor) -> None:
        """Answer requests until the stack is closed."""
        await asyncio.to_thread(importlib.import_module, "hilsim.families.hesai.daemon.server")
        from hilsim.families.hesai.daemon.packets import RigPackets  # noqa: PLC0415 - as below
        from hilsim.families.hesai.daemon.sensor import HesaiSensor  # noqa: PLC0415
        from hilsim.families.hesai.daemon.server import serve_http, serve_ptc  # noqa: PLC0415 - slow to import: aiohttp

        packets = RigPackets(sensor)
        self.kept = unit = HesaiSensor(self.spec.name, packets.at_start(), packets, boot_s=self.web.boot_s)
        stack.push_async_callback(unit.close)
        await stack.enter_async_context(serve_http(unit, self._http))
        await stack.enter_async_context(serve_ptc(unit, self._ptc))
        address, port = self._http.getsockname()
        log.info("sensor.hesai", sensor=self.spec.name, address=f"http://{address}:{port}", commands_port=self._ptc.getsockname()[1])
