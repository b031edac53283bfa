"""Packets in captures, MCAP files and ROS bags: read from each, written to each."""

import sys
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path

import numpy as np

from hilsim.api.packet import Packet, read_capture
from hilsim.capture.mcap import check_chunks, mcap_reader
from hilsim.capture.pcap import PcapWriter
from hilsim.errors import CaptureError, library_reads
from hilsim.outputs.events import Event
from hilsim.outputs.foxglove_log import PACKET_SCHEMA
from hilsim.outputs.ros import OUSTER_PACKET, VELODYNE_SCAN, ros_typestore
from hilsim.protocols.ethernet import HEADER_SIZE, PLAIN_STYLE, VELODYNE_DATA_STYLE, VELODYNE_POSITION_STYLE, build_framing, mac_of, write_headers
from hilsim.protocols.flow_key import FlowKey
from hilsim.protocols.protobuf import fields
from hilsim.protocols.recognise import PacketKind, recognise
from hilsim.protocols.velodyne.data import DATA_PORT

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CAPTURES = (".pcap", ".pcapng", ".cap", ".gz", ".zst")
_STYLES = {PacketKind.VELODYNE_DATA: VELODYNE_DATA_STYLE, PacketKind.VELODYNE_POSITION: VELODYNE_POSITION_STYLE}
_SOURCE_MAC = "60:76:88:00:00:00"
_BAG_SOURCE, _BAG_DESTINATION = "192.168.1.201", "255.255.255.255"
"""Addresses of a Velodyne from the factory: messages of ROS contain none. Each further sensor of a bag gets the next address."""
_OUSTER_PORTS = {"lidar": 7502, "imu": 7503}
_BAG_LIBRARIES = {"apsw": "Error", "sqlite3": "Error", "zstandard": "ZstdError"}
"""Libraries that versions of rosbags read with, and their exceptions."""


def read_packets(path: Path) -> Iterator[Packet]:
    """Packets of a capture, an MCAP file that ``hilsim export`` or ``convert`` has written, or a ROS bag (ROS 1 or 2) with messages of velodyne_msgs or ouster_sensor_msgs.

    Raises:
        CaptureError: the file cannot be read, or has no packets.
        ConfigError: a package is missing.
    """
    count = 0
    for packet in _reader(path):
        count += 1
        yield packet
    if not count:
        raise CaptureError(
            f"{path}: no packets of sensors found: captures, MCAP files of hilsim, and velodyne_msgs and ouster_sensor_msgs in ROS bags have them"
        )


def _reader(path: Path) -> Iterator[Packet]:
    if path.is_dir() or path.suffix == ".bag":
        return _read_bag(path)
    if path.suffix == ".mcap":
        return _read_mcap(path)
    return read_capture(path)


def _read_mcap(path: Path) -> Iterator[Packet]:
    with mcap_reader(path, "foxglove") as reader:
        for schema, channel, message in reader.iter_messages():
            if schema is None or schema.name != PACKET_SCHEMA:
                continue
            data = b"".join(value for _, value in fields(message.data) if isinstance(value, bytes))
            header = int(channel.metadata["header_size"])
            yield Packet(
                time_ns=message.log_time,
                sensor=channel.metadata["sensor"],
                stream=channel.metadata["stream"],
                source=_address(channel.metadata["source"]),
                destination=_address(channel.metadata["destination"]),
                payload=data[header:],
                headers=data[:header],
            )


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def _read_bag(path: Path) -> Iterator[Packet]:
    store = ros_typestore()
    from rosbags.highlevel import AnyReader  # noqa: PLC0415 - an extra

    with library_reads(f"{path}: cannot be read as a ROS bag", CaptureError, *_bag_errors()):
        for part in path.glob("*.mcap"):
            with part.open("rb") as file:
                check_chunks(part, file)
        with AnyReader([path], default_typestore=store) as reader:
            wanted = [each for each in reader.connections if each.msgtype in {VELODYNE_SCAN, OUSTER_PACKET}]
            sensors = _bag_sensors({each.topic: each.msgtype for each in wanted})
            for connection, time_ns, raw in reader.messages(wanted) if wanted else ():
                message = reader.deserialize(raw, connection.msgtype)
                name, address = sensors[connection.topic]
                if connection.msgtype == OUSTER_PACKET:
                    stream = "imu" if connection.topic.endswith("imu_packets") else "lidar"
                    ends = [(host, _OUSTER_PORTS[stream]) for host in (address, _BAG_DESTINATION)]
                    yield Packet(time_ns=time_ns, sensor=name, stream=stream, source=ends[0], destination=ends[1], payload=message.buf.tobytes())
                    continue
                for packet in message.packets:
                    yield Packet(
                        time_ns=packet.stamp.sec * 1_000_000_000 + packet.stamp.nanosec,
                        sensor=name,
                        stream="data",
                        source=(address, DATA_PORT),
                        destination=(_BAG_DESTINATION, DATA_PORT),
                        payload=packet.data.tobytes(),
                    )


