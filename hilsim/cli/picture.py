"""``hilsim picture``: one scan as an image."""

import asyncio
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.live import Listener
from hilsim.capture.pcap import CaptureFile
from hilsim.cli.addresses import Address, HostPort
from hilsim.cli.outputs import ImageFile
from hilsim.cli.rigs import loaded, rig_path
from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import find_profile, parse_profile, profiles_directory
from hilsim.errors import CaptureError
from hilsim.packets.cepton_stdv import STDV_SIGNATURE, frame_parities, read_stdv_header
from hilsim.packets.velodyne_data import DATA_PACKET_SIZE, decode_data_packets
from hilsim.picture.draw import draw_scan
from hilsim.picture.image import ImageScan, draw_image_scan, first_image_scan
from hilsim.picture.scan import Scan, first_scan, packets_for_one_turn
from hilsim.sensor.velodyne_specs import VelodyneSpec


@click.command()
@click.argument("source", required=False)
@click.option("--listen", type=HostPort(), help="Take the packets that arrive at HOST:PORT instead of a rig or capture.")
@click.option("-o", "--output", type=ImageFile(), required=True, help="Image to write: .png, .svg or .pdf.")
@click.option("--sensor", default="", help="Which sensor: its name in a rig, its IPv4 address in a capture. Default: the first.")
@click.option("--model", default="", help="Model profile. Default: told by the packets.")
@click.option("--at-s", type=click.FloatRange(0.0), default=0.0, show_default=True, help="Time into the rig or capture.")
@click.option("--extent-m", type=click.FloatRange(1.0, 300.0), default=None, help="Half width of the view from above.")
@click.option("--timeout-s", type=click.FloatRange(0.1), default=5.0, show_default=True, help="How long to wait for live packets.")
def picture(
    *,
    source: str | None,
    listen: Address | None,
    output: Path,
    sensor: str,
    model: str,
    at_s: float,
    extent_m: float | None,
    timeout_s: float,
) -> None:
    """Draw one scan of SOURCE (a rig or a capture) or of a live stream: what it sees by range and by reflectivity, and the view from above."""
    if (source is None) == (listen is None):
        raise click.UsageError("give either SOURCE (a rig or a capture) or --listen HOST:PORT")
    if listen is not None:
        title = f"live at {listen[0]}:{listen[1]}"
        scan = _scan(asyncio.run(_live(listen, sensor, timeout_s)), model, title)
    elif source is not None and (source.endswith(".toml") or not Path(source).exists()):
        title = f"{source}, {at_s:g} s"
        scan = _from_rig(source, sensor, at_s)
    else:
        title = f"{source}, {at_s:g} s"
        scan = _scan(_captured(Path(source or ""), sensor, at_s), model, title)
    if isinstance(scan, ImageScan):
        draw_image_scan(scan, output, title=title, extent_m=extent_m)
        click.echo(f"{output}: {scan.count:,} points, {len(scan.points_m):,} returns")
    else:
        draw_scan(scan, output, title=title, extent_m=extent_m)
        click.echo(f"{output}: {scan.model}, {scan.range_m.size:,} firings, {scan.returns:,} returns")


def model_of(product: int) -> VelodyneSpec:
    """The shipped profile whose product byte is ``product``.

    Raises:
        CaptureError: there is none; the text lists what there is.
    """
    found = {path.stem: parse_profile(read_toml(path), str(path)) for path in sorted((profiles_directory() / "sensors").glob("*.toml"))}
    specs = {name: spec for name, spec in found.items() if isinstance(spec, VelodyneSpec)}
    for spec in specs.values():
        if spec.product == product:
            return spec
    known = ", ".join(f"{name} 0x{spec.product:02x}" for name, spec in specs.items())
    raise CaptureError(f"no profile for product byte 0x{product:02x} (there are: {known}); name one with --model")


def _scan(payloads: list[bytes], model: str, where: str) -> Scan | ImageScan:
    if not payloads:
        raise CaptureError(f"{where}: no Velodyne data packets (1206 bytes of UDP payload) and no Cepton STDV packets found")
    if payloads[0].startswith(STDV_SIGNATURE):
        return first_image_scan(payloads)
    packets = decode_data_packets(_stacked(payloads))
    if model:
        path = find_profile("sensors", model, Path.cwd())
        spec = parse_table(VelodyneSpec, read_toml(path), str(path))
    else:
        spec = model_of(int(packets["product"][0]))
    return first_scan(packets, spec)


