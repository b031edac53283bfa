"""Packets in captures, MCAP files and ROS bags: read from each, written to each."""

import sys
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import numpy as np

from hilsim.api.packet import Packet, captured_packets
from hilsim.capture.mcap import check_chunks, mcap_reader
from hilsim.capture.pcap import PcapWriter
from hilsim.errors import CaptureError, library_reads
from hilsim.protocols.ethernet import HEADER_SIZE, build_framing, mac_of, write_headers
from hilsim.protocols.flow_key import FlowKey
from hilsim.protocols.protobuf import fields
from hilsim.protocols.recognise import recognise
from hilsim.show.outputs.bag_storage import STORAGES, StoredMessage, lacks_index, storage_files, stored_messages
from hilsim.show.outputs.events import Event
from hilsim.show.outputs.foxglove_log import PACKET_SCHEMA
from hilsim.show.outputs.ros import RosPart, ros_parts, ros_typestore

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CAPTURES = (".pcap", ".pcapng", ".cap", ".gz", ".zst")
_SOURCE_MAC = "60:76:88:00:00:00"
_BAG_SOURCE, _BAG_DESTINATION = "192.168.1.201", "255.255.255.255"
"""Addresses of packets from a bag, whose messages contain none. Each further sensor of a bag gets the next address."""
_BAG_LIBRARIES = {"apsw": "Error", "sqlite3": "Error", "zstandard": "ZstdError"}
"""Libraries that versions of rosbags read with, and their exceptions."""


def read_packets(path: Path, note: Callable[[str], object] = lambda _: None) -> Iterator[Packet]:
    """Packets of a capture, an MCAP file of hilsim, or a ROS bag (ROS 1 or 2, also its storage file alone) of velodyne_msgs or ouster_sensor_msgs.

    Args:
        path: The file or folder.
        note: Called with each sentence on what could not be read.

    Raises:
        CaptureError: the file cannot be read, or has no packets.
        ConfigError: a package is missing.
    """
    count = 0
    for packet in _reader(path, note):
        count += 1
        yield packet
    if not count:
        raise CaptureError(
            f"{path}: no packets of sensors found: captures, MCAP files of hilsim, and velodyne_msgs and ouster_sensor_msgs in ROS bags have them"
        )


def _reader(path: Path, note: Callable[[str], object]) -> Iterator[Packet]:
    if path.suffix == ".mcap" and path.is_file():
        return _read_mcap(path, note)
    if path.suffix == ".db3" or (path.is_dir() and lacks_index(path)):
        return _read_storages(path, note)
    if path.is_dir() or path.suffix == ".bag":
        return _read_bag(path)
    return captured_packets(path, note=note)


def _read_mcap(path: Path, note: Callable[[str], object]) -> Iterator[Packet]:
    bag: _BagPackets | None = None
    kinds = _bag_kinds()
    with mcap_reader(path, "foxglove", note) as reader:
        for schema, channel, message in reader.iter_messages():
            if schema is None:
                continue
            if channel.message_encoding == "cdr" and schema.name in kinds:
                bag = bag or _BagPackets(path)
                yield from bag.stored(StoredMessage(channel.topic, schema.name, message.log_time, message.data))
            if schema.name != PACKET_SCHEMA:
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


def _read_storages(path: Path, note: Callable[[str], object]) -> Iterator[Packet]:
    """Packets in the storage files of a bag without metadata, or in one of them."""
    bag = _BagPackets(path)
    files = storage_files(path)
    if not files:
        raise CaptureError(f"{path}: must be a ROS 2 bag with metadata.yaml or with storage files ({', '.join(STORAGES)}), got a folder with neither")
    if path.is_dir() and not (path / "metadata.yaml").exists():
        note(f"{path}: metadata.yaml is missing: read by {', '.join(file.name for file in files)}")
    for file in files:
        for message in stored_messages(file, note):
            if message.kind in bag.parts:
                yield from bag.stored(message)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def _read_bag(path: Path) -> Iterator[Packet]:
    bag = _BagPackets(path)
    from rosbags.highlevel import AnyReader  # noqa: PLC0415 - an extra

    with library_reads(f"{path}: cannot be read as a ROS bag", CaptureError, *_bag_errors()):
        for part in path.glob("*.mcap"):
            with part.open("rb") as file:
                check_chunks(part, file)
        with AnyReader([path], default_typestore=bag.store) as reader:
            wanted = [each for each in reader.connections if each.msgtype in bag.parts]
            for connection in sorted(wanted, key=lambda each: each.topic):
                bag.sensor(connection.topic, connection.msgtype)
            for connection, time_ns, raw in reader.messages(wanted) if wanted else ():
                yield from bag.packets(connection.topic, connection.msgtype, time_ns, reader.deserialize(raw, connection.msgtype))


