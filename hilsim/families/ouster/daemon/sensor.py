"""One Ouster behind its control interface: its state as it is now, and packets that follow it."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Protocol

import structlog

from hilsim.errors import HilsimError
from hilsim.families.ouster.interface.answers import Answer, Conditions, Outcome, refusal
from hilsim.families.ouster.interface.commands import command_outcome, line_of
from hilsim.families.ouster.interface.http import Request, outcome_of
from hilsim.families.ouster.interface.state import INITIALIZING, ControlState

log = structlog.get_logger("hilsim")


class Packets(Protocol):
    """Packets of a sensor, which follow its state."""

    async def follow(self, former: ControlState, state: ControlState) -> None:
        """Make packets follow a new state; returns when they do.

        Raises:
            HilsimError: they cannot; then they are as they were.
        """

    def present(self, state: ControlState) -> ControlState:
        """The state with what something else has changed meanwhile; the same object if nothing has."""

    async def save(self, state: ControlState) -> None:
        """Keep what a restart of the daemon takes over.

        Raises:
            HilsimError: it cannot be kept.
        """

    def conditions(self) -> Conditions:
        """Address, times and clock of the sensor now."""

    def answers(self) -> bool:
        """Whether it answers requests: no fault on command has taken its power."""


class OusterSensor:
    """A sensor and its state. Requests that change something are executed one after the other."""

    def __init__(self, name: str, state: ControlState, packets: Packets, *, boot_s: float) -> None:
        """Begin with a state that packets show already.

        Args:
            name: Name of the sensor in the rig.
            state: State now.
            packets: Packets that follow the state.
            boot_s: Time for which an initialisation lasts.
        """
        self.name = name
        self._state, self._packets, self._boot_s = state, packets, boot_s
        self._changing = asyncio.Lock()
        self._booting: asyncio.Task[None] | None = None

    @property
    def state(self) -> ControlState:
        """State now."""
        return self._state

    async def request(self, request: Request) -> Answer:
        """Answer a request of HTTP, when packets follow what it changes."""
        return await self._execute(lambda state: outcome_of(state, request, self._packets.conditions()))

    async def command(self, line: str, peer: str) -> str:
        """Answer a line at the TCP port; ``peer`` is the client's address."""
        return line_of(line, await self._execute(lambda state: command_outcome(state, line, peer)))

    def answers(self) -> bool:
        """Whether it answers requests: no fault on command has taken its power."""
        return self._packets.answers()

    async def start_again(self) -> None:
        """Begin an initialisation with the saved settings; logged if packets cannot follow."""
        try:
            await self.take_over(self._state.restart())
        except HilsimError as error:
            log.warning("sensor.ouster.saved_not_used", sensor=self.name, reason=str(error))

    async def take_over(self, state: ControlState) -> None:
        """Become another state that a request has not made, as saved settings at the start.

        Raises:
            HilsimError: packets cannot follow it.
        """
        async with self._changing:
            await self._become(state)

    def replace(self, state: ControlState) -> None:
        """Take a state that packets show already, after a reload; an initialisation that was under way is over."""
        booting, self._booting = self._booting, None
        if booting is not None:
            booting.get_loop().call_soon_threadsafe(booting.cancel)
        self._state = state

    async def _execute(self, outcome: Callable[[ControlState], Outcome]) -> Answer:
        if not self._changing.locked():
            self._state = self._packets.present(self._state)
        seen = self._state
        found = outcome(seen)
        if found.state is seen:
            return found.answer
        async with self._changing:
            # What another request has changed meanwhile is the state that this one acts on.
            found = outcome(self._state)
            try:
                await self._become(found.state)
            except HilsimError as error:
                return refusal(HTTPStatus.BAD_REQUEST, str(error))
            return found.answer

    async def _become(self, state: ControlState) -> None:
        former = self._state
        if state.saved != former.saved or _kept(state) != _kept(former):
            await self._packets.save(state)
        if _shown(state) != _shown(former):
            await self._packets.follow(former, state)
        self._state = state
        if state.initialization_id != former.initialization_id:
            await self._end_booting()
            log.info("sensor.ouster.initialized", sensor=self.name, initialization_id=state.initialization_id, lidar_mode=state.active["lidar_mode"])
            self._booting = asyncio.create_task(self._boot(), name=f"boot-{self.name}")

    async def _boot(self) -> None:
        await asyncio.sleep(self._boot_s)
        async with self._changing:
            if self._state.status == INITIALIZING:
                with suppress(HilsimError):  # the rig ends meanwhile
                    await self._packets.follow(self._state, self._state.initialized())
                self._state = self._state.initialized()

    async def _end_booting(self) -> None:
        booting, self._booting = self._booting, None
        if booting is not None:
            booting.cancel()
            with suppress(asyncio.CancelledError):
                await booting

    async def close(self) -> None:
        """End an initialisation that is under way."""
        await self._end_booting()


def _shown(state: ControlState) -> tuple[object, ...]:
    """Parts of a state that packets show."""
    return state.active, state.initialization_id, state.status


def _kept(state: ControlState) -> tuple[object, ...]:
    """Parts of a state that are saved beside settings."""
    return state.user_data, state.keeps_user_data, state.static_address, state.ptp_profile
