"""One Livox behind its control interface: its state as it is now, packets that follow it, and the push messages that tell it once a second."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar

import structlog

from hilsim.daemon.interfaces.controlled import ControlledSensor
from hilsim.families.livox.daemon.packets import RigPackets
from hilsim.families.livox.interface.keys import Destination, Work
from hilsim.families.livox.interface.requests import outcome_of, push_message
from hilsim.families.livox.interface.state import Conditions, LidarState
from hilsim.families.livox.protocol.commands import Command, ControlFrame, ReturnCode, encode_frame, write_answer
from hilsim.units import NS_PER_S

log = structlog.get_logger("hilsim")


class LivoxSensor(ControlledSensor[LidarState, Conditions]):
    """A Livox, and its work state."""

    family: ClassVar[str] = "livox"
    _packets: RigPackets

    def __init__(self, name: str, state: LidarState, packets: RigPackets, push: Callable[[bytes, Destination], None]) -> None:
        """Begin with a state that packets show already; ``push`` sends a push message."""
        super().__init__(name, state, packets)
        self._push = push
        self._changed = asyncio.Event()
        self._shown: Work | None = None
        self._pushed = 0

    async def start_again(self) -> None:
        """Start anew with the present settings, which a unit keeps."""
        self.replace(self._state.restarted(self._packets.conditions().now_ns))
        self._changed.set()

    async def request(self, request: ControlFrame) -> bytes:
        """Bytes of the answer to a request, when packets follow what it changes."""

        def refused(_reason: str) -> bytes:
            return write_answer(ReturnCode.FAILED) if request.command == Command.SET else bytes([ReturnCode.FAILED])

        return encode_frame(request.answer(await self.execute(lambda state, conditions: outcome_of(state, request, conditions), refused)))

    def replace(self, state: LidarState) -> None:
        """Take a state whose values packets show already."""
        super().replace(state)
        self._shown = None
        self._show()

    async def _become(self, state: LidarState) -> None:
        await super()._become(state)
        self._show()
        self._changed.set()

    def _show(self) -> None:
        now_ns = self._packets.conditions().now_ns
        self._packets.show(self._state, now_ns)
        work = self._state.work(now_ns)
        if work is not self._shown:
            log.info("sensor.livox.work_state", sensor=self.name, state=work.name)
        self._shown = work

    async def run(self) -> None:
        """Follow the work state through its times, and push the state once a second, until cancelled."""
        push_ns = 0
        while True:
            conditions = self._packets.conditions()
            now_ns = conditions.now_ns
            if self._state.work(now_ns) is not self._shown:
                self._show()
            if now_ns >= push_ns:
                push_ns = (now_ns // NS_PER_S + 1) * NS_PER_S
                self._send_push(conditions)
            step_ns = self._state.next_step_ns(now_ns)
            wake_ns = push_ns if step_ns is None else min(push_ns, step_ns)
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout((wake_ns - now_ns) / NS_PER_S):
                    await self._changed.wait()

    def _send_push(self, conditions: Conditions) -> None:
        host = self._state.state_host
        if host.port and self.answers():
            self._pushed += 1
            self._push(encode_frame(push_message(self._state, self._pushed, conditions)), host)
