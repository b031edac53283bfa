"""A lidar for a driver's tests: a real stream of UDP packets for the time of a block."""

import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from hilsim.api.child import Child, RunRequest
from hilsim.api.control import Control
from hilsim.api.daemon import Daemon, DaemonError
from hilsim.api.metrics import Metrics
from hilsim.errors import ConfigError, TransmitError
from hilsim.testing.reservations import reserved_port, reserved_source
from hilsim.testing.sensor_rig import SceneLike, SensorRig, has_position_port, sensor_rig
from hilsim.testing.starting import launch

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from hilsim.testing.virtual import VirtualLidar

_POLL_S = 0.01
_RECEIVE_BUFFER_BYTES = 4 << 20
_LARGEST_PAYLOAD = 65_535
_PCAP_MB, _PCAP_FILES = 100, 2

__tracebackhide__ = True  # pytest leaves these frames out of a test's traceback


class _WarmDaemon(Daemon):
    """A daemon that starts in a fraction of a second, forked from a warm process."""

    def _launch(self, request: RunRequest) -> Child:
        return launch(request)


class Lidar:
    """A streaming sensor.

    Attributes:
        model: Profile of the sensor.
        name: Name of the sensor in metrics.
        address: Source IPv4 address: one of this host's loopback addresses, unique among tests.
        host: Destination IPv4 address.
        port: Destination UDP port of data packets.
        position_port: Destination UDP port of position packets; None for a model without one.
        recording: Path prefix of the recording; None for no recording.
    """

    def __init__(self, rig: SensorRig, daemon: Daemon, recording: Path | None) -> None:
        """Describe a sensor of a running daemon."""
        (sensor,) = daemon.sensors
        self.model = str(rig.table["sensor"][0]["profile"])
        self.name = sensor.name
        self.address, self.host = sensor.source, sensor.destination
        network = rig.table["sensor"][0]["network"]
        self.port: int = network["data_port"]
        self.position_port: int | None = network.get("position_port")
        self.recording = recording
        self._rig = rig
        self._daemon = daemon
        self._socket: socket.socket | None = None

    @property
    def daemon(self) -> Daemon:
        """Daemon of the sensor."""
        return self._daemon

    @property
    def control(self) -> Control | None:
        """Commands to its daemon."""
        return self._daemon.control

    def fault(self, kind: str, **keys: Any) -> None:
        """Break the sensor on command ([faults](../reference/faults.md)); returns when its packets contain it.

        Args:
            kind: Kind of the fault.
            keys: Its keys, such as ``for_s``.

        Raises:
            ConfigError: the fault is invalid, or the sensor has nothing that it befalls.
            TransmitError: the daemon does not answer.
        """
        self._commands().fault(kind, self.name, **keys)

    def clear(self, name: str = "*") -> None:
        """End its faults of a name or kind, by default all; returns when its packets are whole again.

        Raises:
            TransmitError: the daemon does not answer.
        """
        self._commands().clear(name)

    def _commands(self) -> Control:
        if self.control is None:
            raise TransmitError("the path of the daemon's control socket must be short enough, got a directory of temporary files that is too deep")
        return self.control

    @property
    def recorded(self) -> tuple[Path, ...]:
        """PCAP files of sent packets, oldest first: at least the last 100 MB."""
        if self.recording is None:
            return ()
        return tuple(sorted(self.recording.parent.glob(f"{self.recording.stem}-*{self.recording.suffix}")))

    def metrics(self) -> Metrics:
        """Current values of its daemon's metrics.

        Raises:
            DaemonError: the daemon has ended.
        """
        return self._daemon.metrics()

    def socket(self) -> socket.socket:
        """Socket that the other calls read: bound to ``host`` and ``port`` on first use, and closed at the end of the block.

        A driver under test binds the port itself; then this socket is not available.

        Raises:
            TransmitError: another program has bound the port.
        """
        if self._socket is None:
            made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            try:
                made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
                made.bind((self.host, self.port))
            except OSError as error:
                made.close()
                raise TransmitError(f"port {self.port} of {self.host} must be free for the test itself to read it, got {error.strerror}") from error
            self._socket = made
        return self._socket

    def receive(self, packets: int = 1, *, timeout_s: float = 10.0) -> list[bytes]:
        """Receive the next data packets, starting with the first call.

        Args:
            packets: Number of packets.
            timeout_s: Timeout for all of them.

        Raises:
            TransmitError: the packets did not arrive in time, or another program has bound the port.
            DaemonError: the daemon has ended.
        """
        taken: list[bytes] = []
        reading, until_s = self.socket(), time.monotonic() + timeout_s
        while len(taken) < packets:
            reading.settimeout(max(until_s - time.monotonic(), _POLL_S))
            try:
                taken.append(reading.recv(_LARGEST_PAYLOAD))
            except TimeoutError:
                self.metrics()  # a daemon that has ended is the better explanation
                raise TransmitError(f"{packets} packets must come to {self.host}:{self.port} within {timeout_s:g} s, got {len(taken)}") from None
        return taken

    def points(self, packets: int, *, timeout_s: float = 10.0) -> "npt.NDArray[np.void]":
        """Points of the next data packets, as from ``hilsim.decode``: the expected result of a driver under test.

        Args:
            packets: Number of packets; a VLP-16 at 600 rpm takes 76 for a turn.
            timeout_s: Timeout for all of them.

        Raises:
            TransmitError: the packets did not arrive in time, or another program has bound the port.
            DaemonError: the daemon has ended.
        """
        from hilsim.api.decoding import decode  # noqa: PLC0415 - imports numba

        return decode(self.receive(packets, timeout_s=timeout_s))

    def truth(self, start_s: float, stop_s: float) -> "npt.NDArray[np.void]":
        """True points of the sensor in an interval of rig time, computed separately from the stream: ``Emulator.points``, with label and instance.

        Rig time 0 is the sensor's start, shortly before the start of the block.

        Raises:
            ValueError: the times are not in order.
        """
        from hilsim.api.emulator import Emulator  # noqa: PLC0415 - imports numba
        from hilsim.config.rig import rig_of_table  # noqa: PLC0415

        return Emulator(rig_of_table(self._rig.table, self._rig.path)).points(start_s, stop_s)

    def wait_packets(self, count: int, *, timeout_s: float = 10.0) -> None:
        """Wait until a number of further data packets have been sent, with or without a receiver.

        Raises:
            TransmitError: they were not sent in time.
            DaemonError: the daemon has ended.
        """
        begun, until_s = self._sent(), time.monotonic() + timeout_s
        while (sent := self._sent() - begun) < count:
            if time.monotonic() >= until_s:
                raise TransmitError(f"{self.name} must send {count} packets within {timeout_s:g} s, got {sent:.0f}")
            time.sleep(_POLL_S)

    def report(self) -> str:
        """Report for a failed test: destination, packets sent, and the metrics that are not 0."""
        lines = [f"{self.model} {self.name}: {self.address} to {self.host}:{self.port}"]
        lines += [f"sent: {path}" for path in self.recorded]
        try:
            metrics = self.metrics()
        except (DaemonError, TransmitError) as error:
            return "\n".join([*lines, str(error)])
        told = [f"{sample} {value:g}" for sample, value in metrics.items() if value and sample.startswith("hilsim_") and "_bucket" not in sample]
        return "\n".join([*lines, *told])

    def close(self) -> None:
        """Close the socket, if it was opened."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _sent(self) -> float:
        flows = self._daemon.sensors[0].ports
        return self.metrics().total("hilsim_sent_packets_total", sensor=self.name, flow=next(iter(flows)))


@overload
def lidar(model: str = "vlp16", *, real_time: Literal[False], **options: Any) -> AbstractContextManager["VirtualLidar"]: ...
@overload
def lidar(model: str = "vlp16", *, real_time: Literal[True] = True, **options: Any) -> AbstractContextManager[Lidar]: ...
@contextmanager
def lidar(
    model: str = "vlp16",
    *,
    real_time: bool = True,
    scene: SceneLike = "room",
    port: int | None = None,
    position_port: int | None = None,
    host: str = "127.0.0.1",
    name: str = "lidar",
    tables: Mapping[str, Any] | None = None,
    record: str | PathLike[str] | None = None,
    **keys: Any,
) -> Iterator[Any]:
    """A lidar that streams while the block runs, starting before its first line.

    Args:
        model: Shipped sensor profile (``vlp16``, ``hdl32e``, ``hr80w-like`` …), or the path of one.
        real_time: Whether packets are sent in real time by a separate process. False: they are rendered on request, and are always the same.
        scene: Scene: ``"room"`` (20 m by 12 m, static), ``"street"`` (from a car that drives through a town), the name of a shipped rig or the path of a rig file whose
            world is used, or a mapping of the tables in ``[scene]``.
        port: Destination UDP port of data packets; None: a free one, unique among tests of this host.
        position_port: Destination UDP port of position packets, likewise.
        host: Destination IPv4 address.
        name: Name of the sensor in metrics and messages.
        tables: Other tables and keys of the rig: ``{"platform": …, "weather": …, "seed": 7}``.
        record: PCAP file for sent packets; a number is inserted before its suffix, and at least the last 100 MB are kept.
        keys: Keys of the sensor's table: ``rotation_rate_rpm=1200``, ``return_mode="dual"``, ``override={"range_noise_m": 0.0}``.

    Raises:
        ConfigError: there is no such model or scene, or the rig is invalid.
        DaemonError: the daemon did not start; the message is its output.
        TransmitError: no port is free.
    """
    with ExitStack() as stack:
        network: dict[str, Any] = {"source": stack.enter_context(reserved_source()), "source_ports": "any", "destination": host}
        network["data_port"] = stack.enter_context(reserved_port()) if port is None else port
        if has_position_port(model):
            network["position_port"] = stack.enter_context(reserved_port()) if position_port is None else position_port
        elif position_port is not None:
            raise ConfigError(f"position_port must not be given for a {model}, got {position_port}: it sends no position packets")
        recording = None if record is None else Path(record).absolute()
        written = {} if recording is None else {"record": {"file": str(recording), "rotate_mb": _PCAP_MB, "keep": _PCAP_FILES}}
        keys["network"] = network | keys.get("network", {})
        rig = sensor_rig(model, scene, name=name, keys=keys, tables={**(written if real_time else {}), **(tables or {})})
        if not real_time:
            from hilsim.testing.virtual import VirtualLidar  # noqa: PLC0415 - imports numba

            yield stack.enter_context(closing(VirtualLidar(rig, recording)))
            return
        daemon = stack.enter_context(_WarmDaemon(rig))
        yield stack.enter_context(closing(Lidar(rig, daemon, recording)))
