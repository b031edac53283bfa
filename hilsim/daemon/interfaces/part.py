"""Interfaces that sensors serve at their own addresses, as their families make them; a family's is imported only for a rig that has one."""

import asyncio
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

from hilsim.config.rig import Rig
from hilsim.config.tables.sensor import SensorSpec, SensorWebSpec
from hilsim.daemon.flows import Flows
from hilsim.daemon.interfaces.served import ServedSensor
from hilsim.daemon.parts import Change, Changes, Part, RigClock, RigContext
from hilsim.emulator.families.base import LidarFamily
from hilsim.errors import ConfigError, TransmitError
from hilsim.registry import family_part
from hilsim.sensor.time_input import TimeInput

_BACKLOG = 16
_LOOK_S = 0.1
"""Period in which it is looked for power that is back."""


class KeptSettings:
    """What clients have set, beside timed changes. Here they can set nothing."""

    async def load_saved(self) -> None:
        """Take over saved settings; packets flow."""

    async def start_again(self) -> None:
        """After a loss of power: as at the start. Packets are what the fault makes of them."""
        await self.load_saved()

    def restore(self) -> None:
        """After a reload: send again, and to where the rig says, whatever clients have set."""


class SensorInterface(ABC):
    """What one sensor serves: ``daemon.interface`` of a family's folder has a class ``Interface`` of it.

    Attributes:
        number: The sensor's place in the rig.
        spec: Its table in the rig.
        web: Its table ``[sensor.web]``.
        family: The sensor, as one of its family.
        kept: What its clients have set; ``serve`` replaces it where they can.
    """

    def __init__(self, number: int, spec: SensorSpec, web: SensorWebSpec, family: LidarFamily[Any]) -> None:
        """An interface that serves nothing yet."""
        self.number, self.spec, self.web, self.family = number, spec, web, family
        self._ports: list[socket.socket] = []
        self.kept = KeptSettings()

    @abstractmethod
    def open(self) -> None:
        """Open its ports, by ``listen``.

        Raises:
            ConfigError: something that it needs is not installed.
            TransmitError: a port cannot be opened.
        """

    @abstractmethod
    async def serve(self, stack: AsyncExitStack, sensor: ServedSensor) -> None:
        """Answer requests until the stack is closed; packets flow soon."""

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

    _flows: Flows

    def __init__(self, context: RigContext, heard: Callable[[str], TimeInput | None]) -> None:
        """Serve nothing yet; ``heard`` gives the GPS input of a sensor (``TimeInputs.heard``)."""
        super().__init__(context)
        self._heard = heard
        self._interfaces: list[SensorInterface] = []

    def open(self, flows: Flows) -> None:
        """Open the ports of each interface.

        Raises:
            ConfigError: something that one needs is not installed.
            TransmitError: a port cannot be opened.
        """
        self._flows = flows
        for number, (sensor, lidar) in enumerate(zip(self.context.rig.spec.sensor, self.context.rig.lidars, strict=True)):
            module = family_part(lidar.family.name, "daemon.interface") if sensor.web is not None else None
            if module is not None and sensor.web is not None:
                self._interfaces.append(module.Interface(number, sensor, sensor.web, lidar.family))
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
        return Change(self._restore)

    def _restore(self, clock: RigClock) -> None:
        """Undo what clients have set beside timed changes, which a reload forgets."""
        del clock
        for interface in self._interfaces:
            interface.kept.restore()

    @asynccontextmanager
    async def serve(self, changes: Changes) -> AsyncIterator[None]:
        """Answer requests; saved settings are taken over when packets flow."""
        async with AsyncExitStack() as stack:
            served = []
            for interface in self._interfaces:
                served.append(ServedSensor(self.context, interface.number, interface.web, self._flows, changes, self._heard))
                await interface.serve(stack, served[-1])
            following = asyncio.create_task(self._follow(changes, served), name="saved-settings")
            try:
                yield
            finally:
                following.cancel()
                with suppress(asyncio.CancelledError):
                    await following

    async def _follow(self, changes: Changes, served: Sequence[ServedSensor]) -> None:
        """Take over saved settings at the start, and whenever power is back."""
        await changes.begun()
        for interface in self._interfaces:
            await interface.kept.load_saved()
        while served:
            await asyncio.sleep(_LOOK_S)
            for interface, sensor in zip(self._interfaces, served, strict=True):
                if not sensor.has_power:
                    sensor.is_up = False
                elif not sensor.is_up:
                    await interface.kept.start_again()
                    sensor.is_up = True

    def stop(self) -> None:
        """Close the ports."""
        for interface in self._interfaces:
            interface.close()

    @property
    def summary(self) -> str:
        """Text with the number of interfaces, empty for none."""
        return f"{len(self._interfaces)} sensor interface(s)" if self._interfaces else ""
