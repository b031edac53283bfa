"""Web interfaces of the rig's Velodynes, each at its sensor's address; the server is imported only for a rig that has one."""

import asyncio
import importlib
import os
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING

import structlog

from hilsim.config.rig import Rig
from hilsim.config.sensor_table import SensorSpec
from hilsim.daemon.parts import Change, Part, RigContext
from hilsim.errors import ConfigError, TransmitError
from hilsim.families.velodyne.family import VelodyneFamily

if TYPE_CHECKING:
    from hilsim.daemon.web.sensor import WebSensor

log = structlog.get_logger("hilsim")

_BACKLOG = 16
_POLL_S = 0.05


class SensorWebs(Part):
    """Web interfaces of sensors."""

    def __init__(self, context: RigContext) -> None:
        super().__init__(context)
        self._listening: dict[str, socket.socket] = {}
        self._sensors: list[WebSensor] = []

    def open(self) -> None:
        """Open the port of each web interface.

        Raises:
            TransmitError: a port cannot be opened.
        """
        for sensor, lidar in zip(self.context.rig.spec.sensor, self.context.rig.lidars, strict=True):
            if sensor.web is not None and lidar.family.name == VelodyneFamily.name:
                self._listening[sensor.name] = listen(sensor, sensor.web.port)

    def change(self, rig: Rig) -> Change:
        """Refuse a change of web interfaces, or of the network of a sensor that has one: settings made there would be lost.

        Raises:
            ConfigError: it changes.
        """
        new, now = ({sensor.name: (sensor.web, sensor.network) for sensor in each.spec.sensor if sensor.web} for each in (rig, self.context.rig))
        if new != now:
            raise ConfigError(
                f"{rig.path}: sensor.web, and the network of a sensor with it, cannot change while it runs; restart the service for that"
            )
        return _Restored(self._sensors)

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Answer requests while packets flow."""
        if not self._listening:
            yield
            return
        await asyncio.to_thread(importlib.import_module, "hilsim.daemon.web.server")
        from hilsim.daemon.web.sensor import WebSensor  # noqa: PLC0415 - as below
        from hilsim.daemon.web.server import serve_sensor  # noqa: PLC0415 - slow to import: aiohttp

        async with AsyncExitStack() as stack:
            for number, sensor in enumerate(self.context.rig.spec.sensor):
                if sensor.name in self._listening:
                    listening = self._listening[sensor.name]
                    self._sensors.append(WebSensor(self.context, number))
                    await stack.enter_async_context(serve_sensor(self._sensors[-1], listening))
                    log.info("sensor.web", sensor=sensor.name, address=f"http://{sensor.network.source}:{listening.getsockname()[1]}")
            loading = asyncio.create_task(self._load_saved(), name="saved-settings")
            try:
                yield
            finally:
                loading.cancel()
                with suppress(asyncio.CancelledError):
                    await loading

    async def _load_saved(self) -> None:
        while self.context.make_change is None:  # noqa: ASYNC110 - it is set once, as packets begin to flow
            await asyncio.sleep(_POLL_S)
        for sensor in self._sensors:
            await sensor.load_saved()

    def stop(self) -> None:
        """Close the ports."""
        for listening in self._listening.values():
            listening.close()
        self._listening.clear()

    @property
    def summary(self) -> str:
        """Text with the number of web interfaces, empty for none."""
        return f"{len(self._listening)} sensor web page(s)" if self._listening else ""


class _Restored(Change):
    """After a reload, sensors send again, and to where the rig says."""

    def __init__(self, sensors: "list[WebSensor]") -> None:
        self._sensors = sensors

    def make(self) -> tuple[str, ...]:
        """Undo what web interfaces have set beside timed changes, which a reload forgets."""
        for sensor in self._sensors:
            sensor.restore()
        return ()


def listen(sensor: SensorSpec, port: int, key: str = "port") -> socket.socket:
    """Open a port of a sensor's own address.

    Raises:
        TransmitError: it cannot be opened.
    """
    address = sensor.network.source
    try:
        return socket.create_server((address, port), family=socket.AF_INET, backlog=_BACKLOG)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise TransmitError(f"sensor.web.{key} of {sensor.name} must be a free port of {address}, got {port}: {reason}") from error
