"""Interfaces that sensors serve at their own addresses, as their families make them; a family's is imported only for a rig that has one."""

import asyncio
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from hilsim.config.rig import Rig
from hilsim.config.tables.sensor import SensorSpec, SensorWebSpec
from hilsim.daemon.parts import Change, Part, RigContext
from hilsim.errors import ConfigError, TransmitError
from hilsim.registry import family_part

_BACKLOG = 16
_POLL_S = 0.05


class SensorInterface(ABC):
    """What one sensor serves: ``daemon.interface`` of a family's folder has a class ``Interface`` of it.

    Attributes:
        context: The running rig.
        number: The sensor's place in the rig.
        spec: Its table in the rig.
        web: Its table ``[sensor.web]``.
    """

    def __init__(self, context: RigContext, number: int, web: SensorWebSpec) -> None:
        """An interface that serves nothing yet."""
        self.context, self.number, self.web = context, number, web
        self.spec: SensorSpec = context.rig.spec.sensor[number]
        self._ports: list[socket.socket] = []

    @abstractmethod
    def open(self) -> None:
        """Open its ports, by ``listen``.

        Raises:
            ConfigError: something that it needs is not installed.
            TransmitError: a port cannot be opened.
        """

    @abstractmethod
    async def serve(self, stack: AsyncExitStack) -> None:
        """Answer requests until the stack is closed; packets flow soon."""

    @abstractmethod
    async def load_saved(self) -> None:
        """Take over saved settings; packets flow."""

    @abstractmethod
    def restore(self) -> None:
        """After a reload: send again, and to where the rig says, whatever clients have set."""

    def listen(self, port: int, key: str = "port") -> socket.socket:
        """Open a port of the sensor's own address; ``key`` of ``[sensor.web]`` gives it.

        Raises:
            TransmitError: it cannot be opened.
        """
        address = self.spec.network.source
        try:
            self._ports.append(socket.create_server((address, port), family=socket.AF_INET, backlog=_BACKLOG))
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise TransmitError(f"sensor.web.{key} of {self.spec.name} must be a free port of {address}, got {port}: {reason}") from error
        return self._ports[-1]

    def close(self) -> None:
        """Close its ports."""
        for port in self._ports:
            port.close()
        self._ports.clear()


class SensorInterfaces(Part):
    """Interfaces of all sensors that have one."""

    def __init__(self, context: RigContext) -> None:
        super().__init__(context)
        self._interfaces: list[SensorInterface] = []

    def open(self) -> None:
        """Open the ports of each interface.

        Raises:
            ConfigError: something that one needs is not installed.
            TransmitError: a port cannot be opened.
        """
        for number, (sensor, lidar) in enumerate(zip(self.context.rig.spec.sensor, self.context.rig.lidars, strict=True)):
            module = family_part(lidar.family.name, "daemon.interface") if sensor.web is not None else None
            if module is not None and sensor.web is not None:
                self._interfaces.append(module.Interface(self.context, number, sensor.web))
                self._interfaces[-1].open()

    def change(self, rig: Rig) -> Change:
        """Refuse a change of interfaces, or of the network of a sensor that has one: settings made there would be lost.

        Raises:
            ConfigError: it changes.
        """
        new, now = ({sensor.name: (sensor.web, sensor.network) for sensor in each.spec.sensor if sensor.web} for each in (rig, self.context.rig))
        if new != now:
            raise ConfigError(
                f"{rig.path}: sensor.web, and the network of a sensor with it, cannot change while it runs; restart the service for that"
            )
        return _Restored(self._interfaces)

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Answer requests while packets flow."""
        async with AsyncExitStack() as stack:
            for interface in self._interfaces:
                await interface.serve(stack)
            loading = asyncio.create_task(self._load_saved(), name="saved-settings")
            try:
                yield
            finally:
                loading.cancel()
                with suppress(asyncio.CancelledError):
                    await loading

    async def _load_saved(self) -> None:
        while self._interfaces and (self.context.make_change is None or not self.context.has_begun):  # noqa: ASYNC110 - set once, as packets begin to flow
            await asyncio.sleep(_POLL_S)
        for interface in self._interfaces:
            await interface.load_saved()

    def stop(self) -> None:
        """Close the ports."""
        for interface in self._interfaces:
            interface.close()

    @property
    def summary(self) -> str:
        """Text with the number of interfaces, empty for none."""
        return f"{len(self._interfaces)} sensor interface(s)" if self._interfaces else ""


class _Restored(Change):
    """After a reload, sensors are as the rig says."""

    def __init__(self, interfaces: list[SensorInterface]) -> None:
        self._interfaces = interfaces

    def make(self) -> tuple[str, ...]:
        """Undo what clients have set beside timed changes, which a reload forgets."""
        for interface in self._interfaces:
            interface.restore()
        return ()
