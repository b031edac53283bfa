"""Scans of a running daemon, from the packets that it sends."""

import socket
import threading
import time
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import structlog

from hilsim.assembly.shapes import Shape
from hilsim.capture.batches import DatagramArrays, PcapPieces
from hilsim.capture.metadata import known_metadata
from hilsim.daemon.control.client import Client
from hilsim.daemon.control.packet_source import PacketSource
from hilsim.errors import ConfigError, HilsimError, require
from hilsim.limits import PACKET_STREAM_BYTES
from hilsim.read.scans.scan import IDENTITY_WXYZ, Scan, ScanPackets
from hilsim.read.scans.streams import SensorStreams
from hilsim.show.view.feed.mirror import RigMirror, key_of
from hilsim.show.view.feed.origins import origins, row_of_point
from hilsim.show.view.feed.packets import LatestPackets
from hilsim.show.view.feed.platform_poses import PlatformPoses
from hilsim.show.view.feed.series import Series
from hilsim.show.view.feed.store import ScanStore, with_origins
from hilsim.show.view.feed.streams import StoredFeed

log = structlog.get_logger("hilsim")

_AGAIN_S = 1.0
"""Time between attempts to connect, and between two looks at the rig and the health."""
_READ_S = 0.25
_BATCH_S = 0.05
"""Time for which packets gather, as long as a daemon lets them gather: decoding many at once takes a quarter of the processor time."""
_KEY_BYTES, _KEY_BEGIN = 12, 16
"""Addresses and ports of a datagram, and where they begin before its payload: after them come 4 bytes of length and checksum."""
_NOT_FOUND = (
    "no packet that is rendered again has these bytes: a vehicle flies otherwise in real time, another simulator moves something, or the daemon renders "
    "with fewer rays for lack of time"
)
_LABEL_WAIT_S = 0.5
_BACKLOG = 4
"""Scans that wait to be labelled, beyond which none is labelled until they have gone."""

_Pose = tuple[tuple[float, float, float], tuple[float, float, float, float]]


class _Before(NamedTuple):
    """Latest scan of a sensor: its stamp, the time from the one before it, and the gaps of the stream up to it."""

    stamp_ns: int
    period_ns: int
    gaps: int


