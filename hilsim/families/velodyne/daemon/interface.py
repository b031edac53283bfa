"""The web interface that a Velodyne serves at its own address."""

import asyncio
import importlib
from contextlib import AsyncExitStack

import structlog

from hilsim.daemon.interfaces.part import SensorInterface
from hilsim.daemon.interfaces.served import ServedSensor

log = structlog.get_logger("hilsim")


class Interface(SensorInterface):
    """Documents, forms and a page of one sensor."""

    def open(self) -> None:
        """Open the port of HTTP."""
        self._http = self.listen(self.web.port)

    async def serve(self, stack: AsyncExitStack, sensor: ServedSensor) -> None:
        """Answer requests until the stack is closed."""
        await asyncio.to_thread(importlib.import_module, "hilsim.families.velodyne.daemon.server")
        from hilsim.families.velodyne.daemon.sensor import WebSensor  # noqa: PLC0415 - as below
        from hilsim.families.velodyne.daemon.server import serve_sensor  # noqa: PLC0415 - slow to import: aiohttp

        self.kept = unit = WebSensor(sensor)
        await stack.enter_async_context(serve_sensor(unit, self._http))
        log.info("sensor.web", sensor=self.spec.name, address=f"http://{self.spec.network.source}:{self._http.getsockname()[1]}")
