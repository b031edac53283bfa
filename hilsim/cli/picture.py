"""``hilsim picture``: draw one scan as an image."""

import asyncio
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy.typing as npt

from hilsim.analysis.picture.draw import draw_scan
from hilsim.analysis.picture.fan import FanScan, draw_fan
from hilsim.analysis.picture.scales import check_picture_path
from hilsim.analysis.picture.scan import Scan, first_scan, geometry_of_packets, packets_for_one_turn
from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.live import Listener
from hilsim.capture.pcap import CaptureFile
from hilsim.capture.sensor_names import SensorNames
from hilsim.cli.addresses import Address, HostPort
from hilsim.cli.outputs import ImageFile, metadata_option
from hilsim.cli.rigs import loaded
from hilsim.config.parse import parse_table
from hilsim.config.places import SDF_SUFFIXES, rig_path
from hilsim.config.profiles import find_profile, read_profile
from hilsim.config.rig import Rig
from hilsim.errors import CaptureError
from hilsim.families.cepton.picture import ImageScan, draw_image_scan, first_image_scan
from hilsim.families.cepton.protocol.stdv import STDV_SIGNATURE, frame_parities, read_stdv_header
from hilsim.families.ouster.metadata_files import OusterMetadata, given_metadata, packet_size, required_metadata
from hilsim.families.ouster.picture import FrameGatherer, FrameScan, draw_frame
from hilsim.families.ouster.protocol.recognition import is_lidar_packet
from hilsim.families.velodyne.protocol.data import DATA_PACKET_SIZE, decode_data_packets
from hilsim.families.velodyne.protocol.geometry import FiringGeometry
from hilsim.families.velodyne.protocol.models import BY_NAME
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.families.velodyne.stream import stacked_packets


@click.command()
@click.argument("source", required=False)
@click.option("--listen", type=HostPort(), help="Use the packets that arrive at HOST:PORT instead of a rig or capture.")
@click.option("-o", "--output", type=ImageFile(), required=True, help="Image to write: .png, .svg or .pdf.")
@click.option("--sensor", default="", help="Name of the sensor in a rig, or ADDRESS or ADDRESS:PORT of one in a capture. Default: the first.")
@click.option("--model", default="", help="Model (HDL-32E, VLP-16 ...) or profile. Default: recognised from the packets.")
@metadata_option
@click.option("--at-s", type=click.FloatRange(0.0), default=0.0, show_default=True, help="Time into the rig or capture.")
@click.option("--extent-m", type=click.FloatRange(1.0, 300.0), default=None, help="Half width of the view from above.")
@click.option("--timeout-s", type=click.FloatRange(0.1), default=5.0, show_default=True, help="Longest wait for live packets.")
def picture(
    *,
    source: str | None,
    listen: Address | None,
    output: Path,
    sensor: str,
    model: str,
    metadata: tuple[Path, ...],
    at_s: float,
    extent_m: float | None,
    timeout_s: float,
) -> None:
    """Draw one scan of SOURCE (a rig or a capture) or of a live stream: images of range and reflectivity, and the view from above.

    Of an Ouster sensor also images of signal and near infrared, as far as its profile has them.
    """
    if (source is None) == (listen is None):
        raise click.UsageError("give either SOURCE (a rig or a capture) or --listen HOST:PORT")
    check_picture_path(output)
    scan: Scan | ImageScan | FanScan | FrameScan
    if listen is not None:
        title = f"live at {listen[0]}:{listen[1]}"
        gathered = asyncio.run(_live(listen, Gathered(sensor, given_metadata(metadata)), timeout_s))
        scan, title = _scan(gathered, model, title), f"{title}, {gathered.sensor}"
    elif source is not None and (Path(source).suffix in {".toml", *SDF_SUFFIXES} or not Path(source).exists()):
        title = f"{source}, {at_s:g} s"
        scan, named = _from_rig(source, sensor, at_s)
        title = f"{title}, {named}"
    else:
        title = f"{source}, {at_s:g} s"
        gathered = _captured(Path(source or ""), Gathered(sensor, given_metadata(metadata, Path(source or ""))), at_s)
        scan, title = _scan(gathered, model, title), f"{title}, {gathered.sensor}"
    if isinstance(scan, FanScan):
        draw_fan(scan, output, title=title, extent_m=extent_m)
        click.echo(f"{output}: {scan.range_m.size:,} rays, {scan.returns:,} returns")
    elif isinstance(scan, FrameScan):
        draw_frame(scan, output, title=title, extent_m=extent_m)
        click.echo(f"{output}: {scan.sensor}, {scan.range_m.size:,} pixels, {scan.returns:,} returns")
        if scan.absent_columns:
            click.echo(f"note: {scan.absent_columns} columns of the frame are missing: packets were lost on the way, or the capture ends", err=True)
    elif isinstance(scan, ImageScan):
        draw_image_scan(scan, output, title=title, extent_m=extent_m)
        click.echo(f"{output}: {scan.count:,} points, {len(scan.points_m):,} returns")
    else:
        draw_scan(scan, output, title=title, extent_m=extent_m)
        click.echo(f"{output}: {scan.model}, {scan.range_m.size:,} firings, {scan.returns:,} returns")
        if scan.missing > _TOLD_MISSING:
            click.echo(
                f"note: {scan.missing:.0%} of the turn is missing: the sensor did not fire there, or packets were lost on the way (a busy machine?)",
                err=True,
            )


