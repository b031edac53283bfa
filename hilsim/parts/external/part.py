"""Poses from another simulator as a part: the socket, the thread that receives, the recording, and what is reported of them."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import structlog

from hilsim.assembly.build import asset_signature
from hilsim.config.rig import Rig
from hilsim.config.script import AddChange
from hilsim.daemon.flows import Flows
from hilsim.daemon.parts import Change, Changes, Part, RigClock, RigContext
from hilsim.daemon.streaming.flow_specs import lead_bounds
from hilsim.errors import ConfigError, HilsimError
from hilsim.parts.external.declarations import declared_changes
from hilsim.parts.external.messages import decode
from hilsim.parts.external.receiving import ReceivedPoses
from hilsim.parts.external.specs import ExternalSpec
from hilsim.telemetry.faults import Fault, Level
from hilsim.telemetry.guarded import guarded
from hilsim.telemetry.rarely import Rarely
from hilsim.telemetry.readings import Reading

log = structlog.get_logger("hilsim")

_POLL_S = 0.02


class ExternalPoses(Part):
    """Poses that are followed live; replayed ones need no thread."""

    _flows: Flows

    def __init__(self, context: RigContext) -> None:
        super().__init__(context)
        self._received: ReceivedPoses | None = None
        self._signature = asset_signature(context.rig)
        self._reported = "waiting"
        self._rarely = Rarely()
        self._names = {each.id: each.shape.name for each in self._spec.object}

    @property
    def _spec(self) -> ExternalSpec:
        [spec] = self.context.rig.spec.part("external")
        return spec  # type: ignore[no-any-return]

    def prepare(self) -> None:
        """Build the bodies that are moved.

        Raises:
            AssetError: a file cannot be used.
            ConfigError: poses must be released by the other side, which the daemon does not offer.
        """
        spec = self._spec
        if spec.time == "replay":
            return
        if spec.time == "lockstep":
            raise ConfigError(f'{self.context.rig.path}: external.time must be "live" or "replay" for a rig that runs in real time, got "lockstep"')
        self._signature = asset_signature(self.context.rig)
        self._received = ReceivedPoses(self.context.rig, spec, self.context.scenery(self.context.rig))

    def open(self, flows: Flows) -> None:
        """Open the socket, and create the recording.

        Raises:
            CaptureError: the recording cannot be created.
            LinkError: the socket cannot be opened.
        """
        self._flows = flows
        if self._received is not None:
            self._received.open()

    def warm(self) -> None:
        """Load or compile the receiving loop."""
        if self._received is not None:
            self._received.warm()

    def rehearse(self) -> None:
        """Load or compile the receiving loop."""
        self.warm()

    def start(self, clock: RigClock) -> None:
        """Start receiving."""
        if self._received is not None:
            self._received.start(clock.epoch_ns, clock.utc_epoch_ns, rendered_ns=clock.rendered_ns)

    def change(self, rig: Rig) -> Change:
        """Refuse a change of what another simulator moves, of the scene around it, or to a longer lead than keys are committed ahead.

        Raises:
            ConfigError: it changes.
        """
        new, now = rig.spec, self.context.rig.spec
        is_same = (new.part("external"), new.scene, new.platform, new.seed) == (now.part("external"), now.scene, now.platform, now.seed)
        if not (is_same and asset_signature(rig) == self._signature):
            raise ConfigError(
                f"{rig.path}: [external], [scene], [platform] and seed cannot change while another simulator moves the rig; restart the service for that"
            )
        if self._received is not None and lead_bounds(rig).longest_ns > lead_bounds(self.context.rig).longest_ns:
            raise ConfigError(f"{rig.path}: lead_ms cannot become longer while another simulator moves the rig; restart the service for that")
        return Change()

    @asynccontextmanager
    async def serve(self, changes: Changes) -> AsyncIterator[None]:
        """Make timed changes of messages that declare and remove objects, and take the sensors' power where the rig says so."""
        if self._received is None:
            yield
            return
        task = asyncio.create_task(guarded("poses", lambda: self._follow(changes)), name="poses")
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _follow(self, changes: Changes) -> None:
        while True:
            await asyncio.sleep(_POLL_S)
            if self._received is None:
                continue
            if self._spec.on_silence == "power_off":
                self._set_power(is_on=self._received.state(time.monotonic_ns()) != "silent")
            for payload in self._received.declarations():
                try:
                    await self._declare(payload, changes)
                except HilsimError as error:
                    self._received.refused_declarations += 1
                    if self._rarely.may_report(time.monotonic()):
                        log.warning("external.declaration_refused", reasons=str(error).split("\n"), suppressed=self._rarely.suppressed)

    def _set_power(self, *, is_on: bool) -> None:
        sensors = {sensor.name for sensor in self.context.rig.spec.sensor}
        transmitter = self._flows.transmitter
        for name, row in self._flows.rows.items():
            if name.rpartition("/")[0] in sensors and transmitter.is_silent(row) is is_on:
                transmitter.silence_flow(row, silent=not is_on)

    async def _declare(self, payload: bytes, changes: Changes) -> None:
        for identity, change in declared_changes(decode(payload), self._names, self.context.rig.spec.scene.material_table()):
            await changes.make(change)
            if isinstance(change, AddChange):
                self._names[identity] = change.object_name
            else:
                del self._names[identity]

    def stop(self) -> None:
        """End the threads, and close the socket and the recording."""
        if self._received is not None:
            self._received.stop()
        self._received = None

    def pace(self, now_ns: int) -> None:
        """Log when the sender is first followed, falls silent, or is followed again."""
        received = self._received
        if received is None:
            return
        received.judge(now_ns)
        state = received.state(now_ns)
        if state != self._reported:
            report = log.warning if state == "silent" else log.info
            report(f"external.{state}", former=self._reported)
            self._reported = state

    @property
    def summary(self) -> str:
        """Text that names the other simulator, empty for none."""
        return "poses from outside" if self._received is not None else ""

    def add_reading(self, reading: Reading, now_ns: int) -> Reading:
        """Add the values of poses, and the scheduling of their thread."""
        received = self._received
        if received is None:
            return reading
        return replace(
            reading,
            parts={**reading.parts, "external": (received.reading(now_ns),)},
            scheduling={**reading.scheduling, "poses": received.scheduling_mode},
        )

    def faults(self, now_ns: int) -> tuple[Fault, ...]:
        """Faults of the thread, of the sender and of the recording."""
        received, spec = self._received, self._spec
        if received is None:
            return ()
        found = []
        if not received.alive:
            found.append(Fault(key="poses_ended", text="the thread that receives poses has ended"))
        if received.state(now_ns) == "silent":
            text = f"no message at {spec.listen} for more than {spec.extrapolate_ms:g} ms"
            found.append(Fault(key="poses_silent", text=text, level=Level.DEGRADED))
        if received.misfit:
            found.append(Fault(key="poses_unusable", text=received.misfit, level=Level.DEGRADED))
        if received.recording_fault:
            found.append(Fault(key="poses_unrecorded", text=received.recording_fault, level=Level.DEGRADED))
        return tuple(found)
