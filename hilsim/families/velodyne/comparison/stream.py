"""All statistics of one sensor's stream, gathered packet by packet in memory that does not grow with the stream."""

from typing import Any

import numpy as np

from hilsim.capture.datagram import CapturedDatagram
from hilsim.errors import CaptureError
from hilsim.families.velodyne.comparison.blocks import packet_block
from hilsim.families.velodyne.comparison.pace import AzimuthStatistics, StampStatistics
from hilsim.families.velodyne.comparison.returns import ReturnStatistics
from hilsim.families.velodyne.comparison.signal import EdgeStatistics, GridStatistics, PatchStatistics, packet_firings
from hilsim.families.velodyne.pairs import PairCounts
from hilsim.families.velodyne.protocol.data import ReturnMode
from hilsim.families.velodyne.protocol.models import Model
from hilsim.families.velodyne.stream import LastPacket, measured_model, packet_run, stacked_packets
from hilsim.read.analysis.comparison.histogram import Histogram
from hilsim.read.analysis.comparison.noise import CLASSES, NoiseStatistics
from hilsim.read.analysis.comparison.part import SensorStatistics

BLOCK_PACKETS = 1024
_MAX_RATE_RATIO = 1.1  # a real unit's rate changes by less than 3 % from turn to turn


class StreamStatistics(SensorStatistics):
    """Statistics of data packets of one model and one return mode.

    Attributes:
        model: Model of the sensor.
        return_mode: Return mode by the packets' factory byte.
        product: Product byte of the packets.
        azimuth: Statistics of azimuth steps.
        stamps: Statistics of time stamps.
        returns: Statistics of reflectivity, distances and empty records.
        noise: Range noise by reflectivity.
        grid: Grid of the distance codes, and equal bytes of neighbouring firings.
        patches: Byte noise and colour of range noise on smooth surfaces.
        edges: Depth edges, single empty firings and isolated returns.
    """

    family = "velodyne"
    dual: PairCounts | None

    def __init__(self, source: str, model: Model, return_mode: ReturnMode, product: int) -> None:
        super().__init__(source)
        self.model = model
        self.return_mode = return_mode
        self.product = product
        self.azimuth = AzimuthStatistics()
        self.stamps = StampStatistics()
        self.returns = ReturnStatistics(model.channels)
        self.noise = NoiseStatistics(model.channels, model.distance_unit_mm)
        self.grid = GridStatistics(channels=model.channels)
        self.patches = PatchStatistics()
        self.edges = EdgeStatistics()
        self.dual = PairCounts() if return_mode.is_dual else None
        self._before: LastPacket | None = None
        self._before_ns = 0

    def __str__(self) -> str:
        return f"{self.model.name}, {self.return_mode.words}, {self.spacing.packets:,} packets in {self.spacing.duration_s:.3f} s"

    @property
    def kind(self) -> str:
        """Model."""
        return self.model.name

    def facts(self) -> dict[str, Any]:
        """Return mode, and what is known of each laser and of each class of noise."""
        returns = self.returns
        return {
            "return_mode": int(self.return_mode),
            "lasers": [
                {
                    "firings": int(firings),
                    "empty_share": float(share),
                    "baseline": float(baseline),
                    "empty_bytes": {str(byte): int(counts[byte]) for byte in np.flatnonzero(counts)},
                }
                for firings, share, baseline, counts in zip(returns.firings, returns.empty_shares, returns.baseline, returns.empty_bytes, strict=True)
            ],
            "noise": [
                {"from_byte": start, "to_byte": stop - 1, "sigma_mm": float(sigma), "windows": int(windows)}
                for (start, stop), sigma, windows in zip(CLASSES, self.noise.sigma_mm, self.noise.windows, strict=True)
            ],
        }

    def histograms(self) -> dict[str, Histogram]:
        """Distributions by name."""
        histograms = {
            "azimuth_increments_cdeg": self.azimuth.increments,
            "stamp_residuals_us": self.stamps.residuals,
            "stamp_steps_us": self.stamps.steps,
            "spacing_us": self.spacing.gaps,
            "reflectivity": self.returns.reflectivity,
            "ranges_m": self.returns.ranges_m,
        }
        return histograms if self.dual is None else histograms | {"dual_separations_m": self.dual.separations_m}

    def check(self, name: str) -> None:
        """Check that the rotation rate stays the same.

        Args:
            name: Name of the stream in errors.

        Raises:
            CaptureError: it changes.
        """
        azimuth = self.azimuth
        if azimuth.fastest > _MAX_RATE_RATIO * azimuth.slowest:
            rates = f"{azimuth.slowest_rpm:.0f} to {azimuth.fastest_rpm:.0f} rpm"
            raise CaptureError(
                f"{name}: the rotation rate must stay the same within a capture, got {rates}: a mixture has no statistics of one sensor"
            )

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
        for topic in (self.spacing, self.azimuth, self.stamps, self.returns):
            topic.look(block)
        if self.dual is not None:
            self.dual.look(block.records, self.model.distance_unit_mm)
        records = block.records[:, :: 2 if block.is_dual else 1].reshape(-1, self.model.channels)  # in dual mode of the last return
        joined = np.full((block.is_joined.size, len(records) // block.is_joined.size), fill_value=True)
        joined[:, 0] = block.is_joined.ravel()
        self.noise.add(records["distance"], records["reflectivity"], joined.ravel())
        firings = packet_firings(block)
        for signal in (self.grid, self.patches, self.edges):
            signal.look(firings)


def begin(datagrams: list[CapturedDatagram], source: str, _metadata: Any, name: str) -> StreamStatistics:
    """Find model and mode from the first packets, by the most frequent factory bytes and the time stamps."""
    packets = stacked_packets(datagram.payload for datagram in datagrams)
    bytes_ = packets["return_mode"].astype(np.int64) * 256 + packets["product"]
    byte, product = divmod(int(np.bincount(bytes_).argmax()), 256)
    stamps = packets["timestamp"][bytes_ == byte * 256 + product].astype(np.int64)
    model, mode = measured_model(byte, product, float(np.median(np.diff(stamps))) if len(stamps) > 1 else None, name)
    return StreamStatistics(source, model, mode, product)