class DaemonFeed(StoredFeed):
    """A daemon as a feed. It connects again when the daemon has been restarted.

    Attributes:
        title: Name of the rig, once it is known, and the address.
        series: Series of the daemon's figures.
        notes: Reasons why poses or ground truth are missing, and why there is no connection; empty if all is well.
        lost_packets: Packets that the daemon had to leave out, because this process read too slowly.
    """

    def __init__(
        self,
        address: str,
        token_file: str | Path | None = None,
        *,
        seconds: float = 10.0,
        most_bytes: int = 256_000_000,
        status_hz: float = 5.0,
        labels_hz: float = 0.0,
        series_s: float = 600.0,
        with_packets: bool = False,
    ) -> None:
        """Start to follow a daemon, which need not run yet.

        Args:
            address: Path of the control socket, or ``http://HOST:PORT``.
            token_file: File with the token, for ``http://``.
            seconds: Time for which scans are stored.
            most_bytes: Most memory of stored scans.
            status_hz: Requests for the state a second, 0.1 to 10.
            labels_hz: Scans of each sensor a second, at most, that get ``instance`` and ``label``, by rendering their packets again; 0: none.
            series_s: Time of the series.
            with_packets: Whether packets are stored for ``packets``.

        Raises:
            ConfigError: the address has another form, or the token is missing or malformed.
            ValueError: an argument is out of bounds.
        """
        require(
            (0.1 <= status_hz <= 10.0, f"status_hz must be 0.1 to 10, got {status_hz}"),
            (0.0 <= labels_hz <= 100.0, f"labels_hz must be 0 to 100, got {labels_hz}"),
        )
        if address.startswith("udp:"):
            raise ConfigError(f"a view must follow a control socket or http://HOST:PORT, got {address}")
        self._client = Client(address, token_file=token_file)
        self.title = address
        self.notes: dict[str, str] = {}
        self.series = Series(seconds=series_s)
        self._status_s, self._labels_s = 1.0 / status_hz, 1.0 / labels_hz if labels_hz else 0.0
        self._packets = LatestPackets() if with_packets else None
        self._store = ScanStore(seconds=seconds, most_bytes=most_bytes)
        self._platform = PlatformPoses()
        self._mirror: RigMirror | None = None
        self._mirroring = threading.Lock()
        self._names: dict[bytes, str] = {}
        self.lost_packets = 0
        self._gaps = 0
        self._before: dict[str, _Before] = {}
        self._status: dict[str, object] | None = None
        self._health: dict[str, Any] = {}
        self._ending = threading.Event()
        self._to_label: deque[tuple[Scan, ScanPackets]] = deque()
        self._label_due_s: dict[str, float] = {}
        self._come = threading.Event()
        self._streams = SensorStreams(self._take_scan, self._store.add_sensor, self._pose)
        threads = {"view-packets": self._follow, "view-status": self._ask, **({"view-labels": self._label} if labels_hz else {})}
        self._threads = [threading.Thread(target=run, name=name, daemon=True) for name, run in threads.items()]
        for thread in self._threads:
            thread.start()

    def status(self) -> Mapping[str, object] | None:
        """Keys of the latest ``state``, and the latest ``health``; None before the first."""
        return self._status

    def object_name(self, instance: int) -> str | None:
        """Name of an object of the scene."""
        mirror = self._mirror
        return None if mirror is None else mirror.object_name(instance)

    def shapes(self, stamp_ns: int) -> Sequence[Shape] | None:
        """Objects of the scene at a UTC instant, with the changes that the daemon has taken; None where this process cannot build the scene."""
        mirror = self._mirror
        try:
            return None if mirror is None else mirror.shapes(stamp_ns - mirror.utc_epoch_ns)
        except HilsimError as error:
            self.notes["scene"] = str(error)
            return None

    def truth(self, scan: Scan, index: int) -> Mapping[str, object]:
        """Ground truth of a point, by rendering its packet again.

        Args:
            scan: Scan of this feed that is still stored.
            index: Place of the point in ``scan.points``.

        Returns:
            ``object`` (name or None), ``object_id``, ``label``, ``material``, ``cause``, ``range_m`` (true), ``measured_range_m``, ``incidence_deg``,
            ``echo`` of ``echoes``, ``channel``, ``packet``, ``rig_s``, ``sensor_position_m``, ``sensor_wxyz``; only ``reason`` where it is not known.
        """
        packets = self._store.packets(scan)
        if packets is None:
            return {"reason": "the packets of the scan are not stored any more"}
        try:
            mirror = self._look_at_rig()
            if mirror is None or mirror.number(scan.sensor) is None:
                return {"reason": f"{scan.sensor} must be an emulated sensor whose rig can be built here"}
            if mirror.reason:
                return {"reason": mirror.reason}
            found = row_of_point(scan, packets, mirror, index)
        except HilsimError as error:
            return {"reason": str(error)}
        if found is None:
            return {"reason": _NOT_FOUND}
        return {**mirror.described(*found), "measured_range_m": float(scan.points["range"][index])}

    def close(self) -> None:
        """End the threads and the connection."""
        self._ending.set()
        self._come.set()
        for thread in self._threads:
            thread.join(5.0)

    # -- packets -----------------------------------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        while not self._ending.is_set():
            try:
                self._look_at_rig()
                with self._client.packets() as source:
                    self.notes.pop("connection", None)
                    self._streams.reset()
                    self._read(source)
            except HilsimError as error:
                self.notes["connection"] = str(error)
            self._ending.wait(_AGAIN_S)

    def _read(self, source: PacketSource) -> None:
        """Decode packets until the connection ends; scans of which the daemon left packets out are dropped as a whole."""
        pieces, lost = PcapPieces(), 0
        while not self._ending.is_set() and (data := self._gathered(source)) != b"":
            for batch in pieces.add(data or b""):
                if pieces.lost > lost:
                    self.lost_packets += pieces.lost - lost
                    lost = pieces.lost
                    self._gaps += 1
                    self._streams.reset()
                self._sort(batch)

    def _gathered(self, source: PacketSource) -> bytes | None:
        """Read what comes within ``_BATCH_S``; returns as ``PacketSource.read``."""
        first = source.read(_READ_S)
        if not first:
            return first
        pieces, until_s = [first], time.monotonic() + _BATCH_S
        while (left_s := until_s - time.monotonic()) > 0 and sum(map(len, pieces)) < PACKET_STREAM_BYTES.bound and (more := source.read(left_s)):
            pieces.append(more)
        return b"".join(pieces)

    def _sort(self, batch: DatagramArrays) -> None:
        """Give datagrams to the decoders of their sensors."""
        keys = batch.data[batch.start[:, None] - _KEY_BEGIN + np.arange(_KEY_BYTES)]
        different, which = np.unique(np.ascontiguousarray(keys).view(f"V{_KEY_BYTES}").reshape(-1), return_inverse=True)
        for number, key in enumerate(different):
            name = self._names.get(key.tobytes())
            if name is None:
                self._look_at_rig()
                name = self._names.setdefault(key.tobytes(), socket.inet_ntoa(key.tobytes()[:4]))
            self._add(name, batch, np.flatnonzero(which == number))

    def _pose(self, sensor: str, stamp_ns: int) -> _Pose:
        """Pose of a sensor: by the rig's own tracks, or that of the platform that the daemon reports."""
        mirror = self._mirror
        if mirror is None:
            return (0.0, 0.0, 0.0), IDENTITY_WXYZ
        rig_ns = stamp_ns - mirror.utc_epoch_ns
        pose = mirror.pose(sensor, rig_ns)
        if pose is None and mirror.is_carried_live and (body := self._platform.at(rig_ns)) is not None:
            pose = mirror.mounted(sensor, body)
        return ((0.0, 0.0, 0.0), IDENTITY_WXYZ) if pose is None else (pose.position_m, pose.orientation)

    def _count(self, scan: Scan) -> None:
        """Count a scan, and those that are missing before it where packets were left out."""
        before = self._before.get(scan.sensor, _Before(scan.stamp_ns, 0, self._gaps))
        step_ns = scan.stamp_ns - before.stamp_ns
        self.shown_scans += 1
        if before.gaps == self._gaps:
            before = before._replace(period_ns=step_ns)
        elif before.period_ns > 0:
            self.lost_scans += max(round(step_ns / before.period_ns) - 1, 0)
        self._before[scan.sensor] = before._replace(stamp_ns=scan.stamp_ns, gaps=self._gaps)

    def _take_scan(self, scan: Scan, packets: ScanPackets) -> None:
        self._count(scan)
        if self._labels_s:
            self._to_label.append((scan, packets))
            self._come.set()
        else:
            self._store.add(scan, packets)

    # -- labels ------------------------------------------------------------------------------------------------------------------------

    def _label(self) -> None:
        """Publish the scans in their order, some of them with labels."""
        with ThreadPoolExecutor(1, thread_name_prefix="view-truth") as pool:
            running: Future[Scan] | None = None
            while not self._ending.is_set():
                self._come.wait(_READ_S)
                self._come.clear()
                while self._to_label:
                    scan, packets = self._to_label.popleft()
                    now_s = time.monotonic()
                    is_free = running is None or running.done()
                    if is_free and now_s >= self._label_due_s.get(scan.sensor, 0.0) and len(self._to_label) <= _BACKLOG:
                        self._label_due_s[scan.sensor] = now_s + self._labels_s
                        running = pool.submit(self._labelled, scan, packets)
                        with suppress(TimeoutError):  # compiling kernels takes longer: the scan is published without labels
                            scan = running.result(_LABEL_WAIT_S)
                    self._store.add(scan, packets)

    def _labelled(self, scan: Scan, packets: ScanPackets) -> Scan:
        try:
            mirror = self._mirror
            found = origins(scan, packets, mirror) if mirror is not None else None
        except HilsimError as error:
            self.notes["labels"] = str(error)
            return scan
        return scan if found is None else with_origins(scan, *found)

    # -- the daemon's own answers ------------------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        """Ask for the state, and less often for the health and the rig."""
        looked_s = float("-inf")
        while not self._ending.wait(self._status_s):
            try:
                if time.monotonic() - looked_s >= _AGAIN_S:
                    looked_s = time.monotonic()
                    self._health = self._client.ask({"do": "health"})
                    if self._mirror is not None:
                        self._look_at_rig()
                state = self._client.ask({"do": "state"})
            except HilsimError as error:
                self.notes["status"] = str(error)
                continue
            self.notes.pop("status", None)
            self._platform.add(state)
            self._status = {**state, "health": self._health}
            self.series.add(self._status)

    def _look_at_rig(self) -> RigMirror | None:
        """Ask for the rig, and build it again if it has changed.

        Raises:
            TransmitError: the daemon does not answer.
        """
        with self._mirroring:
            answer = self._client.ask({"do": "rig"})
            self._names = self._names | _names_of(answer["flows"])
            self.title = f"{answer['name']} ({self._client.address})"
            if self._mirror is None or self._mirror.key != key_of(answer):
                try:
                    self._mirror = RigMirror(answer)
                    self.notes.pop("rig", None)
                except HilsimError as error:
                    self.notes["rig"] = str(error)
                else:
                    self._streams.use_metadata(known_metadata(self._mirror.metadata()))
                    if self._mirror.reason:
                        self.notes["rig"] = self._mirror.reason
            return self._mirror


def _names_of(flows: Mapping[str, Mapping[str, Any]]) -> dict[bytes, str]:
    """Names of sensors by the addresses of their packets; a replay of several sensors has a name for each source."""
    sources: dict[str, set[str]] = defaultdict(set)
    for name, key in flows.items():
        sources[name.rpartition("/")[0]].add(str(key["source"]))
    found = {}
    for name, key in flows.items():
        sensor = name.rpartition("/")[0]
        text = sensor if len(sources[sensor]) == 1 else f"{sensor} {key['source']}"
        addresses = socket.inet_aton(str(key["source"])) + socket.inet_aton(str(key["destination"]))
        found[addresses + int(key["source_port"]).to_bytes(2, "big") + int(key["destination_port"]).to_bytes(2, "big")] = text
    return found
