"""The GPS inputs of a rig's sensors: what comes from outside, and the timed changes that follow from it."""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import structlog

from hilsim.compilation.atomics import publish
from hilsim.config.rig import Rig
from hilsim.config.script import ClockChange
from hilsim.config.tables.sensor import SensorSpec, TimeInputSpec
from hilsim.daemon.parts import Change, Changes, Part, RigClock, RigContext
from hilsim.daemon.time_inputs.receiver import receive_lines
from hilsim.emulator.lidar import LidarEmulator
from hilsim.errors import ConfigError, HilsimError
from hilsim.protocols.nmea import SENTENCE_CAPACITY
from hilsim.protocols.nmea_reading import read_sentence
from hilsim.sensor.clock import device_from_rig, shown_utc_ns
from hilsim.sensor.specs import PulseState
from hilsim.sensor.time_input import TimeInput
from hilsim.telemetry.rarely import Rarely
from hilsim.units import NS_PER_S

log = structlog.get_logger("hilsim")

_PARSING_NS = 2_150_000
"""Time from a sentence's last byte to its use: 70.9 ms after the pulse, measured, of which 66 characters take 68.75 at 9600 baud."""
_LOOK_S = 0.1
_READINGS = 4
_POLL_S = 0.02
_RETRY_S = 0.5
_ASSERTED = re.compile(r"([0-9]{1,12})\.([0-9]{9})#([0-9]+)\s*")
"""Time and number of the last pulse, as the kernel writes it (Documentation/ABI/testing/sysfs-pps)."""


class SensorInput:
    """The GPS input of one sensor.

    Attributes:
        input: Its state by pulses and sentences.
    """

    def __init__(self, changes: Changes, clock: RigClock, sensor: SensorSpec, spec: TimeInputSpec) -> None:
        """Take a sensor of the rig, with nothing received."""
        self._changes, self._clock, self._name, self._spec = changes, clock, sensor.name, spec
        self.input = TimeInput(clock.utc_epoch_ns, spec.qualifiers)
        self._applied = PulseState(pps="absent")
        self._awaits = asyncio.Event()
        self._unused = Rarely()

    def forget(self) -> None:
        """Apply the state anew, after a reload has made the sensor as it was at the start."""
        self._applied = PulseState(pps="absent")
        self._awaits.set()

    async def run(self) -> None:
        """Receive, and apply what follows, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            if self._spec.nmea:
                tasks.create_task(self._hear())
            if self._spec.pps:
                tasks.create_task(self._take_pulses())
            tasks.create_task(self._apply())

    def _rig_ns(self, utc_ns: int) -> int:
        """Rig time of an instant of this computer's clock: the clocks are read together, again where this thread was interrupted in between."""
        best_ns, offset_ns = 1 << 62, 0
        for _ in range(_READINGS):
            before_ns, now_ns, after_ns = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
            if after_ns - before_ns < best_ns:
                best_ns, offset_ns = after_ns - before_ns, (before_ns + after_ns) // 2 - now_ns
        return utc_ns + offset_ns - self._clock.epoch_ns

    async def _hear(self) -> None:
        async for line in receive_lines(self._name, self._spec):
            at_ns = self._clock.now_ns()
            read = read_sentence(line)
            if read is None:
                if line[3:6] in {b"RMC", b"GGA"} and self._unused.may_report(time.monotonic()):
                    shown = line.decode("ascii", "replace").strip()
                    log.warning(
                        "time_input.not_used", sensor=self._name, sentence=shown, needs="$GPRMC or $GPGGA with at most four decimals of a second"
                    )
                continue
            self._publish(line, at_ns + _PARSING_NS)
            self.input.position = read.position or self.input.position
            self.input.sentence(at_ns, read.of_day_s, is_valid=read.is_valid)
            self._awaits.set()

    def _publish(self, line: bytes, at_ns: int) -> None:
        """Let position packets carry a sentence from a rig time on."""
        heard = self._lidar().heard
        if heard is None or len(line) > SENTENCE_CAPACITY:
            return
        written = int(heard.written[0])
        row = written % heard.size.size
        heard.text[row, : len(line)] = bytearray(line)
        heard.size[row], heard.at_ns[row] = len(line), at_ns
        publish(heard.written, 0, written + 1)

    async def _take_pulses(self) -> None:
        pulses = system_pulses() if self._spec.pps == "system" else device_pulses(self._name, self._spec.pps)
        async for utc_ns in pulses:
            at_ns = self._rig_ns(utc_ns)
            clock = self._lidar().plan.clock
            self.input.pulse(at_ns, shown_utc_ns(clock, int(device_from_rig(clock, at_ns))))
            self._awaits.set()

    def _lidar(self) -> LidarEmulator:
        return self._changes.lidar(self._name)[0]

    async def _apply(self) -> None:
        """Make the timed changes that follow from what was received."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._awaits.wait(), _LOOK_S)
            self._awaits.clear()
            state = self.input.look(self._clock.now_ns())
            if state == self._applied:
                continue
            try:
                await self._changes.make(ClockChange(sensor=self._name, pps=state.pps, utc_epoch_ns=state.utc_epoch_ns))
            except HilsimError as error:  # a reload, or a stall of the machine: the next look tries again
                log.warning("time_input.not_applied", sensor=self._name, pps=state.pps, reason=str(error))
                continue
            if state.pps != self._applied.pps:
                log.info("time_input.pps", sensor=self._name, pps=state.pps)
            self._applied = state


class TimeInputs(Part):
    """The GPS inputs of a rig's sensors."""

    def __init__(self, context: RigContext) -> None:
        super().__init__(context)
        self._inputs: dict[str, SensorInput] = {}

    def heard(self, name: str) -> TimeInput | None:
        """Input of a sensor; None without one, or before packets flow."""
        return self._inputs[name].input if name in self._inputs else None

    def change(self, rig: Rig) -> Change:
        """Refuse a change of time inputs.

        Raises:
            ConfigError: one changes.
        """
        new, now = ({sensor.name: sensor.time_input for sensor in each.spec.sensor if sensor.time_input} for each in (rig, self.context.rig))
        if new != now:
            raise ConfigError(f"{rig.path}: sensor.time_input cannot change while it runs; restart the service for that")
        return Change(self._apply_anew)

    def _apply_anew(self, clock: RigClock) -> None:
        """Apply what the inputs have received, which a reload has undone."""
        del clock
        for each in self._inputs.values():
            each.forget()

    @asynccontextmanager
    async def serve(self, changes: Changes) -> AsyncIterator[None]:
        """Receive while packets flow."""
        receiving = asyncio.create_task(self._receive(changes), name="time-inputs")
        try:
            yield
        finally:
            receiving.cancel()
            with suppress(asyncio.CancelledError):
                await receiving

    async def _receive(self, changes: Changes) -> None:
        clock = await changes.begun()
        async with asyncio.TaskGroup() as tasks:
            for sensor in self.context.rig.spec.sensor:
                if sensor.time_input is not None:
                    self._inputs[sensor.name] = SensorInput(changes, clock, sensor, sensor.time_input)
                    tasks.create_task(self._inputs[sensor.name].run())

    @property
    def summary(self) -> str:
        """Text with the number of inputs, empty for none."""
        count = sum(sensor.time_input is not None for sensor in self.context.rig.spec.sensor)
        return f"{count} GPS input(s)" if count else ""


