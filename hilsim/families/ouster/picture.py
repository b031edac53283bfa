"""One frame of an Ouster sensor as images: range, reflectivity, signal and near infrared, each row rotated to its azimuth, and its picture."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from hilsim.emulator.setting import LidarSetting
from hilsim.errors import CaptureError
from hilsim.families.ouster.metadata_files import OusterMetadata, packet_size, required_metadata
from hilsim.families.ouster.points import OusterDecoder, emulated_decoder, stacked_payloads
from hilsim.families.ouster.protocol.geometry import MM_PER_M
from hilsim.families.ouster.protocol.headers import COLUMNS, HEADERS, VALID_STATUS, HeaderField
from hilsim.families.ouster.protocol.metadata import SensorMetadata
from hilsim.families.ouster.protocol.profiles import FieldKind
from hilsim.families.ouster.protocol.recognition import FORMS, is_lidar_packet, read_header_field
from hilsim.families.ouster.stream import sent_packets
from hilsim.read.analysis.picture.part import DIFFUSE_LIMIT, Gatherer, PicturePart, PictureScan, draw_above
from hilsim.read.analysis.picture.scales import add_range_bar, range_limits_m, range_norm

_BRIGHT = 0.98
_STRIP_INCHES, _STRIP_INCHES_A_ROW = 1.4, 0.014
_NO_RETURN, _EMPTY = "0.85", "white"


@dataclass(frozen=True, kw_only=True)
class FrameScan(PictureScan):
    """Images of one frame: the first returns, row 0 the top beam; columns are azimuths, because each row is rotated by ``pixel_shift_by_row``."""

    sensor: Annotated[str, "Product line, mode and profile."]
    range_m: Annotated[npt.NDArray[np.float64], "``float64[rows, columns]``; 0 without a return, NaN where nothing was measured."]
    reflectivity: Annotated[npt.NDArray[np.float64], "``float64[rows, columns]``, likewise."]
    signal: Annotated[npt.NDArray[np.float64] | None, "``float64[rows, columns]``, photons; None in profiles without."]
    near_ir: Annotated[
        npt.NDArray[np.float64] | None, "``float64[rows, columns]``, photons, of pixels without a return too; None in profiles without."
    ]
    points_m: Annotated[npt.NDArray[np.float64], "``float64[n, 3]``, positions of all returns (x right, y forward, z up)."]
    point_reflectivity: Annotated[npt.NDArray[np.uint8], "``uint8[n]``, their reflectivity."]
    absent_columns: Annotated[int, "Columns within the window that are missing or not valid."]

    @property
    def returns(self) -> int:
        """Number of returns."""
        return len(self.points_m)

    def __str__(self) -> str:
        return f"{self.sensor}, {self.range_m.size:,} pixels, {self.returns:,} returns"

    @property
    def subtitle(self) -> str:
        """Second line of the picture."""
        return f"{self.sensor}, {self.returns:,} returns"

    @property
    def remark(self) -> str:
        """The number of missing columns, if there are some."""
        if not self.absent_columns:
            return ""
        return f"{self.absent_columns} columns of the frame are missing: packets were lost on the way, or the capture ends"

    @property
    def heights(self) -> tuple[float, ...]:
        """Heights of the panels in inches."""
        strips = 2 + sum(field is not None for field in (self.signal, self.near_ir))
        return *[_STRIP_INCHES + _STRIP_INCHES_A_ROW * len(self.range_m)] * strips, 10.8

    def draw_panels(self, figure: Any, grid: Any, extent_m: float | None) -> None:
        """Draw an image for each field, and the view from above coloured by reflectivity."""
        limits_m = range_limits_m(self.range_m[self.range_m > 0])
        axes, drawn = _strip(figure, grid[0], self, self.range_m, cmap="viridis", norm=range_norm(limits_m))
        add_range_bar(figure, drawn, axes, limits_m)
        axes, drawn = _strip(figure, grid[1], self, self.reflectivity, cmap="magma", vmin=0, vmax=DIFFUSE_LIMIT)
        figure.colorbar(drawn, ax=axes, label="reflectivity", pad=0.01, extend="max")
        row = 2
        for values, label, needs_return in ((self.signal, "signal (photons)", True), (self.near_ir, "near infrared (photons)", False)):
            if values is None:
                continue
            axes, drawn = _strip(figure, grid[row], self, values, needs_return=needs_return, cmap="gray", vmin=0, vmax=_bright(values))
            figure.colorbar(drawn, ax=axes, label=label, pad=0.01, extend="max")
            row += 1
        axes.set_xlabel("column (column 0 looks back to the connector, the head turns clockwise; grey: no return, white: not measured)")
        draw_above(figure, grid[row], self.points_m, self.point_reflectivity, extent_m, area=1.2)


class FrameGatherer(Gatherer):
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
        """Add a lidar packet of the sensor, unless a frame is whole or the packet has another size or serial number."""
        header = self.sensor.profile.header
        is_own = read_header_field(payload, header, HeaderField.SERIAL) in {0, int(self.sensor.serial)}
        if self.is_whole or not is_own or len(payload) != packet_size(self.sensor):
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


def _name(payload: bytes, metadata: OusterMetadata | None) -> str:
    return str((metadata or OusterMetadata()).identify(payload).serial)


def _of_packet(first: bytes, metadata: OusterMetadata | None, _model: str, where: str) -> FrameGatherer:
    return FrameGatherer(required_metadata((metadata or OusterMetadata()).identify(first), first, where))


class _EmulatedFrames(FrameGatherer):
    """Packets of an emulated sensor, whose rows are longer than its lidar packets."""

    def take(self, payload: bytes) -> None:
        super().take(payload[: packet_size(self.sensor)])


def _of_setting(setting: LidarSetting) -> FrameGatherer:
    return _EmulatedFrames(emulated_decoder(setting).sensor)


PART = PicturePart(
    packets="Ouster lidar packets",
    is_points=is_lidar_packet,
    name=_name,
    of_packet=_of_packet,
    of_setting=_of_setting,
)
