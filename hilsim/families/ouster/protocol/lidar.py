"""Ouster's lidar packet: one datagram of 16 columns, little-endian.

====================  ===============  ============================================================================
part                  bytes            contents
====================  ===============  ============================================================================
packet header         32               ``headers``; none in the profile LEGACY
column, 16 times      12 + c * pixel   column header (``headers``), then c pixels (``profiles``), row 0 the top beam
(LEGACY)              20 + c * pixel   column header of 16 bytes, pixels, status of 4 bytes
footer                32               24 zero bytes, then 8 by firmware (``firmware.Footer``); none in LEGACY
====================  ===============  ============================================================================

Measurement ids of a packet are 16 k … 16 k + 15. All channels of a column have one timestamp. A column outside the azimuth window has status 0, a valid
timestamp and pixels that are all 0; a packet wholly outside it is not sent.

Sources: ouster-sdk 1.0.1 (ouster_core/src/packet.cpp, data_format.cpp); confirmed on public captures of firmware 2.2, 2.3, 2.5 and 3.1.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import by_reference, constant, inlined_kernel, kernel, signed
from hilsim.compilation.words import store_half
from hilsim.errors import PacketError, require
from hilsim.families.ouster.protocol.bits import add_bits, read_bits
from hilsim.families.ouster.protocol.firmware import FOOTER_CONSTANT, FOOTER_SIZE, Footer
from hilsim.families.ouster.protocol.headers import (
    COLUMN_DTYPE,
    COLUMNS,
    HEADER_DTYPE,
    HEADERS,
    LIDAR_PACKET,
    PACKET_HEADER_SIZE,
    ColumnField,
    HeaderField,
    place_rows,
)
from hilsim.families.ouster.protocol.pixels import Pixels, allocate_pixels
from hilsim.families.ouster.protocol.profiles import COLUMNS_PER_PACKET, OVERFLOW, PAYLOAD_MAX, FieldKind, HeaderKind, Overflow, Profile
from hilsim.protocols.crc64 import CRC_SIZE, crcs_of, write_crc

_RANGE, _FLAGS, _REFLECTIVITY = constant(FieldKind.RANGE), constant(FieldKind.FLAGS), constant(FieldKind.REFLECTIVITY)
_SIGNAL, _NEAR_IR = constant(FieldKind.SIGNAL), constant(FieldKind.NEAR_IR)
_FRAME_ID = constant(HeaderField.FRAME_ID)
_ZERO, _MASK = constant(Overflow.ZERO), constant(Overflow.MASK)
_CRC, _CONSTANT = constant(Footer.CRC), constant(Footer.CONSTANT)
_COLUMNS = constant(COLUMNS_PER_PACKET)
_STEP = constant(4)  # bytes; pixels have a multiple of it
_FOOTER_CONSTANT = constant(FOOTER_CONSTANT - (1 << 64))


@by_reference
class LidarLayout(NamedTuple):
    """Places of all fields of a sensor's lidar packets, for the kernels; ``lidar_layout`` makes it.

    Attributes:
        size: Bytes a packet.
        channels: Pixels a column.
        first_column: Byte at which column 0 begins.
        column_size: Bytes a column.
        first_pixel: Byte of a column at which pixel 0 begins.
        pixel_size: Bytes a pixel.
        footer: A ``Footer``.
        header_fields: ``int64[10, 2]`` by ``HeaderField``: byte offset and bits, 0 bits of a field that is not there.
        column_fields: ``int64[4, 2]`` by ``ColumnField``, the same.
        frame_id: ``int64[2]``, the same of a column's frame id.
        pixel_fields: ``int64[fields, 6]``: ``FieldKind``, return, bit within the pixel, bits, bits of a value that are
            dropped, ``Overflow``.
    """

    size: int
    channels: int
    first_column: int
    column_size: int
    first_pixel: int
    pixel_size: int
    footer: int
    header_fields: npt.NDArray[np.int64]
    column_fields: npt.NDArray[np.int64]
    frame_id: npt.NDArray[np.int64]
    pixel_fields: npt.NDArray[np.int64]


def lidar_layout(profile: Profile, channels: int, footer: Footer) -> LidarLayout:
    """The layout of a sensor's lidar packets.

    Args:
        profile: Profile.
        channels: Beams.
        footer: Result of ``firmware.footer_of``.

    Raises:
        ValueError: the packet does not fit into a datagram, or the footer is not one of the profile's header.
    """
    has_header = profile.header is not HeaderKind.NONE
    column = COLUMNS[profile.header]
    column_size = column.header_size + channels * profile.pixel_size + column.footer_size
    size = COLUMNS_PER_PACKET * column_size + has_header * (PACKET_HEADER_SIZE + FOOTER_SIZE)
    require(
        (channels >= 1, f"channels must be at least 1, got {channels}"),
        (size <= PAYLOAD_MAX, f"a packet of {profile.name} with {channels} channels must be at most {PAYLOAD_MAX} bytes, got {size}"),
        ((footer is not Footer.NONE) == has_header, f"footer of {profile.name} must be {'one' if has_header else 'none'}, got {footer.name}"),
    )
    frame_id = column.frame_id
    return LidarLayout(
        size=size,
        channels=channels,
        first_column=has_header * PACKET_HEADER_SIZE,
        column_size=column_size,
        first_pixel=column.header_size,
        pixel_size=profile.pixel_size,
        footer=int(footer),
        header_fields=place_rows(HeaderField, HEADERS[profile.header], size),
        column_fields=place_rows(ColumnField, column.fields, column_size),
        frame_id=np.array((0, 0) if frame_id is None else frame_id, np.int64),
        pixel_fields=np.array(
            [(field.kind, field.return_number, field.bit_offset, field.width, field.dropped_bits, OVERFLOW[field.kind]) for field in profile.fields],
            np.int64,
        ),
    )


@kernel
def _add_field(layout: LidarLayout, field: int, values: npt.NDArray[Any], column: int, words: npt.NDArray[np.int64]) -> None:
    """Add one field of a column's pixels, from ``[return, column, channel]``, to their words."""
    number, bit, bits = layout.pixel_fields[field, 1], layout.pixel_fields[field, 2], layout.pixel_fields[field, 3]
    dropped, overflow = layout.pixel_fields[field, 4], layout.pixel_fields[field, 5]
    largest = (1 << bits) - 1
    filled, left = largest if overflow not in (_ZERO, _MASK) else 0, 0 if overflow == _ZERO else largest  # of what is larger
    word, shift = bit >> 6, bit & 63
    for channel in range(layout.channels):
        counts = signed(values[number, column, channel]) >> dropped
        counts = counts if counts <= largest else (counts | filled) & left
        words[word, channel] |= counts << shift
    if shift + bits > 64:
        for channel in range(layout.channels):
            counts = signed(values[number, column, channel]) >> dropped
            counts = counts if counts <= largest else (counts | filled) & left
            words[word + 1, channel] |= counts >> 64 - shift


