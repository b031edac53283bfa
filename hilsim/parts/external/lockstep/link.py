"""A rig in lockstep with another simulator, over a UDP or Unix socket: no clock decides what is rendered, and packets are sent as each stretch is released."""

import os
import select
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import structlog

from hilsim.assembly.build import rig_metadata, sensor_flows
from hilsim.capture.sinks.pcap import PcapSeriesSink
from hilsim.config.rig import Rig
from hilsim.daemon.streaming.flow_specs import flow_spec
from hilsim.emulator.batch import DatagramBatch
from hilsim.errors import LinkError
from hilsim.offline.merging import Merged, merged
from hilsim.offline.record import FlowNumbers, network_stacks
from hilsim.offline.snapshot import Motion
from hilsim.offline.stepper import Stepper
from hilsim.parts.external.lockstep.session import LockstepCounts, LockstepSession
from hilsim.parts.external.messages import DATAGRAM_SIZE
from hilsim.parts.external.specs import ExternalSpec
from hilsim.protocols.ethernet import HEADER_SIZE
from hilsim.transmit.pool import SocketPool
from hilsim.transmit.specs import FrameSocketSpec

log = structlog.get_logger("hilsim")

_RECEIVE_BUFFER_BYTES = 4 << 20
_POLL_S = 0.2
_TRIAL_NS = 20_000_000
_LONGEST_LAG_NS = 100_000_000


class _Recorder:
    """Writer of a rig's ``[record]``: what is sent, stamped with the deadlines; where rig time begins again, the stamps go on."""

    def __init__(self, rig: Rig, utc_epoch_ns: int) -> None:
        """Begin the first file.

        Raises:
            CaptureError: it cannot be created.
        """
        self._sink = PcapSeriesSink(rig.spec.record, rig.directory, rig_metadata(rig))
        self._sink.check()
        self._sink.open(())
        self._numbers = FlowNumbers(network_stacks(rig))
        self._epoch_ns = self._newest_ns = utc_epoch_ns
        self.close = self._sink.close

    def begin_again(self) -> None:
        """Continue behind the packets before."""
        self._epoch_ns = self._newest_ns

    def write(self, packets: Merged) -> None:
        """Append packets.

        Raises:
            CaptureError: the disk is full or fails.
        """
        batch = self._numbers.batch(packets, self._epoch_ns)
        self._newest_ns = max(self._newest_ns, int(batch.stamp_ns[-1]))
        self._sink.write(batch)


class _Sender:
    """Sends batches of whole frames over the sockets of a rig's flows, at once or at their deadlines, and has them recorded."""

    def __init__(self, rig: Rig, pool: SocketPool, pace: str, recorder: _Recorder | None) -> None:
        """Open the sockets.

        Raises:
            TransmitError: a socket cannot be opened.
        """
        self._recorder = recorder
        self._sockets: dict[str, tuple[socket.socket, bool, tuple[str, int]]] = {}
        self._pace, self._epoch_ns = pace, 0
        self._has_begun = False
        self.not_sent = 0
        for number, sensor in enumerate(rig.spec.sensor):
            for each in sensor_flows(sensor, rig.lidars[number]):
                spec = flow_spec(each.flow, sensor, each.style, rig.lidars[number].packet_rate_hz).socket
                is_frame = isinstance(spec, FrameSocketSpec)
                self._sockets[each.flow.name] = pool.acquire(spec), is_frame, (each.flow.destination, each.flow.destination_port)

    def begin_again(self) -> None:
        """Forget the pace of the packets before."""
        self._has_begun = False
        if self._recorder is not None:
            self._recorder.begin_again()

    def send(self, batches: tuple[DatagramBatch, ...]) -> None:
        """Send packets in the order of their deadlines; those of captures and parts in the rig are not sent.

        Raises:
            CaptureError: they cannot be recorded.
        """
        ours = [batch for batch in batches if batch.flow.name in self._sockets and batch.size.size]
        if not ours:
            return
        every = merged(ours)
        if self._recorder is not None:
            self._recorder.write(every)
        targets = [self._sockets[flow.name] for flow in every.flows]
        for deadline_ns, flow, size, row in zip(every.deadline_ns.tolist(), every.flow.tolist(), every.size.tolist(), every.payload, strict=True):
            if self._pace == "real":
                self._wait(deadline_ns)
            link, is_frame, destination = targets[flow]
            try:
                if is_frame:
                    link.send(row[:size])
                else:
                    link.sendto(row[HEADER_SIZE:size], destination)
            except OSError:
                self.not_sent += 1

    def _wait(self, deadline_ns: int) -> None:
        now_ns = time.monotonic_ns()
        if not self._has_begun or self._epoch_ns + deadline_ns < now_ns - _LONGEST_LAG_NS:
            self._epoch_ns, self._has_begun = now_ns - deadline_ns, True
        left_ns = self._epoch_ns + deadline_ns - now_ns
        if left_ns > 0:
            time.sleep(1e-9 * left_ns)