def _geometry(packets: npt.NDArray[Any], model: str) -> FiringGeometry:
    """Geometry of the model that the user names (a known one, or a profile), or that the packets contain.

    Raises:
        CaptureError: the packets contain no known model.
        ConfigError: no profile has that name, or its sensor does not turn.
    """
    if not model:
        return geometry_of_packets(packets)
    named = {known.name.casefold(): known for known in BY_NAME.values()}
    if model.casefold() in named:
        return named[model.casefold()].geometry
    path = find_profile("sensors", model, Path.cwd())
    return parse_table(VelodyneSpec, read_profile(path), str(path)).geometry


def _scan(gathered: "Gathered", model: str, where: str) -> Scan | ImageScan | FrameScan:
    if gathered.frame is not None:
        return gathered.frame.scan()
    payloads = gathered.payloads
    if not payloads:
        older = "; its Cepton STDT points are of an older generation, whose format is not public" if gathered.older else ""
        of_sensor = f" of {gathered.sensor}" if gathered.sensor else ""
        raise CaptureError(
            f"{where}: no Velodyne data packets (1206 bytes of UDP payload), no Cepton STDV and no Ouster lidar packets{of_sensor} found{older}"
        )
    if payloads[0].startswith(STDV_SIGNATURE):
        return first_image_scan(payloads)
    packets = stacked_packets(payloads)
    return first_scan(packets, _geometry(packets, model))


@dataclass
class Gathered:
    """Data packets of the chosen sensor, or of the first one, all of the kind of its first packet.

    Attributes:
        sensor: Address of the sensor, or serial number of an Ouster sensor; empty until it is known.
        metadata: Metadata of Ouster sensors.
        payloads: Payloads of the packets.
        older: Number of packets of Cepton's older generation.
        frame: Packets of an Ouster sensor; None if it is none.
    """

    sensor: str
    metadata: OusterMetadata = field(default_factory=OusterMetadata)
    payloads: list[bytes] = field(default_factory=list)
    older: int = 0
    frame: FrameGatherer | None = None
    _names: SensorNames = field(init=False)
    _parities: list[int] = field(default_factory=list)
    _passages: int = 0
    _azimuth_cdeg: int = -1

    def __post_init__(self) -> None:
        self._names = SensorNames(self.sensor)

    def take(self, datagram: CapturedDatagram) -> None:
        """Add a datagram if it belongs to the sensor.

        Raises:
            CaptureError: there are no valid metadata of the Ouster sensor.
        """
        if not self.payloads and is_lidar_packet(datagram.payload):
            self._take_ouster(datagram)
            return
        if self.frame is not None:
            return
        is_points = datagram.payload.startswith(STDV_SIGNATURE)
        if not is_points and len(datagram.payload) != DATA_PACKET_SIZE:
            self.older += datagram.payload.startswith(b"STDT")
            return
        name = self._names.of(datagram)
        self.sensor = self.sensor or name
        if name != self.sensor or (self.payloads and is_points != self.payloads[0].startswith(STDV_SIGNATURE)):
            return
        self.payloads.append(datagram.payload)
        if not is_points:
            azimuth_cdeg = int.from_bytes(datagram.payload[2:4], "little")
            self._passages += azimuth_cdeg < self._azimuth_cdeg
            self._azimuth_cdeg = azimuth_cdeg
        header = read_stdv_header(datagram.payload) if is_points else None
        for parity in frame_parities(datagram.payload, header) if header else b"":
            if not self._parities or parity != self._parities[-1]:
                self._parities.append(parity)

    def _take_ouster(self, datagram: CapturedDatagram) -> None:
        identity = self.metadata.identify(datagram.payload)
        names = self._names.of(datagram), str(identity.serial)
        if self.sensor not in {"", *names}:
            return
        if self.frame is None:
            self.frame = FrameGatherer(required_metadata(identity, datagram.payload, names[0]))
            self.sensor = self.sensor or names[0]
        if identity.metadata is self.frame.sensor and packet_size(self.frame.sensor) == len(datagram.payload):
            self.frame.take(datagram.payload)

    def is_enough(self) -> bool:
        """Whether the packets contain a whole frame, turn or image scan, of the latter two with the packets before and after it."""
        if self.frame is not None:
            return self.frame.is_whole
        return self._passages >= _PASSAGES_OF_A_TURN or len(self._parities) >= _PARITIES_OF_A_SCAN or len(self.payloads) >= _MOST_PACKETS