def _bag_sensors(kinds: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Name and address of the sensor of each topic, by the topics' types; an Ouster's two topics are one sensor's."""
    of_sensor: dict[str, tuple[str, str]] = {}
    keys = {topic: topic.replace("imu_packets", "lidar_packets") if kind == OUSTER_PACKET else topic for topic, kind in kinds.items()}
    for topic, key in sorted(keys.items()):
        if key not in of_sensor:
            name = key.strip("/").rpartition("/")[0] or kinds[topic].partition("_")[0]
            is_taken = any(name == other for other, _ in of_sensor.values())
            of_sensor[key] = key.strip("/") if is_taken else name, str(ip_address(_BAG_SOURCE) + len(of_sensor))
    return {topic: of_sensor[key] for topic, key in keys.items()}


def _bag_errors() -> tuple[type[Exception], ...]:
    """Exceptions of rosbags and of the libraries that its version reads with."""
    from rosbags import rosbag1, rosbag2  # noqa: PLC0415 - an extra
    from rosbags.highlevel import AnyReaderError  # noqa: PLC0415 - an extra
    from rosbags.typesys import TypesysError  # noqa: PLC0415 - an extra

    used = [(sys.modules[module], name) for module, name in _BAG_LIBRARIES.items() if module in sys.modules]
    return AnyReaderError, rosbag1.ReaderError, rosbag2.ReaderError, TypesysError, zstd.ZstdError, *(getattr(*each) for each in used)


class PcapOutput:
    """A capture of packets; those without headers get the ones that their sensor's model sends."""

    def __init__(self, path: Path) -> None:
        """Create the file.

        Raises:
            CaptureError: it cannot be created.
        """
        self._writer = PcapWriter(path)
        self._counts: dict[FlowKey, int] = {}

    def write(self, event: Event) -> None:
        """Append a packet."""
        if isinstance(event, Packet):
            self._writer.write(event.time_ns, event.frame or self._framed(event))

    def _framed(self, packet: Packet) -> bytes:
        flow = FlowKey(packet.source[0], packet.source[1], packet.destination[0], packet.destination[1])
        count = self._counts[flow] = self._counts.get(flow, 0) + 1
        destination_mac = mac_of(flow.destination, broadcast=ip_address(flow.destination) == ip_address("255.255.255.255"))
        framing = build_framing(_STYLES.get(recognise(packet.payload), PLAIN_STYLE), flow, source_mac=_SOURCE_MAC, destination_mac=destination_mac)
        frame = np.zeros(HEADER_SIZE + len(packet.payload), np.uint8)
        frame[HEADER_SIZE:] = np.frombuffer(packet.payload, np.uint8)
        write_headers(framing.template, count if framing.counting_identification else 0, framing.udp_checksum, frame, len(packet.payload))
        return frame.tobytes()

    def close(self) -> None:
        """Write what is gathered, and close the file."""
        self._writer.close()