@kernel
def _write_pixels(layout: LidarLayout, pixels: Pixels, payload: npt.NDArray[np.uint8]) -> None:
    """Write the pixels column by column: their fields gathered in words of 64 bits, then their bytes."""
    words = np.zeros(((layout.pixel_size + 7) >> 3, layout.channels), np.int64)
    for column in range(_COLUMNS):
        words[:] = 0
        for field in range(len(layout.pixel_fields)):
            kind = layout.pixel_fields[field, 0]
            if kind == _RANGE:
                _add_field(layout, field, pixels.range_mm, column, words)
            elif kind == _FLAGS:
                _add_field(layout, field, pixels.flags, column, words)
            elif kind == _REFLECTIVITY:
                _add_field(layout, field, pixels.reflectivity, column, words)
            elif kind == _SIGNAL:
                _add_field(layout, field, pixels.signal, column, words)
            elif kind == _NEAR_IR:
                _add_field(layout, field, pixels.near_ir, column, words)
            else:
                _add_field(layout, field, pixels.window, column, words)
        at = layout.first_column + column * layout.column_size + layout.first_pixel
        for channel in range(layout.channels):
            for place in range(0, layout.pixel_size, _STEP):
                store_half(payload, at, words[place >> 3, channel] >> 8 * (place & 7))
                at += _STEP


