"""Consecutive lidar packets of one Ouster sensor as arrays, the input of all topics."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.ouster.points import stacked_payloads
from hilsim.families.ouster.protocol.headers import COLUMNS, VALID_STATUS
from hilsim.families.ouster.protocol.lidar import LidarLayout, LidarPackets, decode_lidar_packets
from hilsim.families.ouster.protocol.metadata import SensorMetadata
from hilsim.families.ouster.protocol.profiles import HeaderKind
from hilsim.families.ouster.protocol.recognition import FORMS, Form
from hilsim.families.ouster.stream import Heads, PacketOrder, Run, columns_seen, cut_head, read_heads
from hilsim.read.analysis.conformance.findings import Place

NS_PER_S = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class LidarBlock:
    """Consecutive lidar packets of one size."""

    kind: Annotated[HeaderKind, "Kind of the packet header."]
    metadata: Annotated[SensorMetadata | None, "Metadata of the sensor; None where pixels cannot be judged."]
    layout: Annotated[LidarLayout | None, "Layout of the packets by the metadata, or None."]
    first_index: Annotated[int, "Index of the first packet among the sensor's lidar packets."]
    datagrams: Annotated[list[CapturedDatagram], "The packets."]
    payloads: Annotated[npt.NDArray[np.uint8], "``uint8[n, size]``."]
    heads: Annotated[Heads, "Packet and column headers."]
    run: Annotated[Run, "Order of the packets."]
    before: Annotated["LastPacket | None", "Last packet of the block before, or None."]
    pixels: Annotated[LidarPackets | None, "Fields of the packets, or None without metadata."]

    @property
    def form(self) -> Form:
        """Places of the columns."""
        return FORMS[self.payloads.shape[1]]

    @property
    def stamp_ns(self) -> npt.NDArray[np.int64]:
        """Stamps of the columns, ``int64[n, 16]``."""
        return np.asarray(self.heads.columns["timestamp_ns"].astype(np.int64))

    @property
    def ids(self) -> npt.NDArray[np.int64]:
        """Measurement ids, ``int64[n, 16]``."""
        return np.asarray(self.heads.columns["measurement_id"].astype(np.int64))

    @property
    def is_valid(self) -> npt.NDArray[np.bool_]:
        """Whether columns are valid, ``bool[n, 16]``."""
        return np.asarray(self.heads.columns["status"] & VALID_STATUS != 0)

    @property
    def columns_per_frame(self) -> int:
        """Columns a turn, by the metadata, else of the smallest mode with the ids of most packets."""
        if self.metadata is not None:
            return self.metadata.columns_per_frame
        return columns_seen(int(np.percentile(self.ids, 99, method="lower")))

    def column_byte(self, column: int, offset: int = 0) -> int:
        """Byte of a column."""
        return self.form.first_column + column * self.form.column_size + offset

    def pixel_byte(self, column: int, beam: int) -> int:
        """Byte of a pixel."""
        size = 0 if self.layout is None else self.layout.pixel_size
        return self.column_byte(column, COLUMNS[self.kind].header_size + beam * size)

    def place(self, row: int, byte: int | None = None) -> Place:
        """Place of a packet of this block; row -1 is the packet before it."""
        if row < 0:
            return Place(self.first_index - 1, self.datagrams[0].frame if self.before is None else self.before.frame, byte)
        return Place(self.first_index + row, self.datagrams[row].frame, byte)


@dataclass(frozen=True, kw_only=True)
class LastPacket:
    """The last packet of a block."""

    frame: Annotated[int, "Number of its frame in the capture."]
    stamp_ns: Annotated[int, "Stamp of its last column."]
    host_ns: Annotated[int, "Capture time."]
    columns: Annotated[int, "Number of its last column, counted over frames."]
    init_id: Annotated[int, "Initialisation id."]
    serial: Annotated[int, "Serial number."]


def form_block(
    datagrams: list[CapturedDatagram],
    kind: HeaderKind,
    metadata: SensorMetadata | None,
    layout: LidarLayout | None,
    order: PacketOrder,
    first_index: int,
    before: LastPacket | None,
) -> LidarBlock:
    """Convert consecutive packets of one size."""
    payloads = stacked_payloads([datagram.payload for datagram in datagrams])
    heads = read_heads([cut_head(datagram.payload) for datagram in datagrams], kind)

    def place(row: int) -> Place:
        return Place(first_index + row, datagrams[max(row, 0)].frame)

    has_pixels = metadata is not None and layout is not None
    return LidarBlock(
        kind=kind,
        metadata=metadata,
        layout=layout,
        first_index=first_index,
        datagrams=datagrams,
        payloads=payloads,
        heads=heads,
        run=order.look(heads, place),
        before=before,
        pixels=_pixels(payloads, metadata, layout) if has_pixels else None,
    )


def _pixels(payloads: npt.NDArray[np.uint8], metadata: SensorMetadata | None, layout: LidarLayout | None) -> LidarPackets | None:
    """Fields of packets; the type is set to a lidar packet's, because a rule of its own judges it."""
    if metadata is None or layout is None:
        return None
    typed = payloads.copy()
    if metadata.profile.header is not HeaderKind.NONE:
        typed[:, 0] = 1
        typed[:, 1] = np.where(metadata.profile.header is HeaderKind.STANDARD, 0, typed[:, 1])
    return decode_lidar_packets(typed, metadata.profile, layout, checks_footer=False)


def last_packet(block: LidarBlock) -> LastPacket:
    """The last packet of a block."""
    headers: Any = block.heads.headers[-1]
    return LastPacket(
        frame=block.datagrams[-1].frame,
        stamp_ns=int(block.stamp_ns[-1, -1]),
        host_ns=block.datagrams[-1].host_stamp_ns,
        columns=int(block.run.frame[-1]) * block.columns_per_frame + int(block.ids[-1, -1]),
        init_id=int(headers["init_id"]),
        serial=int(headers["serial"]),
    )
