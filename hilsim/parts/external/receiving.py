"""The thread that receives poses from another simulator, with its socket and its recording."""

import os
import socket
import stat
import threading
from contextlib import suppress
from pathlib import Path

from hilsim.assembly.build import Scenery
from hilsim.compilation.atomics import publish
from hilsim.config.part_kind import has_overlay
from hilsim.config.rig import Rig
from hilsim.daemon.streaming.flow_specs import lead_bounds
from hilsim.errors import LinkError
from hilsim.parts.external.bodies import BodyCount, BodyWord, add_body, build_bodies
from hilsim.parts.external.loop import DECLARATIONS, ClockKind, LoopCount, LoopWord, build_receiver, receive_poses
from hilsim.parts.external.reading import ExternalReading
from hilsim.parts.external.recording import KeyRecorder
from hilsim.parts.external.specs import ExternalSpec
from hilsim.transmit.links.sockets import open_udp
from hilsim.transmit.packet_queue import AHEAD_NS, take
from hilsim.transmit.scheduling import ThreadSettings, enter
from hilsim.world.geometry.live_keys import LivePlacement
from hilsim.world.platforms.live import build_live_pose

_PRIORITY_BELOW = 5
"""Priority below sending and above rendering: a message takes some microseconds, rendering a packet 100 us."""
_SLICE_US = 1000.0
_PACKET_NS = 2_000_000
"""Longest span of a packet's firings and of rounding about its deadline."""
_MARGIN_NS = 5_000_000
"""Time by which keys are committed before they may be needed: the machine may stand still for that long."""
_BUFFER_BYTES = 1 << 20
_NO_ID = -1
_JUDGED_NS = 2_000_000_000


