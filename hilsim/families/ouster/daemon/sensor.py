"""One Ouster behind its control interface: its state as it is now, and packets that follow it."""

from http import HTTPStatus
from typing import ClassVar

import structlog

from hilsim.daemon.interfaces.controlled import ControlledSensor
from hilsim.families.ouster.interface.answers import Answer, Conditions, refusal
from hilsim.families.ouster.interface.commands import command_outcome, line_of
from hilsim.families.ouster.interface.http import Request, outcome_of
from hilsim.families.ouster.interface.state import ControlState

log = structlog.get_logger("hilsim")


class OusterSensor(ControlledSensor[ControlState, Conditions]):
    """An Ouster, and its initialisations."""

    family: ClassVar[str] = "ouster"

    async def request(self, request: Request) -> Answer:
        """Answer a request of HTTP, when packets follow what it changes."""
        return await self.execute(lambda state, conditions: outcome_of(state, request, conditions), _refused)

    async def command(self, line: str, peer: str) -> str:
        """Answer a line at the TCP port; ``peer`` is the client's address."""
        return line_of(line, await self.execute(lambda state, _: command_outcome(state, line, peer), _refused))

    async def start_again(self) -> None:
        """Begin an initialisation with the saved settings; logged if packets cannot follow."""
        await self.start_with(self._state.restart())

    async def _become(self, state: ControlState) -> None:
        former = self._state
        await super()._become(state)
        if state.initialization_id != former.initialization_id:
            log.info("sensor.ouster.initialized", sensor=self.name, initialization_id=state.initialization_id, lidar_mode=state.active["lidar_mode"])
            await self._boot(ControlState.initialized)


def _refused(reason: str) -> Answer:
    return refusal(HTTPStatus.BAD_REQUEST, reason)