_PARITIES_OF_A_SCAN = 3
_PASSAGES_OF_A_TURN = 3
"""Number of passages of azimuth 0, by packets' first azimuths, between which two turns are complete."""
_TOLD_MISSING = 0.02
"""Missing share of a turn that is reported: whole turns of five real captures and of hilsim lack at most 0.13 %, and one VLP-16 packet is 1 % or more."""
_MOST_PACKETS = 20_000
"""Largest number of packets: a VLS-128 in dual mode at 300 rpm sends 3618 packets a turn; an image scan may have any length."""


def _captured(path: Path, gathered: Gathered, at_s: float) -> Gathered:
    start_ns: int | None = None
    for datagram in CaptureFile(path):
        if start_ns is None:
            start_ns = datagram.host_stamp_ns
        if datagram.host_stamp_ns - start_ns >= at_s * 1e9:
            gathered.take(datagram)
        if gathered.is_enough():
            break
    return gathered


async def _live(address: Address, gathered: Gathered, timeout_s: float) -> Gathered:
    async def collect() -> None:
        async with Listener(host=address[0], ports=(address[1],)) as listener:
            async for datagram in listener:
                gathered.take(datagram)
                if gathered.is_enough():
                    return

    try:
        async with asyncio.timeout(timeout_s):
            await collect()
    except TimeoutError:
        if not gathered.payloads and gathered.frame is None:
            raise CaptureError(
                f"{address[0]}:{address[1]}: no Velodyne data packets, no Cepton STDV and no Ouster lidar packets in {timeout_s:g} s;"
                " is a sensor sending here (hilsim doctor names the usual causes)?"
            ) from None
    return gathered


def _from_rig(source: str, sensor: str, at_s: float) -> tuple[Scan | ImageScan | FanScan, str]:
    """Scan of a sensor, and its title."""
    from hilsim.assembly.build import build_lidar, build_scenery  # noqa: PLC0415 - compiles kernels
    from hilsim.sensor.head import mean_rate_rpm  # noqa: PLC0415

    rig = loaded(rig_path(source))
    names: list[Any] = [entry.name for entry in rig.spec.sensor]
    if not names and rig.spec.gazebo is not None:
        return _of_gazebo(rig, sensor, at_s)
    if not names:
        raise CaptureError(f"{source}: must have a sensor for a picture, got none (for a replay, draw a picture of its capture)")
    if sensor and sensor not in names:
        raise CaptureError(f'{source}: sensor must be one of {", ".join(names)}, got "{sensor}"')
    sensor = sensor or names[0]
    lidar = build_lidar(rig, names.index(sensor), build_scenery(rig), utc_epoch_ns=0, frames=False)
    spec, first = lidar.setting.spec, lidar.first_data_packet(round(at_s * 1e9))
    if isinstance(spec, VelodyneSpec):
        count = packets_for_one_turn(lidar.setting.packet_rate_hz, mean_rate_rpm(lidar.setting.setup))
        return first_scan(decode_data_packets(lidar.data_packets(first, count).payload), spec.geometry), sensor
    packets = lidar.data_packets(first, math.ceil(2e-9 * lidar.setting.family.scan_ns * lidar.setting.packet_rate_hz) + 2)
    return first_image_scan([row.tobytes() for row in packets.payload]), f"{sensor} ({spec.model})"


def _of_gazebo(rig: Rig, sensor: str, at_s: float) -> tuple[FanScan, str]:
    """Newest measurement at a time of a lidar of a rig's SDF file, and its title."""
    from hilsim.assembly.build import build_scenery  # noqa: PLC0415 - compiles kernels
    from hilsim.assembly.gazebo_lidars import gazebo_lidars  # noqa: PLC0415

    lidars = {lidar.spec.name: lidar for lidar in gazebo_lidars(rig, build_scenery(rig))}
    if sensor and sensor not in lidars:
        raise CaptureError(f'{rig.path}: sensor must be one of {", ".join(lidars)}, got "{sensor}"')
    name = sensor or next(iter(lidars))
    lidar = lidars[name]
    azimuth_rad, elevation_rad = lidar.angles_rad
    ranges_m = lidar.ranges_m(round(at_s * 1e9) // lidar.period_ns * lidar.period_ns)
    return FanScan(range_m=ranges_m.reshape(len(elevation_rad), -1), azimuth_rad=azimuth_rad, elevation_rad=elevation_rad), name
