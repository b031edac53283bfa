"""A sensor that clients control: one state, which its packets follow, whatever its family's requests and answers are."""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import structlog

from hilsim.config.script import SensorChange
from hilsim.daemon.interfaces.part import KeptSettings
from hilsim.daemon.interfaces.served import ServedSensor
from hilsim.errors import ConfigError, HilsimError
from hilsim.read.background.files.whole_file import replace_file
from hilsim.units import NS_PER_S

log = structlog.get_logger("hilsim")

_PASSED_NS = 1_000_000
"""Time from the begin of a change to the departure of the last packet from before it."""


class State(Protocol):
    """State of a sensor, which never changes: a request gives another one. ``shown`` is what packets show of it, and ``kept`` what is saved, as JSON."""

    @property
    def shown(self) -> object: ...  # noqa: D102 - above
    @property
    def kept(self) -> object: ...  # noqa: D102


StateT = TypeVar("StateT", bound=State)
ConditionsT = TypeVar("ConditionsT")
AnswerT = TypeVar("AnswerT")


class ControlledPackets(ABC, Generic[StateT, ConditionsT]):
    """Packets of a sensor of a running rig, which follow its state."""

    def __init__(self, sensor: ServedSensor) -> None:
        """Take a sensor of the rig."""
        self._sensor = sensor

    @abstractmethod
    async def follow(self, former: StateT, state: StateT) -> None:
        """Make packets follow a new state; returns when they do.

        Raises:
            HilsimError: they cannot; then they are as they were.
        """

    @abstractmethod
    def present(self, state: StateT) -> StateT:
        """The state with what a script, the daemon's own control interface or a reload has changed meanwhile; the same object if nothing has."""

    @abstractmethod
    def conditions(self) -> ConditionsT:
        """What the sensor reports beside its settings, now."""

    @abstractmethod
    def restore(self) -> StateT:
        """Send again, and to where the rig says, after a reload; returns the state then."""

    @abstractmethod
    def restarted(self, state: StateT, document: Any) -> StateT:
        """The state that a restart with a saved document gives.

        Raises:
            ValueError, KeyError, TypeError or AttributeError: it is none.
        """

    async def change(self, change: SensorChange) -> None:
        """Make a timed change of the sensor; returns when packets of before it have left: clients read the next ones by what they have set.

        Raises:
            HilsimError: it cannot be made.
        """
        changes = self._sensor.changes
        made = await changes.make(change)
        await asyncio.sleep(max(made.begun_ns.get(change.sensor, made.at_ns) + _PASSED_NS - changes.clock.now_ns(), 0) / NS_PER_S)

    def answers(self) -> bool:
        """Whether it answers requests: no fault on command has taken its power."""
        return self._sensor.answers

    async def save(self, state: StateT) -> None:
        """Keep what a restart of the daemon takes over in the rig's file for it, if it names one.

        Raises:
            AssetError: the file cannot be written.
        """
        if self._sensor.saved_file is not None:
            await asyncio.to_thread(replace_file, self._sensor.saved_file, (json.dumps(state.kept, indent=2) + "\n").encode())

    async def saved(self, state: StateT) -> StateT | None:
        """The state that a restart with the file of saved settings gives; None without a file.

        Raises:
            ConfigError: the file cannot be used.
        """
        file = self._sensor.saved_file
        if file is None or not file.exists():
            return None
        try:
            return self.restarted(state, json.loads(await asyncio.to_thread(file.read_text, encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"{file}: must be settings that this sensor has saved, got {error}") from error


class ControlledSensor(KeptSettings, Generic[StateT, ConditionsT]):
    """A sensor and its state. Requests that change something are executed one after the other."""

    family: ClassVar[str]
    """Name of its family, for events."""

    def __init__(self, name: str, state: StateT, packets: ControlledPackets[StateT, ConditionsT], *, boot_s: float = 0.0) -> None:
        """Begin with a state that packets show already; a start lasts ``boot_s``."""
        self.name = name
        self._state, self._packets, self._boot_s = state, packets, boot_s
        self._changing = asyncio.Lock()
        self._booting: asyncio.Task[None] | None = None

    @property
    def state(self) -> StateT:
        """State now."""
        return self._state

    def answers(self) -> bool:
        """Whether it answers requests."""
        return self._packets.answers()

    async def execute(self, outcome: Callable[[StateT, ConditionsT], tuple[StateT, AnswerT]], refused: Callable[[str], AnswerT]) -> AnswerT:
        """Answer a request, when packets follow what it changes.

        Args:
            outcome: Function that gives the state after the request, the same object if it changes nothing, and the answer.
            refused: Function that gives the answer where packets cannot follow, of the reason.
        """
        if not self._changing.locked():
            self._state = self._packets.present(self._state)
        seen = self._state
        then, answer = outcome(seen, self._packets.conditions())
        if then is seen:
            return answer
        async with self._changing:
            # What another request has changed meanwhile is the state that this one acts on.
            then, answer = outcome(self._state, self._packets.conditions())
            try:
                await self._become(then)
            except HilsimError as error:
                self._warn("refused", error)
                return refused(str(error))
            return answer

    async def take_over(self, state: StateT) -> None:
        """Become another state that a request has not made.

        Raises:
            HilsimError: packets cannot follow it.
        """
        async with self._changing:
            await self._become(state)

    async def start_with(self, state: StateT) -> None:
        """Become the state that a start gives; logged if packets cannot follow it."""
        try:
            await self.take_over(state)
        except HilsimError as error:
            self._warn("saved_not_used", error)

    async def load_saved(self) -> None:
        """Take over saved settings; those that cannot be used are logged."""
        try:
            state = await self._packets.saved(self._state)
            if state is not None:
                await self.take_over(state)
                log.info(self._event("saved_used"), sensor=self.name)
        except HilsimError as error:
            self._warn("saved_not_used", error)

    def _event(self, word: str) -> str:
        return f"sensor.{self.family}.{word}"

    def _warn(self, word: str, error: HilsimError) -> None:
        log.warning(self._event(word), sensor=self.name, reason=str(error))

    def restore(self) -> None:
        """Send again, and to where the rig says, after a reload."""
        self.replace(self._packets.restore())

    def replace(self, state: StateT) -> None:
        """Take a state that packets show already; a start that was under way is over."""
        booting, self._booting = self._booting, None
        if booting is not None:
            booting.get_loop().call_soon_threadsafe(booting.cancel)
        self._state = state

    async def _become(self, state: StateT) -> None:
        former = self._state
        is_kept = state.kept == former.kept
        if not is_kept:
            await self._packets.save(state)
        try:
            if state.shown != former.shown:
                await self._packets.follow(former, state)
        except HilsimError:
            if not is_kept:
                await self._packets.save(former)
            raise
        self._state = state

    async def _boot(self, ready: Callable[[StateT], StateT]) -> None:
        """Begin a start, which ends with the state that ``ready`` makes of the one of then; one that is under way ends."""
        await self.close()
        self._booting = asyncio.create_task(self._end_boot(ready), name=f"boot-{self.name}")

    async def _end_boot(self, ready: Callable[[StateT], StateT]) -> None:
        await asyncio.sleep(self._boot_s)
        async with self._changing:
            then = ready(self._state)
            with suppress(HilsimError):  # the rig ends meanwhile
                await self._packets.follow(self._state, then)
            self._state = then

    async def close(self) -> None:
        """End a start that is under way."""
        booting, self._booting = self._booting, None
        if booting is not None:
            booting.cancel()
            with suppress(asyncio.CancelledError):
                await booting