def _stacked(payloads: list[bytes]) -> npt.NDArray[np.uint8]:
    return np.frombuffer(b"".join(payloads), np.uint8).reshape(-1, DATA_PACKET_SIZE)


@dataclass
class Gathered:
    """Data packets of the sensor that was chosen, or of the first; of one kind, that of its first."""

    sensor: str
    payloads: list[bytes] = field(default_factory=list)
    _parities: list[int] = field(default_factory=list)

    def take(self, datagram: CapturedDatagram) -> None:
        """Keep a datagram that belongs here."""
        is_points = datagram.payload.startswith(STDV_SIGNATURE)
        if not is_points and len(datagram.payload) != DATA_PACKET_SIZE:
            return
        self.sensor = self.sensor or datagram.source
        if datagram.source == self.sensor and (not self.payloads or is_points == self.payloads[0].startswith(STDV_SIGNATURE)):
            self.payloads.append(datagram.payload)
            header = read_stdv_header(datagram.payload) if is_points else None
            for parity in frame_parities(datagram.payload, header) if header else b"":
                if not self._parities or parity != self._parities[-1]:
                    self._parities.append(parity)

    def is_enough(self, packets: int) -> bool:
        """Whether there are as many packets as are wanted, or a whole scan of an image-scanning sensor and what comes before and after."""
        if not self._parities:
            return len(self.payloads) >= packets
        return len(self._parities) >= _PARITIES_OF_A_SCAN or len(self.payloads) >= _MOST_POINT_PACKETS


_PARITIES_OF_A_SCAN = 3
_ENOUGH_PACKETS = 1200
"""Two turns of the slowest and fastest sensor: a VLP-32C at 300 rpm sends 302 packets a turn, in dual mode twice that."""
_MOST_POINT_PACKETS = 20_000
"""Of an image-scanning sensor, whose scans may be of any length."""


def _captured(path: Path, sensor: str, at_s: float) -> list[bytes]:
    gathered = Gathered(sensor)
    start_ns: int | None = None
    for datagram in CaptureFile(path):
        if start_ns is None:
            start_ns = datagram.host_stamp_ns
        if datagram.host_stamp_ns - start_ns >= at_s * 1e9:
            gathered.take(datagram)
        if gathered.is_enough(_ENOUGH_PACKETS):
            break
    return gathered.payloads


async def _live(address: Address, sensor: str, timeout_s: float) -> list[bytes]:
    gathered = Gathered(sensor)

    async def collect() -> None:
        async with Listener(host=address[0], ports=(address[1],)) as listener:
            async for datagram in listener:
                gathered.take(datagram)
                if gathered.is_enough(_ENOUGH_PACKETS // 3):
                    return

    try:
        async with asyncio.timeout(timeout_s):
            await collect()
    except TimeoutError:
        if not gathered.payloads:
            raise CaptureError(
                f"{address[0]}:{address[1]}: no Velodyne data packets and no Cepton STDV packets in {timeout_s:g} s;"
                " is a sensor sending here (hilsim doctor names the usual causes)?"
            ) from None
    return gathered.payloads


def _from_rig(source: str, sensor: str, at_s: float) -> Scan | ImageScan:
    from hilsim.daemon.build import build_lidar, build_scenery  # noqa: PLC0415 - compiles kernels

    rig = loaded(rig_path(source))
    names: list[Any] = [entry.name for entry in rig.spec.sensor]
    if not names:
        raise CaptureError(f"{source}: must have a sensor for a picture, got replays only: draw a picture of their captures")
    if sensor and sensor not in names:
        raise CaptureError(f'{source}: sensor must be one of {", ".join(names)}, got "{sensor}"')
    lidar = build_lidar(rig, names.index(sensor) if sensor else 0, build_scenery(rig), utc_epoch_ns=0, frames=False)
    spec, first = lidar.setting.spec, lidar.first_data_packet(round(at_s * 1e9))
    if isinstance(spec, VelodyneSpec):
        return first_scan(decode_data_packets(lidar.data_packets(first, packets_for_one_turn(spec)).payload), spec)
    packets = lidar.data_packets(first, math.ceil(2.0 * spec.scan_s * lidar.setting.packet_rate_hz) + 2)
    return first_image_scan([row.tobytes() for row in packets.payload])
