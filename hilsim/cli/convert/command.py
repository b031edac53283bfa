"""``hilsim convert``: packets from one container to another."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hilsim.errors import ConfigError

if TYPE_CHECKING:
    from hilsim.show.outputs.events import Output, SourceInfo

_CAPTURE = ".pcap"


@click.command()
@click.argument("source", type=click.Path(exists=True, path_type=Path))
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON.")
def convert(*, source: Path, target: Path, as_json: bool) -> None:
    """Copy the packets in SOURCE to TARGET, each byte as it is: captures, MCAP files of hilsim, ROS bags of drivers' packets.

    TARGET is a capture (.pcap), an MCAP file (.mcap) or a folder for a ROS 2 bag. A bag holds the data packets of Velodynes and those of Ouster sensors, without addresses.
    """
    from hilsim.protocols.recognise import recognise  # noqa: PLC0415
    from hilsim.show.outputs.events import SourceInfo, completed  # noqa: PLC0415 - slow to import
    from hilsim.show.outputs.packets import read_packets  # noqa: PLC0415
    from hilsim.show.outputs.ros import ros_parts  # noqa: PLC0415

    if not target.absolute().parent.is_dir():
        raise ConfigError(f"{target}: the folder {target.absolute().parent} must exist")
    if target.exists() and target.resolve() == source.resolve():
        raise ConfigError(f"{target}: must be another file than the source")
    begun_s = time.monotonic()
    info = SourceInfo(name=source.name)
    output = _output(target, info)
    in_ros = {(family, stream) for family, part in ros_parts().items() for stream in part.topics}
    is_bag = target.suffix not in {_CAPTURE, ".mcap"}
    copied = left_out = 0
    addresses: dict[str, str] = {}
    notes: list[str] = []
    packets = read_packets(source, notes.append)
    try:
        with completed(output, target):
            for packet in packets:
                facts = recognise(packet.payload).facts
                if is_bag and (facts.family, facts.stream) not in in_ros:
                    left_out += 1
                    continue
                output.write(packet)
                copied += 1
                addresses.setdefault(packet.sensor, packet.source[0])
    except OSError as error:
        raise ConfigError(f"{target}: must be writable, got {error.strerror or error}") from error
    if as_json:
        click.echo(
            json.dumps(
                {
                    "output": str(target),
                    "packets": copied,
                    "left_out": left_out,
                    "sensors": addresses,
                    "notes": notes,
                    "took_s": round(time.monotonic() - begun_s, 3),
                }
            )
        )
        return
    click.echo(f"{target}: {copied:,} packets")
    if len(addresses) > 1 and not is_bag:
        click.echo(f"sensors: {', '.join(f'{name} at {address}' if name != address else name for name, address in addresses.items())}")
    if left_out:
        notes.append(
            f"{left_out:,} packets are of kinds that no driver's messages hold: those of a Velodyne hold its data, those of an Ouster all of its packets"
        )
    for note in notes:
        click.echo(f"note: {note}", err=True)


def _output(target: Path, info: "SourceInfo") -> "Output":
    match target.suffix:
        case ".pcap":
            from hilsim.show.outputs.packets import PcapOutput  # noqa: PLC0415 - slow to import

            return PcapOutput(target)
        case ".mcap":
            from hilsim.show.outputs.foxglove_log import McapFile  # noqa: PLC0415 - an extra

            return McapFile(target, info)
        case "":
            from hilsim.show.outputs.bag import PacketBag  # noqa: PLC0415 - an extra

            return PacketBag(target, info)
        case other:
            raise ConfigError(f"{target}: must be a capture (.pcap), an MCAP file (.mcap) or a folder for a bag, got {other}")