class _BagPackets:
    """Packets in the messages of a bag; each sensor has an address of its own, since messages of ROS contain none."""

    def __init__(self, path: Path) -> None:
        self.store = ros_typestore()
        self.parts = _bag_kinds()
        self._path = path
        self._sensors: dict[str, tuple[str, str]] = {}

    def sensor(self, topic: str, kind: str) -> tuple[str, str]:
        """Name and address of a topic's sensor; the topics of its streams differ in their last part."""
        first, *others = self.parts[kind].topics.values()
        key = next((topic.removesuffix(other) + first for other in others if topic.endswith(other)), topic)
        if key not in self._sensors:
            name = key.strip("/").rpartition("/")[0] or kind.partition("_")[0]
            is_taken = any(name == other for other, _ in self._sensors.values())
            self._sensors[key] = key.strip("/") if is_taken else name, str(ip_address(_BAG_SOURCE) + len(self._sensors))
        return self._sensors[key]

    def stored(self, message: StoredMessage) -> Iterator[Packet]:
        """Packets of a message of a storage file.

        Raises:
            CaptureError: it is damaged.
        """
        with library_reads(f"{self._path}: cannot be read as a ROS bag", CaptureError, *_bag_errors()):
            read = self.store.deserialize_cdr(message.content, message.kind)
        yield from self.packets(message.topic, message.kind, message.time_ns, read)

    def packets(self, topic: str, kind: str, time_ns: int, message: Any) -> Iterator[Packet]:
        """Packets of a message."""
        name, address = self.sensor(topic, kind)
        part = self.parts[kind]
        stream = next((stream for stream, end in part.topics.items() if topic.endswith(end)), next(iter(part.topics)))
        port = part.ports[stream]
        for stamp_ns, payload in part.packets(message, time_ns):
            yield Packet(time_ns=stamp_ns, sensor=name, stream=stream, source=(address, port), destination=(_BAG_DESTINATION, port), payload=payload)


def _bag_kinds() -> dict[str, RosPart]:
    """Parts of families by the type of their drivers' messages."""
    return {part.message: part for part in ros_parts().values()}


def _bag_errors() -> tuple[type[Exception], ...]:
    """Exceptions of rosbags and of the libraries that its version reads with."""
    from rosbags import rosbag1, rosbag2  # noqa: PLC0415 - an extra
    from rosbags.highlevel import AnyReaderError  # noqa: PLC0415 - an extra
    from rosbags.serde import SerdeError  # noqa: PLC0415 - an extra
    from rosbags.typesys import TypesysError  # noqa: PLC0415 - an extra

    used = [(sys.modules[module], name) for module, name in _BAG_LIBRARIES.items() if module in sys.modules]
    return AnyReaderError, rosbag1.ReaderError, rosbag2.ReaderError, SerdeError, TypesysError, zstd.ZstdError, *(getattr(*each) for each in used)


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
        if ":" in packet.source[0]:
            raise CaptureError(f"packets of IPv6 must have headers of Ethernet to be written to a capture, got one of {packet.source[0]} without")
        flow = FlowKey(packet.source[0], packet.source[1], packet.destination[0], packet.destination[1])
        count = self._counts[flow] = self._counts.get(flow, 0) + 1
        destination_mac = mac_of(flow.destination, broadcast=ip_address(flow.destination) == ip_address("255.255.255.255"))
        framing = build_framing(recognise(packet.payload).facts.style, flow, source_mac=_SOURCE_MAC, destination_mac=destination_mac)
        frame = np.zeros(HEADER_SIZE + len(packet.payload), np.uint8)
        frame[HEADER_SIZE:] = np.frombuffer(packet.payload, np.uint8)
        write_headers(framing.template, count if framing.counting_identification else 0, framing.udp_checksum, frame, len(packet.payload))
        return frame.tobytes()

    def close(self) -> None:
        """Write what is gathered, and close the file."""
        self._writer.close()
