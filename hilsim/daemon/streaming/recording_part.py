"""The recording of a rig as a part: it follows what is sent to the last datagram."""

from dataclasses import replace
from typing import ClassVar

from hilsim.config.rig import Rig
from hilsim.daemon.parts import Change, Needs, Part, RigContext
from hilsim.daemon.streaming.recorder import Recorder
from hilsim.errors import ConfigError
from hilsim.protocols.ethernet import Framing
from hilsim.telemetry.faults import Fault
from hilsim.telemetry.readings import Reading


class RecordingPart(Part):
    """The recording of a rig, if it has one."""

    follows_sending: ClassVar[bool] = True

    def __init__(self, context: RigContext) -> None:
        super().__init__(context)
        self._recorder: Recorder | None = None

    def prepare(self) -> None:
        """See whether files can be created.

        Raises:
            CaptureError: they cannot.
        """
        rig = self.context.rig
        if rig.spec.record.file:
            self._recorder = Recorder(rig.spec.record, rig.directory)
            self._recorder.check()
            self.context.flow_listeners.append(self._add_flow)

    def needs(self) -> Needs:
        """A queue of what was sent."""
        return Needs(queues=int(self._recorder is not None))

    def warm(self) -> None:
        """Create the first file and load the kernel.

        Raises:
            CaptureError: the file cannot be created.
        """
        if self._recorder is not None:
            self._recorder.open(self.context.transmitter)

    def start(self) -> None:
        """Record from now on."""
        if self._recorder is not None:
            self._recorder.start(utc_offset_ns=self.context.clock.utc_epoch_ns - self.context.clock.epoch_ns)

    def change(self, rig: Rig) -> Change:
        """Refuse another recording.

        Raises:
            ConfigError: it is another one.
        """
        if rig.spec.record != self.context.rig.spec.record:
            raise ConfigError(f"{rig.path}: [record] cannot change while packets flow; restart the service for that")
        return Change()

    def stop(self) -> None:
        """Write what is still waiting, and close the file."""
        if self._recorder is not None:
            self._recorder.stop()
        self._recorder = None

    def add_reading(self, reading: Reading, now_ns: int) -> Reading:
        """The recording."""
        del now_ns
        return replace(reading, recording=self._recorder.reading()) if self._recorder is not None else reading

    def faults(self, now_ns: int) -> tuple[Fault, ...]:
        """Why it has ended before it was told to."""
        del now_ns
        if self._recorder is None or not self._recorder.fault:
            return ()
        return (Fault(key="recording_ended", text=f"the recording has ended: {self._recorder.fault}"),)

    def _add_flow(self, number: int, _name: str, framing: Framing) -> None:
        if self._recorder is not None:
            self._recorder.add_flow(number, framing)