@kernel
def write_fields(places: npt.NDArray[np.int64], values: npt.NDArray[np.int64], payload: npt.NDArray[np.uint8], at: int) -> None:
    """Write the fields of a header.

    Args:
        places: ``int64[fields, 2]``: byte offset and bits.
        values: ``int64[>= fields]``.
        payload: Written where it is still 0.
        at: Byte at which the header begins.
    """
    for field in range(len(places)):
        if places[field, 1] > 0:
            add_bits(values[field], places[field, 1], payload, at, 8 * places[field, 0])


@inlined_kernel
def write_footer(footer: int, payload: npt.NDArray[np.uint8], size: int) -> None:
    """Write the last eight bytes of a packet of ``size`` bytes, which are still 0; ``footer`` is a ``Footer``."""
    if footer == _CRC:
        write_crc(payload, size - CRC_SIZE)
    elif footer == _CONSTANT:
        add_bits(_FOOTER_CONSTANT, 64, payload, size - CRC_SIZE, 0)


@kernel
def encode_lidar_packet(
    layout: LidarLayout, header: npt.NDArray[np.int64], columns: npt.NDArray[np.int64], pixels: Pixels, payload: npt.NDArray[np.uint8]
) -> None:
    """Write one lidar packet.

    A range is rounded down to the profile's step, and one beyond its largest is 0; other values that do not fit become the largest.

    Args:
        layout: Places of the fields.
        header: ``int64[10]`` by ``HeaderField``; its packet type is ``LIDAR_PACKET``.
        columns: ``int64[16, 4]`` by ``ColumnField``.
        pixels: Values, none negative.
        payload: ``uint8[>= layout.size]``, written.
    """
    payload[: layout.size] = 0
    write_fields(layout.header_fields, header, payload, 0)
    for column in range(_COLUMNS):
        at = layout.first_column + column * layout.column_size
        write_fields(layout.column_fields, columns[column], payload, at)
        if layout.frame_id[1] > 0:
            add_bits(header[_FRAME_ID], layout.frame_id[1], payload, at, 8 * layout.frame_id[0])
    _write_pixels(layout, pixels, payload)
    write_footer(layout.footer, payload, layout.size)


@dataclass(frozen=True, kw_only=True)
class LidarPackets:
    """Contents of n lidar packets.

    Attributes:
        headers: ``HEADER_DTYPE[n]``; fields that the profile's header has not are 0, but for LEGACY's type and frame id (of column 0).
        columns: ``COLUMN_DTYPE[n, 16]``; an encoder count that the profile has not is 0.
        pixels: Arrays ``[n, return, column, channel]``.
    """

    headers: npt.NDArray[Any]
    columns: npt.NDArray[Any]
    pixels: Pixels


def decode_lidar_packets(payloads: npt.NDArray[np.uint8], profile: Profile, layout: LidarLayout, *, checks_footer: bool = True) -> LidarPackets:
    """Read lidar packets.

    Args:
        payloads: ``uint8[n, size]``.
        profile: Profile of the layout.
        layout: Result of ``lidar_layout``.
        checks_footer: Refuse packets whose last eight bytes are not those of the layout's footer.

    Raises:
        PacketError: payloads of another size or packet type, or with a wrong footer; the text names the first packet, and the byte.
    """
    what = f"Ouster lidar packet of {profile.name} with {layout.channels} channels"
    check_sizes(payloads, layout.size, what)
    headers = read_headers(payloads, profile.header, what, LIDAR_PACKET)
    if checks_footer:
        check_footers(payloads, Footer(layout.footer), what)
    body = payloads[:, layout.first_column : layout.first_column + COLUMNS_PER_PACKET * layout.column_size]
    body = np.ascontiguousarray(body).reshape(len(payloads), COLUMNS_PER_PACKET, layout.column_size)
    columns = np.zeros(body.shape[:2], COLUMN_DTYPE)
    for name, (offset, bits) in zip(COLUMN_DTYPE.names or (), layout.column_fields.tolist(), strict=True):
        if bits:
            columns[name] = read_bits(body, 8 * offset, bits)
    if layout.frame_id[1]:
        headers["packet_type"] = LIDAR_PACKET
        headers["frame_id"] = read_bits(body[:, 0], 8 * int(layout.frame_id[0]), int(layout.frame_id[1]))
    return LidarPackets(headers=headers, columns=columns, pixels=_read_pixels(body, profile, layout))


