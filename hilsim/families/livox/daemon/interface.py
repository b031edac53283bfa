"""The control interface that a Livox serves at its own address: discovery, commands and push messages by UDP."""

from contextlib import AsyncExitStack

import structlog

from hilsim.daemon.interfaces.part import SensorInterface
from hilsim.daemon.interfaces.served import ServedSensor
from hilsim.errors import HilsimError
from hilsim.families.livox.daemon.packets import RigPackets
from hilsim.families.livox.daemon.sensor import LivoxSensor
from hilsim.families.livox.daemon.server import Server, open_ports
from hilsim.families.livox.interface.keys import MODELS

log = structlog.get_logger("hilsim")


class Interface(SensorInterface):
    """Control interface of one sensor."""

    _sensor: LivoxSensor
    _packets: RigPackets

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
        self._packets = RigPackets(sensor)
        state = self._packets.at_start()
        server = Server(state.unit.address, state.unit.ports)
        self._sensor = LivoxSensor(self.spec.name, state, self._packets, server.push)
        await stack.enter_async_context(server.serve(self._sensor, self._udp))
        log.info("sensor.livox", sensor=self.spec.name, address=f"udp://{state.unit.address}:{state.unit.ports.command}", serial=state.unit.serial)

    async def load_saved(self) -> None:
        """Take over saved settings; those that cannot be used are logged."""
        try:
            state = self._packets.saved(self._sensor.state)
            if state is not None:
                await self._sensor.take_over(state)
                log.info("sensor.livox.saved_used", sensor=self.spec.name)
        except HilsimError as error:
            log.warning("sensor.livox.saved_not_used", sensor=self.spec.name, reason=str(error))

    async def start_again(self) -> None:
        """Start anew with the present settings, which a unit keeps."""
        self._sensor.start_again()

    def restore(self) -> None:
        """Send again, and to where the rig says."""
        self._sensor.replace(self._packets.restore())