class ReceivedPoses:
    """Poses that are received and followed live.

    Attributes:
        scheduling_mode: Scheduling that the thread obtained.
        misfit: Reason that no pose of the last seconds could be followed, empty where some could, or none came.
        refused_declarations: Number of messages of objects that could not be a change.
    """

    def __init__(self, rig: Rig, spec: ExternalSpec, scenery: Scenery) -> None:
        """Build the bodies of a rig; nothing is opened."""
        self.scheduling_mode = self.misfit = ""
        self.refused_declarations = 0
        self._judged = (0, 0, 0, 0)
        self._rig, self._spec = rig, spec
        carries = rig.spec.platform.kind == "external"
        live = scenery.live if carries and scenery.live is not None else build_live_pose(2)
        self._bodies = build_bodies(
            live,
            scenery.world.live,
            speed_mps=spec.speed_max_mps,
            extrapolate_ns=round(spec.extrapolate_ms * 1e6),
            ahead_ns=max(lead_bounds(rig).longest_ns, AHEAD_NS if has_overlay(rig.spec) else 0) + _PACKET_NS,
            margin_ns=_MARGIN_NS,
            delay_ns=round(spec.delay_ms * 1e6),
            coasts=spec.on_silence == "coast",
            is_logged=bool(spec.record),
        )
        if not carries:
            self._bodies.words[0, BodyWord.ID] = _NO_ID
        for slot, each in enumerate(spec.object):
            add_body(self._bodies, each.id, slot, each.speed_max_mps)
        if scenery.slots is not None:
            scenery.slots.listeners.append(lambda identity, slot: add_body(self._bodies, identity, slot, LivePlacement(slot).speed_mps))
        self._receiver = build_receiver(self._bodies, ClockKind[spec.clock.upper()])
        self._epoch_ns = self._utc_epoch_ns = 0
        self._socket: socket.socket | None = None
        self._wake = -1
        self._thread: threading.Thread | None = None
        self._recorder: KeyRecorder | None = None

    def open(self) -> None:
        """Open the socket, and create the recording.

        Raises:
            CaptureError: the recording cannot be created.
            LinkError: the socket cannot be opened.
        """
        self._socket = _open_unix(self._rig.directory / self._spec.path) if self._spec.path else open_udp(*self._spec.endpoint)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        if self._spec.record:
            self._recorder = KeyRecorder(self._rig.directory / self._spec.record, self._bodies)

    def warm(self) -> None:
        """Load or compile the receiving loop."""
        words = self._receiver.words
        words[LoopWord.STOP] = 1
        receive_poses(self._receiver, -1, -1, 0, 0)
        words[LoopWord.STOP] = 0

    def start(self, epoch_ns: int, utc_epoch_ns: int, *, rendered_ns: int) -> None:
        """Start receiving; rig time 0 is CLOCK_MONOTONIC ``epoch_ns``, and packets up to rig time ``rendered_ns`` have been rendered."""
        self._bodies.known[1] = rendered_ns + _MARGIN_NS
        self._epoch_ns, self._utc_epoch_ns = epoch_ns, utc_epoch_ns
        self._thread = threading.Thread(target=self._run, name="poses", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        transmit = self._rig.spec.transmit
        settings = ThreadSettings(scheduling=transmit.scheduling, priority=max(transmit.priority - _PRIORITY_BELOW, 1), slice_us=_SLICE_US)
        self.scheduling_mode = enter(settings).mode.value
        if self._socket is None:
            raise AssertionError("the socket of poses is opened before they are received")
        receive_poses(self._receiver, self._socket.fileno(), self._wake, self._epoch_ns, self._utc_epoch_ns)

    def stop(self) -> None:
        """End the threads, and close the socket and the recording."""
        publish(self._receiver.words, LoopWord.STOP, 1)
        if self._wake >= 0:
            os.eventfd_write(self._wake, 1)
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._recorder is not None:
            self._recorder.close()
            self._recorder = None
        if self._wake >= 0:
            os.close(self._wake)
            self._wake = -1
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            if self._spec.path:
                (self._rig.directory / self._spec.path).unlink(missing_ok=True)

    def declarations(self) -> list[bytes]:
        """Messages of objects that have come since the last call."""
        taken = take(self._receiver.declarations, DECLARATIONS)
        return [payload[:size].tobytes() for payload, size in zip(taken.payload, taken.size.tolist(), strict=True)]

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def recording_fault(self) -> str:
        """Reason that the recording lacks poses, empty for none."""
        if self._recorder is not None and self._recorder.fault:
            return self._recorder.fault
        missing = int(self._bodies.counts[BodyCount.UNLOGGED])
        return f"{missing} keys are missing from the recording of poses: the disk was too slow" if missing else ""

    def state(self, now_ns: int) -> str:
        """State of the sender at a CLOCK_MONOTONIC time: one of ``reading.STATES``."""
        words = self._receiver.words
        age_ns = self._age_ns(now_ns)
        if age_ns is None:
            return "waiting"
        if not words[LoopWord.HAS_SENDER] or age_ns > self._bodies.extrapolate_ns:
            return "silent"
        return "following" if words[LoopWord.FOLLOWS] else "settling"

    def judge(self, now_ns: int) -> None:
        """Find out at a CLOCK_MONOTONIC time whether any pose of the last seconds came in time; to be called now and then."""
        counts = self._bodies.counts
        taken, late, early = int(counts[BodyCount.POSES]), int(counts[BodyCount.LATE]), int(counts[BodyCount.EARLY])
        judged_ns, *before = self._judged
        if now_ns - judged_ns < _JUDGED_NS:
            return
        self._judged = (now_ns, taken, late, early)
        new_taken, new_late, new_early = (now - then for now, then in zip((taken, late, early), before, strict=True))
        self.misfit = ""
        if judged_ns and new_taken + new_early == new_late + new_early > 0:
            when = "too late" if new_late else "more than 0.1 s early"
            self.misfit = (
                f"all {new_late + new_early} poses of the last {(now_ns - judged_ns) / 1e9:.0f} s came {when}: "
                f'delay_ms must cover their way, and clock must be the one of their stamps, got {self._spec.delay_ms:g} and "{self._spec.clock}"'
            )

    def _age_ns(self, now_ns: int) -> int | None:
        words = self._receiver.words
        if not words[LoopWord.HAS_SENDER] and not words[LoopWord.ARRIVED_NS]:
            return None
        return max(now_ns - self._epoch_ns - int(words[LoopWord.ARRIVED_NS]), 0)

    def reading(self, now_ns: int) -> ExternalReading:
        """Values for the metrics; wait-free."""
        loop, body = self._receiver.counts.tolist(), self._bodies.counts.tolist()
        age_ns = self._age_ns(now_ns)
        return ExternalReading(
            state=self.state(now_ns),
            message_age_s=None if age_ns is None else age_ns / 1e9,
            messages=loop[LoopCount.MESSAGES],
            refused_messages={
                "malformed": loop[LoopCount.MALFORMED],
                "second_sender": loop[LoopCount.STRANGERS],
                "too_many": loop[LoopCount.UNDECLARED],
                "declaration": self.refused_declarations,
            },
            lost_messages=loop[LoopCount.LOST],
            reordered_messages=loop[LoopCount.REORDERED],
            sender_changes=loop[LoopCount.RESTARTS],
            poses=body[BodyCount.POSES],
            refused_poses={
                "late": body[BodyCount.LATE],
                "old": body[BodyCount.OLD],
                "early": body[BodyCount.EARLY],
                "dense": body[BodyCount.DENSE],
                "too_far": body[BodyCount.LEAPS],
                "unknown": loop[LoopCount.UNKNOWN],
                "malformed": loop[LoopCount.REFUSED_POSES],
            },
            keys=body[BodyCount.KEYS],
            extrapolated_keys=body[BodyCount.EXTRAPOLATED],
            stalls=loop[LoopCount.STALLS],
            unrecorded_keys=body[BodyCount.UNLOGGED],
        )


def _open_unix(path: Path) -> socket.socket:
    """Open a bound Unix socket for datagrams, non-blocking; a socket that no process uses is replaced.

    Raises:
        LinkError: the path cannot be used.
    """
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    opened.settimeout(0)
    try:
        with suppress(FileNotFoundError):
            if stat.S_ISSOCK(path.lstat().st_mode) and not _is_used(path):
                path.unlink()
        opened.bind(str(path))
    except OSError as error:
        opened.close()
        raise LinkError(f"{path}: external.listen must be a path at which a socket can be made, got {error.strerror}") from error
    return opened


def _is_used(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return False
    return True
