"""The web interface that a Velodyne serves at its own address."""

import asyncio
import importlib
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import structlog

from hilsim.daemon.interfaces.part import SensorInterface
from hilsim.daemon.interfaces.served import ServedSensor

if TYPE_CHECKING:
    from hilsim.families.velodyne.daemon.sensor import WebSensor

log = structlog.get_logger("hilsim")


class Interface(SensorInterface):
    """Documents, forms and a page of one sensor."""

    _sensor: "WebSensor"

    def open(self) -> None:
        """Open the port of HTTP."""
        self._http = self.listen(self.web.port)

    async def serve(self, stack: AsyncExitStack, sensor: ServedSensor) -> None:
        """Answer requests until the stack is closed."""
        await asyncio.to_thread(importlib.import_module, "hilsim.families.velodyne.daemon.server")
        from hilsim.families.velodyne.daemon.sensor import WebSensor  # noqa: PLC0415 - as below
        from hilsim.families.velodyne.daemon.server import serve_sensor  # noqa: PLC0415 - slow to import: aiohttp

        self._sensor = WebSensor(sensor)
        await stack.enter_async_context(serve_sensor(self._sensor, self._http))
        log.info("sensor.web", sensor=self.spec.name, address=f"http://{self.spec.network.source}:{self._http.getsockname()[1]}")

    async def load_saved(self) -> None:
        """Take over saved settings."""
        await self._sensor.load_saved()

    async def start_again(self) -> None:
        """Take over saved settings, as after a reset."""
        await self._sensor.start_again()

    def restore(self) -> None:
        """Send again, and to where the rig says."""
        self._sensor.restore()
