"""One frame of an Ouster sensor as images: range, reflectivity, signal and near infrared, each row rotated to its azimuth, and its picture."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.analysis.picture.scales import add_range_bar, add_rings, range_limits_m, range_norm, write_picture
from hilsim.errors import CaptureError
from hilsim.families.ouster.points import OusterDecoder, stacked_payloads
from hilsim.families.ouster.protocol.geometry import MM_PER_M
from hilsim.families.ouster.protocol.headers import COLUMNS, HEADERS, VALID_STATUS, HeaderField
from hilsim.families.ouster.protocol.metadata import SensorMetadata
from hilsim.families.ouster.protocol.profiles import FieldKind
from hilsim.families.ouster.protocol.recognition import FORMS
from hilsim.families.ouster.stream import sent_packets

_DIFFUSE_LIMIT = 100
_FARTHEST_M = 200.0
_BRIGHT = 0.98
_STRIP_INCHES, _STRIP_INCHES_A_ROW = 1.4, 0.014
_NO_RETURN, _EMPTY = "0.85", "white"


@dataclass(frozen=True, kw_only=True)
class FrameScan:
    """Images of one frame: the first returns, row 0 the top beam; columns are azimuths, because each row is rotated by ``pixel_shift_by_row``.

    Attributes:
        sensor: Product line, mode and profile.
        range_m: ``float64[rows, columns]``; 0 without a return, NaN where nothing was measured.
        reflectivity: ``float64[rows, columns]``, likewise.
        signal: ``float64[rows, columns]``, photons; None in profiles without.
        near_ir: ``float64[rows, columns]``, photons, of pixels without a return too; None in profiles without.
        points_m: ``float64[n, 3]``, positions of all returns (x right, y forward, z up).
        point_reflectivity: ``uint8[n]``, their reflectivity.
        absent_columns: Columns within the window that are missing or not valid.
    """

    sensor: str
    range_m: npt.NDArray[np.float64]
    reflectivity: npt.NDArray[np.float64]
    signal: npt.NDArray[np.float64] | None
    near_ir: npt.NDArray[np.float64] | None
    points_m: npt.NDArray[np.float64]
    point_reflectivity: npt.NDArray[np.uint8]
    absent_columns: int

    @property
    def returns(self) -> int:
        """Number of returns."""
        return len(self.points_m)


class FrameGatherer:
    """Packets of one sensor until one frame is whole; else those of the frame with the most."""

    def __init__(self, sensor: SensorMetadata) -> None:
        self.sensor = sensor
        sent = sent_packets(sensor)
        self._sent = 0 if sent is None else sent.size
        header = sensor.profile.header
        self._place = HEADERS[header].get(HeaderField.FRAME_ID) or COLUMNS[header].frame_id
        self._frame: int | None = None
        self._packets: dict[int, bytes] = {}
        self._fullest: dict[int, bytes] = {}

    def take(self, payload: bytes) -> None:
        """Add a lidar packet of the sensor's size, unless a frame is whole."""
        if self.is_whole:
            return
        place = self._place
        frame = 0 if place is None else int.from_bytes(payload[place.offset : place.offset + place.bits // 8], "little")
        if frame != self._frame:
            self._frame, self._packets = frame, {}
        form = FORMS[len(payload)]
        first = int.from_bytes(payload[form.first_column + 8 : form.first_column + 10], "little")
        self._packets[first] = payload
        if len(self._packets) > len(self._fullest):
            self._fullest = self._packets

    @property
    def is_whole(self) -> bool:
        """Whether all packets of a frame are here."""
        return len(self._fullest) >= self._sent

    def scan(self) -> FrameScan:
        """Images of the frame.

        Raises:
            CaptureError: there is no packet.
        """
        if not self._fullest:
            raise CaptureError(f"a picture needs lidar packets of {self.sensor.prod_line}, got none")
        return frame_scan(OusterDecoder(self.sensor), stacked_payloads(list(self._fullest.values())))


def frame_scan(decoder: OusterDecoder, payloads: npt.NDArray[np.uint8]) -> FrameScan:
    """Images of the packets ``uint8[n, size]`` of one frame."""
    sensor = decoder.sensor
    packets = decoder.packets(payloads)
    ids = packets.columns["measurement_id"].astype(np.int64).ravel()
    is_valid = (packets.columns["status"].ravel() & VALID_STATUS != 0) & (ids < sensor.columns_per_frame)
    first, last = sensor.window
    inside = (last - first) % sensor.columns_per_frame + 1

    def image(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """``[n, 1, 16, beams]`` as rows and columns, with the rows rotated."""
        staggered = np.full((sensor.beams.channels, sensor.columns_per_frame), np.nan)
        staggered[:, ids[is_valid]] = values[:, 0].reshape(len(ids), -1)[is_valid].T
        return np.stack([np.roll(row, shift) for row, shift in zip(staggered, sensor.pixel_shift_by_row, strict=True)])

    points = decoder.points(payloads)
    profile, pixels = sensor.profile, packets.pixels
    return FrameScan(
        sensor=f"{sensor.prod_line}, {sensor.lidar_mode}, {sensor.lidar_profile}",
        range_m=image(pixels.range_mm) / MM_PER_M,
        reflectivity=image(pixels.reflectivity),
        signal=image(pixels.signal) if profile.carries(FieldKind.SIGNAL) else None,
        near_ir=image(pixels.near_ir) if profile.carries(FieldKind.NEAR_IR) else None,
        points_m=np.stack([points[axis] for axis in "xyz"], axis=1).astype(np.float64),
        point_reflectivity=points["intensity"].copy(),
        absent_columns=inside - int(np.unique(ids[is_valid]).size),
    )


def draw_frame(scan: FrameScan, path: Path, *, title: str, extent_m: float | None = None) -> None:
    """Draw a frame to a file: an image for each field, and the view from above coloured by reflectivity.

    Args:
        scan: Frame to draw.
        path: PNG (or SVG, PDF) file, replaced.
        title: First line of the picture.
        extent_m: Half width of the view from above; by default that with 98 % of the returns.

    Raises:
        CaptureError: the file cannot be written.
    """
    # matplotlib takes half a second to import, so only commands that draw import it.
    from matplotlib.figure import Figure  # noqa: PLC0415

    fields = [field for field in (scan.signal, scan.near_ir) if field is not None]
    strip_inches = _STRIP_INCHES + _STRIP_INCHES_A_ROW * len(scan.range_m)
    heights = (*[strip_inches] * (2 + len(fields)), 10.8)
    figure = Figure(figsize=(12, sum(heights)), dpi=110, layout="constrained")
    figure.suptitle(f"{title}\n{scan.sensor}, {scan.returns:,} returns", fontsize=12)
    grid = figure.add_gridspec(len(heights), 1, height_ratios=heights)
    limits_m = range_limits_m(scan.range_m[scan.range_m > 0])
    axes, drawn = _strip(figure, grid[0], scan, scan.range_m, cmap="viridis", norm=range_norm(limits_m))
    add_range_bar(figure, drawn, axes, limits_m)
    axes, drawn = _strip(figure, grid[1], scan, scan.reflectivity, cmap="magma", vmin=0, vmax=_DIFFUSE_LIMIT)
    figure.colorbar(drawn, ax=axes, label="reflectivity", pad=0.01, extend="max")
    row = 2
    for values, label, needs_return in ((scan.signal, "signal (photons)", True), (scan.near_ir, "near infrared (photons)", False)):
        if values is None:
            continue
        axes, drawn = _strip(figure, grid[row], scan, values, needs_return=needs_return, cmap="gray", vmin=0, vmax=_bright(values))
        figure.colorbar(drawn, ax=axes, label=label, pad=0.01, extend="max")
        row += 1
    axes.set_xlabel("column (column 0 looks back to the connector, the head turns clockwise; grey: no return, white: not measured)")
    _above(figure, grid[row], scan, extent_m)
    write_picture(figure, path)


def _bright(values: npt.NDArray[np.float64]) -> float:
    seen = values[np.isfinite(values)]
    return max(float(np.quantile(seen, _BRIGHT)), 1.0) if seen.size else 1.0


def _strip(figure: Any, cell: Any, scan: FrameScan, values: npt.NDArray[np.float64], *, needs_return: bool = True, **colours: Any) -> tuple[Any, Any]:
    axes = figure.add_subplot(cell)
    axes.set_facecolor(_EMPTY)
    placed: dict[str, Any] = {"aspect": "auto", "interpolation": "nearest"}
    if needs_return:
        axes.imshow(np.where(scan.range_m == 0.0, float(_NO_RETURN), np.nan), cmap="gray", vmin=0, vmax=1, **placed)
    drawn = axes.imshow(np.where(scan.range_m > 0.0, values, np.nan) if needs_return else values, **colours, **placed)
    axes.set_ylabel("row")
    return axes, drawn


def _above(figure: Any, cell: Any, scan: FrameScan, extent_m: float | None) -> None:
    axes = figure.add_subplot(cell)
    axes.set_facecolor("0.08")
    points = scan.points_m
    order = np.argsort(points[:, 2])
    shown = np.minimum(scan.point_reflectivity[order], _DIFFUSE_LIMIT)
    drawn = axes.scatter(points[order, 0], points[order, 1], c=shown, s=1.2, cmap="turbo", vmin=0, vmax=_DIFFUSE_LIMIT, linewidths=0)
    half = extent_m or min(float(np.quantile(np.abs(points[:, :2]), 0.98)) * 1.1 if points.size else 10.0, _FARTHEST_M)
    add_rings(axes, half)
    axes.plot(0, 0, marker="^", color="white", markersize=7)
    axes.set_xlim(-half, half)
    axes.set_ylim(-half, half)
    axes.set_aspect("equal")
    axes.set_xlabel("right of the sensor (m)")
    axes.set_ylabel("ahead of the sensor (m)")
    figure.colorbar(drawn, ax=axes, label="reflectivity (0-100 diffuse, above: retro-reflector)", pad=0.01, shrink=0.8, extend="max")