def _read_pixels(body: npt.NDArray[np.uint8], profile: Profile, layout: LidarLayout) -> Pixels:
    pixels = allocate_pixels(profile, layout.channels, (len(body),))
    records = body[:, :, layout.first_pixel : layout.first_pixel + layout.channels * layout.pixel_size]
    records = records.reshape(len(body), COLUMNS_PER_PACKET, layout.channels, layout.pixel_size)
    for kind, number, bit, bits, dropped, _ in layout.pixel_fields.tolist():
        values = read_bits(records, bit, bits) << np.uint64(dropped)
        if kind == FieldKind.REFLECTIVITY and bits > 8:
            values = np.minimum(np.log2(1.0 + values) * 16.0, 255.0)
        pixels[kind][:, number] = values
    return pixels


def check_sizes(payloads: npt.NDArray[np.uint8], size: int, what: str) -> None:
    """Refuse payloads of another size.

    Raises:
        PacketError: they are not ``uint8[n, size]``.
    """
    if payloads.ndim != 2 or payloads.dtype != np.uint8 or payloads.shape[1] != size:
        raise PacketError(f"{what} must be {size} bytes, got an array of {payloads.dtype} of shape {payloads.shape}")


def read_headers(payloads: npt.NDArray[np.uint8], kind: HeaderKind, what: str, packet_type: int) -> npt.NDArray[Any]:
    """Read packet headers, ``HEADER_DTYPE[n]``.

    Raises:
        PacketError: a packet is of another type than ``packet_type``.
    """
    headers = np.zeros(len(payloads), HEADER_DTYPE)
    for field, (offset, bits) in HEADERS[kind].items():
        headers[field.name.lower()] = read_bits(payloads[:, :PACKET_HEADER_SIZE], 8 * offset, bits)
    wrong = np.flatnonzero(headers["packet_type"] != packet_type)
    if kind is not HeaderKind.NONE and wrong.size:
        number = int(wrong[0])
        raise PacketError(f"{what} must have type {packet_type}, got {headers['packet_type'][number]} at byte 0 of packet {number}")
    return headers


def footers_of(payloads: npt.NDArray[np.uint8], footer: Footer) -> npt.NDArray[np.uint64]:
    """``uint64[n]``: the last eight bytes that packets must have."""
    if footer is Footer.CRC:
        return crcs_of(payloads)
    return np.full(len(payloads), FOOTER_CONSTANT if footer is Footer.CONSTANT else 0, np.uint64)


def check_footers(payloads: npt.NDArray[np.uint8], footer: Footer, what: str) -> None:
    """Refuse packets whose last eight bytes are others than ``footer`` has; there is nothing to check of a packet without one.

    Raises:
        PacketError: a footer is wrong; the text names the first packet.
    """
    if footer is Footer.NONE:
        return
    expected, found = footers_of(payloads, footer), read_bits(payloads[:, -CRC_SIZE:], 0, 64)
    wrong = np.flatnonzero(expected != found)
    if wrong.size:
        number = int(wrong[0])
        name = "CRC-64" if footer is Footer.CRC else "footer"
        raise PacketError(
            f"{what} must have {name} 0x{expected[number]:016x}, got 0x{found[number]:016x} at byte {payloads.shape[1] - CRC_SIZE} of packet {number}"
        )
