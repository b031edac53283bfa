"""All statistics of one sensor's stream, gathered packet by packet in memory that does not grow with the stream."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from hilsim.analysis.comparison.azimuth import AzimuthStatistics
from hilsim.analysis.comparison.blocks import packet_block
from hilsim.analysis.comparison.dual import DualStatistics
from hilsim.analysis.comparison.edges import EdgeStatistics
from hilsim.analysis.comparison.firings import packet_firings
from hilsim.analysis.comparison.grid import GridStatistics
from hilsim.analysis.comparison.histogram import known_or_none
from hilsim.analysis.comparison.noise import CLASSES, NoiseStatistics
from hilsim.analysis.comparison.patches import PatchStatistics
from hilsim.analysis.comparison.returns import ReturnStatistics
from hilsim.analysis.comparison.spacing import SpacingStatistics
from hilsim.analysis.comparison.stamps import StampStatistics
from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.sensor_names import SensorNames
from hilsim.errors import CaptureError
from hilsim.families.velodyne.protocol.data import Product, ReturnMode
from hilsim.families.velodyne.protocol.models import MODELS, VLS_128, Model, identify_model, vls_128_variant
from hilsim.families.velodyne.stream import LastPacket, packet_run, stacked_packets
from hilsim.protocols.recognise import PacketKind, recognise

BLOCK_PACKETS = 1024
FEWEST_PACKETS = 50  # smallest number of packets for statistics
_MOST_RATE_RATIO = 1.1  # a real unit's rate changes by less than 3 % from turn to turn


class StreamStatistics:
    """Statistics of data packets of one model and one return mode.

    Attributes:
        source: Address of the sensor.
        model: Model of the sensor.
        return_mode: Return mode by the packets' factory byte.
        product: Product byte of the packets.
        other_packets: Number of data packets with other factory bytes, which are ignored.
        spacing: Statistics of arrival at the host.
        azimuth: Statistics of azimuth steps.
        stamps: Statistics of time stamps.
        returns: Statistics of reflectivity, distances and empty records.
        noise: Range noise by reflectivity.
        grid: Grid of the distance codes, and equal bytes of neighbouring firings.
        patches: Byte noise and colour of range noise on smooth surfaces.
        edges: Depth edges, single empty firings and isolated returns.
        dual: Statistics of pairs of returns; None outside dual mode.
    """

    def __init__(self, source: str, model: Model, return_mode: ReturnMode, product: int) -> None:
        self.source = source
        self.model = model
        self.return_mode = return_mode
        self.product = product
        self.other_packets = 0
        self.spacing = SpacingStatistics()
        self.azimuth = AzimuthStatistics()
        self.stamps = StampStatistics()
        self.returns = ReturnStatistics(model.channels)
        self.noise = NoiseStatistics(model.channels)
        self.grid = GridStatistics(model.channels)
        self.patches = PatchStatistics()
        self.edges = EdgeStatistics()
        self.dual = DualStatistics() if return_mode.is_dual else None
        self._before: LastPacket | None = None
        self._before_ns = 0

    def __str__(self) -> str:
        return f"{self.model.name}, {self.return_mode.words}, {self.spacing.packets:,} packets in {self.spacing.duration_s:.3f} s"

    def to_json(self) -> dict[str, Any]:
        """Plain values, with all distributions; None for unknown figures."""
        returns = self.returns
        histograms = {
            "azimuth_increments_cdeg": self.azimuth.increments,
            "stamp_residuals_us": self.stamps.residuals,
            "stamp_steps_us": self.stamps.steps,
            "spacing_us": self.spacing.gaps,
            "reflectivity": returns.reflectivity,
            "ranges_m": returns.ranges_m,
        }
        if self.dual is not None:
            histograms["dual_separations_m"] = self.dual.separations_m
        return {
            "sensor": self.source,
            "model": self.model.name,
            "return_mode": int(self.return_mode),
            "packets": self.spacing.packets,
            "other_packets": self.other_packets,
            "duration_s": self.spacing.duration_s,
            "histograms": {key: histogram.to_json() for key, histogram in histograms.items()},
            "lasers": [
                {
                    "firings": int(firings),
                    "empty_share": known_or_none(float(share)),
                    "baseline": known_or_none(float(baseline)),
                    "empty_bytes": {str(byte): int(counts[byte]) for byte in np.flatnonzero(counts)},
                }
                for firings, share, baseline, counts in zip(returns.firings, returns.empty_shares, returns.baseline, returns.empty_bytes, strict=True)
            ],
            "noise": [
                {"from_byte": start, "to_byte": stop - 1, "sigma_mm": known_or_none(float(sigma)), "windows": int(windows)}
                for (start, stop), sigma, windows in zip(CLASSES, self.noise.sigma_mm, self.noise.windows, strict=True)
            ],
        }

    def look(self, datagrams: list[CapturedDatagram]) -> None:
        """Add data packets in the order of their arrival; those with other factory bytes are ignored."""
        packets = stacked_packets(datagram.payload for datagram in datagrams)
        host_ns = np.array([datagram.host_stamp_ns for datagram in datagrams], dtype=np.int64)
        is_alike = (packets["return_mode"] == self.return_mode) & (packets["product"] == self.product)
        self.other_packets += int((~is_alike).sum())
        if not is_alike.any():
            return
        run, host_ns = packet_run(packets[is_alike], self._before), host_ns[is_alike]
        before_ns = self._before_ns if self._before else int(host_ns[0])
        block = packet_block(run, host_ns, before_ns, self.model, is_dual=self.dual is not None)
        self._before, self._before_ns = run.last(), int(host_ns[-1])
        for topic in (self.spacing, self.azimuth, self.stamps, self.returns, self.noise, self.dual):
            if topic is not None:
                topic.look(block)
        firings = packet_firings(block)
        for signal in (self.grid, self.patches, self.edges):
            signal.look(firings)


def gather(datagrams: Iterable[CapturedDatagram], *, name: str, sensor: str = "") -> StreamStatistics:
    """Gather the statistics of one sensor's data packets.

    Args:
        datagrams: Datagrams in the order of their arrival.
        name: Name of the stream in errors.
        sensor: Address of the sensor; optional for a single sensor.

    Raises:
        CaptureError: there are too few data packets, they come from several sensors, their model or mode is unknown, or the rotation rate changes.
    """
    statistics: StreamStatistics | None = None
    waiting: list[CapturedDatagram] = []
    packets: dict[str, int] = {}
    others: Counter[PacketKind] = Counter()
    names = SensorNames(sensor)
    for datagram in datagrams:
        kind = recognise(datagram.payload)
        if kind is not PacketKind.VELODYNE_DATA:
            others[kind] += 1
            continue
        source = names.of(datagram)
        packets[source] = packets.get(source, 0) + 1
        if source != (sensor or next(iter(packets))):
            continue
        waiting.append(datagram)
        if len(waiting) == BLOCK_PACKETS:
            statistics = statistics or _begin(waiting, name)
            statistics.look(waiting)
            waiting = []
    check_sensor(packets, sensor, name)
    if waiting:
        statistics = statistics or _begin(waiting, name)
        statistics.look(waiting)
    if statistics is None or statistics.spacing.packets < FEWEST_PACKETS:
        got = 0 if statistics is None else statistics.spacing.packets
        raise CaptureError(f"{name}: must hold at least {FEWEST_PACKETS} Velodyne data packets of one sensor and mode, got {got}{_instead(others)}")
    azimuth = statistics.azimuth
    if azimuth.fastest > _MOST_RATE_RATIO * azimuth.slowest:
        rates = f"{azimuth.slowest_rpm:.0f} to {azimuth.fastest_rpm:.0f} rpm"
        raise CaptureError(f"{name}: the rotation rate must stay the same within a capture, got {rates}: a mixture has no statistics of one sensor")
    return statistics


def _instead(others: Counter[PacketKind]) -> str:
    """Text on packets of a family without classifiers."""
    lidar = others[PacketKind.OUSTER_LIDAR]
    return (
        f"; its {lidar:,} Ouster lidar packets are not judged: there are classifiers of Velodynes only (hilsim compare A B compares them)"
        if lidar
        else ""
    )


def check_sensor(packets: dict[str, int], sensor: str, name: str) -> None:
    """Check that the sensor is one of those with packets, or the only one.

    Args:
        packets: Number of packets by address.
        sensor: Address of the sensor; empty for the only one.
        name: Name of the stream in errors.

    Raises:
        CaptureError: it is not.
    """
    senders = ", ".join(f"{address} ({count:,} packets)" for address, count in packets.items())
    if sensor and packets and sensor not in packets:
        raise CaptureError(f"{name}: the sensor must be one of {senders}, got {sensor}")
    if not sensor and len(packets) > 1:
        raise CaptureError(f"{name}: one sensor must be chosen, got {senders}")


def _begin(datagrams: list[CapturedDatagram], name: str) -> StreamStatistics:
    """Find model and mode from the first packets, by the most frequent factory bytes and the time stamps."""
    packets = stacked_packets(datagram.payload for datagram in datagrams)
    bytes_ = packets["return_mode"].astype(np.int64) * 256 + packets["product"]
    byte, product = divmod(int(np.bincount(bytes_).argmax()), 256)
    mode = ReturnMode.find(byte)
    if mode is None:
        raise CaptureError(f"{name}: the return mode must be {', '.join(f'0x{known:02x}' for known in ReturnMode)}, got 0x{byte:02x}")
    stamps = packets["timestamp"][bytes_ == byte * 256 + product].astype(np.int64)
    step_us = float(np.median(np.diff(stamps))) if len(stamps) > 1 else None
    if product == Product.VLS_128:
        if mode.is_dual:
            raise CaptureError(f"{name}: a VLS-128 must send one return of each firing, got dual mode, of which no unit was measured")
        return StreamStatistics(datagrams[0].source, vls_128_variant(step_us, is_dual=False), mode, product)
    model = identify_model(product, step_us, is_dual=mode.is_dual)
    if model is None:
        known = ", ".join(known.name for known in (*MODELS, VLS_128))
        raise CaptureError(f"{name}: the model must be {known}, got product byte 0x{product:02x}")
    return StreamStatistics(datagrams[0].source, model, mode, product)
