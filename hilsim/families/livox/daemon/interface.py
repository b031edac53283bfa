"""The control interface that a Livox serves at its own address: discovery, commands and push messages by UDP."""

from contextlib import AsyncExitStack

import structlog

from hilsim.daemon.interfaces.part import SensorInterface
from hilsim.daemon.interfaces.served import ServedSensor
from hilsim.families.livox.daemon.packets import RigPackets
from hilsim.families.livox.daemon.sensor import LivoxSensor
from hilsim.families.livox.daemon.server import Server, open_ports
from hilsim.families.livox.interface.keys import MODELS

log = structlog.get_logger("hilsim")


class Interface(SensorInterface):
    """Control interface of one sensor."""

    def open(self) -> None:
        """Open its UDP ports.

        Raises:
            TransmitError: a port cannot be opened.
        """
        _, ports = MODELS[self.family.spec.dev_type]
        self._udp = open_ports(self.spec.name, self.spec.network.source, ports)
        self._ports.extend(self._udp.values())

    async def serve(self, stack: AsyncExitStack, sensor: ServedSensor) -> None:
        """Answer requests until the stack is closed."""
        packets = RigPackets(sensor)
        state = packets.at_start()
        server = Server(state.unit.address, state.unit.ports)
        self.kept = unit = LivoxSensor(self.spec.name, state, packets, server.push)
        await stack.enter_async_context(server.serve(unit, self._udp))
        log.info("sensor.livox", sensor=self.spec.name, address=f"udp://{state.unit.address}:{state.unit.ports.command}", serial=state.unit.serial)
