"""One Livox behind its control interface: its state as it is now, packets that follow it, and the push messages that tell it once a second."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

import structlog

from hilsim.errors import HilsimError
from hilsim.families.livox.interface.keys import Destination, Work
from hilsim.families.livox.interface.requests import outcome_of, push_message
from hilsim.families.livox.interface.state import Conditions, LidarState
from hilsim.families.livox.protocol.commands import Command, ControlFrame, ReturnCode, encode_frame, write_answer
from hilsim.units import NS_PER_S

log = structlog.get_logger("hilsim")


class Packets(Protocol):
    """Packets of a sensor, which follow its state."""

    async def follow(self, former: LidarState, state: LidarState) -> None:
        """Make packets follow new values; returns when they do.

        Raises:
            HilsimError: they cannot; then they are as they were.
        """

    def show(self, state: LidarState, now_ns: int) -> None:
        """Send what the state sends at a rig time, and nothing else."""

    def present(self, state: LidarState) -> LidarState:
        """The state with what something else has changed meanwhile; the same object if nothing has."""

    def conditions(self) -> Conditions:
        """Rig time, and time of the sensor's clock."""

    def answers(self) -> bool:
        """Whether the sensor has power."""


class LivoxSensor:
    """A sensor and its state. Requests are executed one after the other."""

    def __init__(self, name: str, state: LidarState, packets: Packets, push: Callable[[bytes, Destination], None]) -> None:
        """Begin with a state that packets show already.

        Args:
            name: Name of the sensor in the rig.
            state: State now.
            packets: Packets that follow the state.
            push: Function that sends a push message.
        """
        self.name = name
        self._state, self._packets, self._push = state, packets, push
        self._changing = asyncio.Lock()
        self._changed = asyncio.Event()
        self._shown: Work | None = None
        self._pushed = 0

    @property
    def state(self) -> LidarState:
        """State now."""
        return self._state

    @property
    def answers(self) -> bool:
        """Whether it answers requests: no fault on command has taken its power."""
        return self._packets.answers()

    def start_again(self) -> None:
        """Start anew, as after a loss of power."""
        self.replace(self._state.restarted(self._packets.conditions().now_ns))
        self._changed.set()

    async def request(self, request: ControlFrame) -> bytes:
        """Bytes of the answer to a request, when packets follow what it changes."""
        async with self._changing:
            self._state = self._packets.present(self._state)
            outcome = outcome_of(self._state, request, self._packets.conditions())
            data = outcome.data
            try:
                await self._become(outcome.state)
            except HilsimError as error:
                log.warning("sensor.livox.refused", sensor=self.name, reason=str(error))
                data = write_answer(ReturnCode.FAILED) if request.command == Command.SET else bytes([ReturnCode.FAILED])
            return encode_frame(request.answer(data))

    async def take_over(self, state: LidarState) -> None:
        """Become another state that a request has not made, as saved settings at the start.

        Raises:
            HilsimError: packets cannot follow it.
        """
        async with self._changing:
            await self._become(state)

    def replace(self, state: LidarState) -> None:
        """Take a state whose values packets show already, after a reload."""
        self._state, self._shown = state, None
        self._show()

    async def _become(self, state: LidarState) -> None:
        if state is self._state:
            return
        if state.values != self._state.values:
            await self._packets.follow(self._state, state)
        self._state = state
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
        if host.port and self.answers:
            self._pushed += 1
            self._push(encode_frame(push_message(self._state, self._pushed, conditions)), host)
