"""One Hesai behind its control interface: its state as it is now, and packets that follow it."""

from collections.abc import Mapping
from typing import Any, ClassVar

import structlog

from hilsim.daemon.interfaces.controlled import ControlledSensor
from hilsim.families.hesai.interface.cgi import document_of, page_outcome
from hilsim.families.hesai.interface.requests import Conditions, outcome_of
from hilsim.families.hesai.interface.state import HesaiState
from hilsim.families.hesai.protocol.ptc import Answer, Request, ReturnCode, encode_frame

log = structlog.get_logger("hilsim")


class HesaiSensor(ControlledSensor[HesaiState, Conditions]):
    """A Hesai, and its starts."""

    family: ClassVar[str] = "hesai"

    def answers(self) -> bool:
        """Whether it answers requests: it has power and does not start."""
        return super().answers() and not self._state.is_starting

    async def request(self, request: Request, _peer: str = "") -> bytes:
        """Bytes of the answer to a request by PTC, when packets follow what it changes."""
        answer = await self.execute(lambda state, conditions: outcome_of(state, request, conditions), lambda _reason: Answer(ReturnCode.OTHER))
        return encode_frame(request.command, answer.payload, answer.code)

    async def page(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Document that answers a request by HTTP, when packets follow what it changes."""
        return await self.execute(lambda state, _: page_outcome(state, query), lambda reason: document_of(ReturnCode.OTHER, reason))

    async def start_again(self) -> None:
        """Start anew with the present settings, which a unit keeps."""
        await self.start_with(self._state.rebooted(self._packets.conditions().now_ns).started())

    async def _become(self, state: HesaiState) -> None:
        is_starting = self._state.is_starting
        await super()._become(state)
        if state.is_starting and not is_starting:
            log.info("sensor.hesai.rebooted", sensor=self.name, starts=state.starts)
            await self._boot(HesaiState.started)
