"""Ouster's IMU packets, little-endian.

LEGACY, 48 bytes, about 100 a second; axes of the device (``imu_to_sensor_transform``):

======  ====  ==============================================================================
offset  size  field
======  ====  ==============================================================================
0       8     diagnostic time, nanoseconds since the start, in every timestamp mode
8       8     time of the accelerometer's reading, in the timestamp mode
16      8     time of the gyroscope's reading, in the timestamp mode
24      12    acceleration x, y, z, float32, g
36      12    angular velocity x, y, z, float32, degrees a second
======  ====  ==============================================================================

ACCEL32_GYRO32_NMEA (firmware 3.2), 164 + 36 n bytes; its frame id is that of the lidar packets:

========  ====  ==========================================================================
offset    size  field
========  ====  ==========================================================================
0         32    packet header of type 2 (``headers``)
32        8     time of the NMEA sentence
40        85    NMEA sentence, zero padded; it and its time are 0 without one
125       7     0
132+36k   8     time of measurement k
+8        2     measurement id: the last column of its part of the turn
+10       2     status, bit 0: valid
+12       12    acceleration x, y, z, float32, metres per second squared
+24       12    angular velocity x, y, z, float32, radians a second
132+36n   32    footer, as of lidar packets
========  ====  ==========================================================================

Sources: Ouster's firmware user manual, "imu data", and ouster-sdk 1.0.1 (ouster_core/src/packet.cpp); values confirmed on public captures of firmware 2.2,
2.3, 2.5 and 3.1, the second form on one of 3.2.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import by_reference, constant, kernel, signed
from hilsim.errors import require
from hilsim.families.ouster.protocol.bits import add_bits
from hilsim.families.ouster.protocol.firmware import FOOTER_SIZE, Footer
from hilsim.families.ouster.protocol.headers import HEADERS, IMU_PACKET, PACKET_HEADER_SIZE, HeaderField, place_rows
from hilsim.families.ouster.protocol.lidar import check_footers, check_sizes, read_headers, write_fields, write_footer
from hilsim.families.ouster.protocol.profiles import PAYLOAD_MAX, HeaderKind

LEGACY_IMU, ACCEL_GYRO_NMEA = "LEGACY", "ACCEL32_GYRO32_NMEA"
"""Values of ``udp_profile_imu``."""
IMU_DTYPE = np.dtype(
    [("diagnostic_ns", "<u8"), ("accelerometer_ns", "<u8"), ("gyroscope_ns", "<u8"), ("acceleration_g", "<f4", (3,)), ("rate_dps", "<f4", (3,))]
)
IMU_PACKET_SIZE = 48
MEASUREMENT_DTYPE = np.dtype(
    [("time_ns", "<u8"), ("measurement_id", "<u2"), ("status", "<u2"), ("acceleration_mps2", "<f4", (3,)), ("rate_rps", "<f4", (3,))]
)
MEASUREMENT_SIZE = 36
NMEA_SIZE = 85
if (IMU_DTYPE.itemsize, MEASUREMENT_DTYPE.itemsize) != (IMU_PACKET_SIZE, MEASUREMENT_SIZE):
    raise AssertionError(
        f"IMU records must be {IMU_PACKET_SIZE} and {MEASUREMENT_SIZE} bytes, got {IMU_DTYPE.itemsize}, {MEASUREMENT_DTYPE.itemsize}"
    )
_NMEA_NS_AT, _NMEA_AT, _FIRST_AT = 32, 40, 132
_SIZE, _NMEA, _FIRST = constant(MEASUREMENT_SIZE), constant(NMEA_SIZE), constant(_FIRST_AT)


@kernel
def _write_floats(values: npt.NDArray[np.float32], payload: npt.NDArray[np.uint8], at: int) -> None:
    words = values.view(np.uint32)
    for axis in range(3):
        add_bits(signed(words[axis]), 32, payload, at + 4 * axis, 0)


@kernel
def encode_imu_packet(
    times_ns: npt.NDArray[np.int64], acceleration_g: npt.NDArray[np.float32], rate_dps: npt.NDArray[np.float32], payload: npt.NDArray[np.uint8]
) -> None:
    """Write a LEGACY IMU packet.

    Args:
        times_ns: ``int64[3]``: diagnostic time, times of accelerometer and gyroscope.
        acceleration_g: ``float32[3]``, contiguous.
        rate_dps: ``float32[3]``, contiguous.
        payload: ``uint8[>= 48]``, written.
    """
    payload[:48] = 0
    for field in range(3):
        add_bits(times_ns[field], 64, payload, 8 * field, 0)
    _write_floats(acceleration_g, payload, 24)
    _write_floats(rate_dps, payload, 36)


def decode_imu_packets(payloads: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    """View LEGACY IMU packets ``uint8[n, 48]`` as records of ``IMU_DTYPE``.

    Raises:
        PacketError: they are of another size.
    """
    check_sizes(payloads, IMU_PACKET_SIZE, "Ouster IMU packet of LEGACY")
    return np.ascontiguousarray(payloads).view(IMU_DTYPE)[:, 0]


@by_reference
class ImuLayout(NamedTuple):
    """Form of the newer IMU packets, for the kernels; ``imu_layout`` makes it.

    Attributes:
        size: Bytes a packet.
        measurements: Measurements a packet.
        footer: A ``Footer``.
        header_fields: ``int64[10, 2]`` by ``HeaderField``: byte offset and bits.
    """

    size: int
    measurements: int
    footer: int
    header_fields: npt.NDArray[np.int64]


def imu_layout(measurements: int, header: HeaderKind, footer: Footer) -> ImuLayout:
    """The layout of ACCEL32_GYRO32_NMEA packets.

    Args:
        measurements: Measurements a packet (``imu_measurements_per_packet``).
        header: Kind of the packet header, that of the lidar packets.
        footer: Result of ``firmware.footer_of``.

    Raises:
        ValueError: the packet does not fit into a datagram, or has no header or footer.
    """
    size = _FIRST_AT + measurements * MEASUREMENT_SIZE + FOOTER_SIZE
    require(
        (measurements >= 1, f"measurements must be at least 1, got {measurements}"),
        (size <= PAYLOAD_MAX, f"an IMU packet of {measurements} measurements must be at most {PAYLOAD_MAX} bytes, got {size}"),
        (header is not HeaderKind.NONE and footer is not Footer.NONE, f"an IMU packet of {ACCEL_GYRO_NMEA} must have header and footer, got none"),
    )
    return ImuLayout(size, measurements, int(footer), place_rows(HeaderField, HEADERS[header], PACKET_HEADER_SIZE))


@kernel
def encode_imu_measurements(
    layout: ImuLayout,
    header: npt.NDArray[np.int64],
    nmea_ns: int,
    nmea: npt.NDArray[np.uint8],
    columns: npt.NDArray[np.int64],
    acceleration_mps2: npt.NDArray[np.float32],
    rate_rps: npt.NDArray[np.float32],
    payload: npt.NDArray[np.uint8],
) -> None:
    """Write an ACCEL32_GYRO32_NMEA packet.

    Args:
        layout: Form of the packet.
        header: ``int64[10]`` by ``HeaderField``; its packet type is ``IMU_PACKET``.
        nmea_ns: Time of the NMEA sentence, 0 without one.
        nmea: ``uint8[<= 85]``, the sentence.
        columns: ``int64[n, 3]``: time, measurement id, status of each measurement.
        acceleration_mps2: ``float32[n, 3]``, contiguous.
        rate_rps: ``float32[n, 3]``, contiguous.
        payload: ``uint8[>= layout.size]``, written.
    """
    payload[: layout.size] = 0
    write_fields(layout.header_fields, header, payload, 0)
    add_bits(nmea_ns, 64, payload, 32, 0)
    for byte in range(min(len(nmea), _NMEA)):
        payload[40 + byte] = nmea[byte]
    for number in range(layout.measurements):
        at = _FIRST + number * _SIZE
        add_bits(columns[number, 0], 64, payload, at, 0)
        add_bits(columns[number, 1], 16, payload, at + 8, 0)
        add_bits(columns[number, 2], 16, payload, at + 10, 0)
        _write_floats(acceleration_mps2[number], payload, at + 12)
        _write_floats(rate_rps[number], payload, at + 24)
    write_footer(layout.footer, payload, layout.size)


@dataclass(frozen=True, kw_only=True)
class ImuPackets:
    """Contents of n packets of ACCEL32_GYRO32_NMEA.

    Attributes:
        headers: ``HEADER_DTYPE[n]``.
        nmea_ns: ``uint64[n]``, time of the NMEA sentence.
        nmea: The sentences, without padding.
        measurements: ``MEASUREMENT_DTYPE[n, measurements]``.
    """

    headers: npt.NDArray[Any]
    nmea_ns: npt.NDArray[np.uint64]
    nmea: tuple[bytes, ...]
    measurements: npt.NDArray[Any]


def decode_imu_measurements(payloads: npt.NDArray[np.uint8], header: HeaderKind, layout: ImuLayout, *, checks_footer: bool = True) -> ImuPackets:
    """Read ACCEL32_GYRO32_NMEA packets.

    Args:
        payloads: ``uint8[n, size]``.
        header: Kind of the packet header of the layout.
        layout: Result of ``imu_layout``.
        checks_footer: Refuse packets whose last eight bytes are not those of the layout's footer.

    Raises:
        PacketError: payloads of another size or packet type, or with a wrong footer; the text names the first packet, and the byte.
    """
    what = f"Ouster IMU packet of {ACCEL_GYRO_NMEA} with {layout.measurements} measurements"
    check_sizes(payloads, layout.size, what)
    headers = read_headers(payloads, header, what, IMU_PACKET)
    if checks_footer:
        check_footers(payloads, Footer(layout.footer), what)
    rows = np.ascontiguousarray(payloads[:, _FIRST_AT : layout.size - FOOTER_SIZE])
    return ImuPackets(
        headers=headers,
        nmea_ns=np.ascontiguousarray(payloads[:, _NMEA_NS_AT:_NMEA_AT]).view("<u8")[:, 0],
        nmea=tuple(row[_NMEA_AT : _NMEA_AT + NMEA_SIZE].tobytes().rstrip(b"\0") for row in payloads),
        measurements=rows.view(MEASUREMENT_DTYPE),
    )