async def system_pulses() -> AsyncIterator[int]:
    """UTC of each second as it begins, in ns since 1970."""
    second = time.time_ns() // NS_PER_S
    while True:
        second = max(second + 1, time.time_ns() // NS_PER_S)
        await asyncio.sleep(max(second * NS_PER_S - time.time_ns(), 0) / 1e9)
        yield second * NS_PER_S


async def device_pulses(sensor: str, path: str) -> AsyncIterator[int]:
    """UTC of the pulses of a PPS device by this computer's clock, in ns since 1970, as they come; each change of the device is logged once.

    Args:
        sensor: Name of the sensor, for the log.
        path: ``/dev/ppsN``, or a file of the form of ``/sys/class/pps/ppsN/assert``, which anyone may read.
    """
    asserted = Path("/sys/class/pps") / Path(path).name / "assert" if path.startswith("/dev/") else Path(path)
    number, problem = "", ""
    while True:
        try:
            found = _ASSERTED.fullmatch(asserted.read_text(encoding="ascii"))
            reason = "" if found else "it has had no pulse"
        except (OSError, UnicodeDecodeError) as error:
            found, reason = None, (os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error))
        if reason != problem:
            problem = reason
            if reason:
                log.warning("time_input.no_pulse", sensor=sensor, pps=path, file=str(asserted), reason=reason)
            else:
                log.info("time_input.pulses", sensor=sensor, pps=path)
        if found is not None and found[3] != number:
            is_first, number = not number, found[3]
            if not is_first:  # it may be of long ago
                yield int(found[1]) * NS_PER_S + int(found[2])
        await asyncio.sleep(_POLL_S if found else _RETRY_S)