def _listen(spec: ExternalSpec, path: Path | None) -> socket.socket:
    """The socket at which the other side's datagrams arrive: a Unix one if there is a path, which is replaced if it exists.

    Raises:
        LinkError: it cannot be opened.
    """
    opened = socket.socket(socket.AF_UNIX if path is not None else socket.AF_INET, socket.SOCK_DGRAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
        if path is not None:
            with suppress(FileNotFoundError):
                if path.is_socket():
                    path.unlink()
            opened.bind(str(path))
        else:
            opened.bind(spec.endpoint)
    except OSError as error:
        opened.close()
        raise LinkError(f"{path or spec.endpoint}: cannot listen for another simulator: {error.strerror}") from error
    return opened


class Lockstep:
    """A rig in lockstep over a socket.

    Attributes:
        address: Address of the socket.
    """

    def __init__(self, rig: Rig, spec: ExternalSpec, make: Callable[[], Stepper], *, utc_epoch_ns: int = 0) -> None:
        """Build the rig and open the sockets.

        Args:
            rig: The rig.
            spec: Its table.
            make: Builds the rig at rig time 0.
            utc_epoch_ns: UTC of rig time 0 in the recording of the rig's ``[record]``.

        Raises:
            AssetError: a file of the scene cannot be used.
            CaptureError: the recording cannot be written.
            ConfigError: the rig cannot be stepped.
            LinkError: the socket cannot be opened.
            TransmitError: a sensor's socket cannot be opened.
        """
        _rehearse(make)
        self._session = LockstepSession(make, {each.id: each.shape.name for each in spec.object}, spec.restart)
        path = rig.directory / spec.path if spec.path else None
        with ExitStack() as opened:
            pool = SocketPool()
            opened.callback(pool.close)
            recorder = _Recorder(rig, utc_epoch_ns) if rig.spec.record.file else None
            if recorder is not None:
                opened.callback(recorder.close)
            self._sender = _Sender(rig, pool, spec.pace, recorder)
            self._link = _listen(spec, path)
            opened.callback(self._link.close)
            if path is not None:
                opened.callback(path.unlink, missing_ok=True)
            self._wake_read, self._wake_write = os.pipe()
            opened.callback(os.close, self._wake_read)
            opened.callback(os.close, self._wake_write)
            self._open = opened.pop_all()
        self.address = self._link.getsockname()

    @property
    def counts(self) -> LockstepCounts:
        """Counts since the start."""
        return self._session.counts

    @property
    def not_sent(self) -> int:
        """Packets that the kernel refused to send."""
        return self._sender.not_sent

    def stop(self) -> None:
        """Let ``run`` end; any thread or a signal handler may call it."""
        os.write(self._wake_write, b"\0")

    def close(self) -> None:
        """Close all sockets."""
        self._open.close()

    def run(self, duration_s: float | None = None) -> None:
        """Follow the other side until ``stop`` is called or the time is over.

        Raises:
            CaptureError: packets cannot be recorded.
        """
        end_s = None if duration_s is None else time.monotonic() + duration_s
        told = 0
        while end_s is None or time.monotonic() < end_s:
            wait_s = _POLL_S if end_s is None else max(min(_POLL_S, end_s - time.monotonic()), 0.0)
            ready, _, _ = select.select([self._link.fileno(), self._wake_read], [], [], wait_s)
            if self._wake_read in ready:
                return
            if self._link.fileno() not in ready:
                continue
            payload, sender = self._link.recvfrom(DATAGRAM_SIZE + 1)
            partners = self.counts.partners
            answer = self._session.handle(payload)
            if self.counts.partners != partners:
                log.info("lockstep.partner_began", partners=self.counts.partners, begins_again=answer.begins_again)
            if answer.begins_again:
                self._sender.begin_again()
            if self.counts.refused != told:
                told = self.counts.refused
                log.warning("lockstep.message_refused", refused=told, fault=self.counts.faults[-1] if self.counts.faults else "")
            self._sender.send(answer.batches)
            if answer.reply and sender:
                with suppress(OSError):  # the other side is gone
                    self._link.sendto(answer.reply, sender)


def _rehearse(make: Callable[[], Stepper]) -> None:
    """Load or compile the kernels of a step, for which the other side would wait too long."""
    trial = make()
    trial.commit(_TRIAL_NS, [(0, Motion(position_m=(0.0, 0.0, 0.0)))] if trial.platform is not None else ())
    for _ in trial.render(_TRIAL_NS):
        pass
