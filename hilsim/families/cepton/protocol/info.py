"""Cepton's INFZ packet with information on the sensor: UDP payload on port 8808, little-endian, sent twice a second and before the first points.

MEASURED, NOT VENDOR-DOCUMENTED. The vendor's table of this packet could not be read. Every field below was found by changing one byte of an accepted
packet and looking which public field of ``CeptonSensor`` changes in the vendor's libraries (cepton_sdk2 2.1.4, 2.1.14; cepton_sdk3 3.0.17). What neither
of them shows is reserved here, and 0.

======  ====  ==============================================================  =====================================================================
offset  size  field                                                           seen by
======  ====  ==============================================================  =====================================================================
0       4     ASCII ``INFZ``                                                  both (the name is also in the vendor's SDK guide)
4       1     size of this common header, 88                                  both
5       1     version in the upper 5 bits (1), block flags in the lower 3     both; see below
6       1     reserved
7       1     faults                                                          SDK 3 (``fault_summary``)
8       2     model                                                           both (codes: public header ``cepton_sdk3.h``)
10      2     reserved
12      4     serial number                                                   both
16      4     firmware version: major, minor, build, patch, a byte each       both, but SDK 3 for models 22 and 24
20      28    model name, zero padded                                         both
48      4     part number                                                     both
52      4     firmware version again                                          SDK 3, models 22 and 24
56      8     reserved
64      8     time of power-up, signed, microseconds                          both
72      8     time synchronisation: offset, signed, microseconds              both
80      4     time synchronisation: drift                                     SDK 2 2.1.14 alone
84      1     reserved
85      1     returns                                                         SDK 3
86      2     reserved
======  ====  ==============================================================  =====================================================================

Block flags announce optional blocks whose layout is unknown: four of them crash SDK 2 2.1.4, so none is ever sent. SDK 3 makes frames of a sensor's points only
once it has had this packet, and counts a model's channels by its code.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.errors import require

INFO_SIGNATURE = b"INFZ"
INFO_PACKET_SIZE = 88
SYNC_OFFSET = 72
"""Place of the offset of the synchronised clock."""
INFO_VERSION = 1
_VERSION_SHIFT, _BLOCK_FLAGS = 3, 0x07
_NAME_SIZE = 28

INFO_PACKET_DTYPE = np.dtype(
    [
        ("signature", "S4"),
        ("header_size", "u1"),
        ("version_and_blocks", "u1"),
        ("reserved_0", "u1"),
        ("faults", "u1"),
        ("model", "<u2"),
        ("reserved_1", "u1", (2,)),
        ("serial", "<u4"),
        ("firmware", "u1", (4,)),
        ("model_name", f"S{_NAME_SIZE}"),
        ("part_number", "<u4"),
        ("firmware_again", "u1", (4,)),
        ("reserved_2", "u1", (8,)),
        ("power_up_us", "<i8"),
        ("sync_offset_us", "<i8"),
        ("sync_drift", "<u4"),
        ("reserved_3", "u1"),
        ("returns", "u1"),
        ("reserved_4", "u1", (2,)),
    ]
)
if INFO_PACKET_DTYPE.itemsize != INFO_PACKET_SIZE:
    raise AssertionError(f"an INFZ packet must be {INFO_PACKET_SIZE} bytes, got {INFO_PACKET_DTYPE.itemsize}")


@dataclass(frozen=True, kw_only=True)
class InfoPacket:
    """Contents of a sensor's information packet.

    Attributes:
        model: Code of the model.
        serial: Serial number.
        firmware: Major, minor, build, patch.
        model_name: Name up to its first zero byte; bytes above 127 as Latin-1.
        part_number: Part number.
        power_up_us: UTC at which the sensor was switched on.
        sync_offset_us: Offset from the sensor's clock to the time that it is synchronised to.
        returns: Returns a firing.
        blocks: Flags of optional blocks behind the common header, which are not read; a packet made here has none.
    """

    model: int
    serial: int
    firmware: tuple[int, int, int, int]
    model_name: str
    part_number: int
    power_up_us: int
    sync_offset_us: int
    returns: int
    blocks: int = 0


def encode_info_packet(
    *,
    model: int,
    serial: int,
    firmware: tuple[int, int, int, int],
    model_name: str,
    part_number: int,
    power_up_us: int,
    sync_offset_us: int,
    returns: int,
) -> npt.NDArray[np.uint8]:
    """``uint8[88]``, the payload; arguments are those of ``InfoPacket``.

    Raises:
        ValueError: a value does not fit its field; the text names every such value.
    """
    require(
        (0 <= model < 2**16, f"model must be 0 to 65535, got {model}"),
        (0 <= serial < 2**32, f"serial must be 0 to 4294967295, got {serial}"),
        (len(firmware) == 4 and all(0 <= part <= 255 for part in firmware), f"firmware must be four numbers of 0 to 255, got {firmware}"),
        (
            0 < len(model_name) < _NAME_SIZE and model_name.isascii() and model_name.isprintable(),
            f"model_name must be 1 to {_NAME_SIZE - 1} printable ASCII characters, got {model_name!r}",
        ),
        (0 <= part_number < 2**32, f"part_number must be 0 to 4294967295, got {part_number}"),
        (0 <= power_up_us < 2**63, f"power_up_us must be 0 to 2^63 - 1, got {power_up_us}"),
        (-(2**63) <= sync_offset_us < 2**63, f"sync_offset_us must be -2^63 to 2^63 - 1, got {sync_offset_us}"),
        (returns in {1, 2}, f"returns must be 1 or 2, got {returns}"),
    )
    packet = np.zeros(1, INFO_PACKET_DTYPE)
    packet["signature"] = INFO_SIGNATURE
    packet["header_size"] = INFO_PACKET_SIZE
    packet["version_and_blocks"] = INFO_VERSION << _VERSION_SHIFT
    packet["model"] = model
    packet["serial"] = serial
    packet["firmware"] = packet["firmware_again"] = firmware
    packet["model_name"] = model_name.encode("ascii")
    packet["part_number"] = part_number
    packet["power_up_us"] = power_up_us
    packet["sync_offset_us"] = sync_offset_us
    packet["returns"] = returns
    return packet.view(np.uint8)


@kernel
def write_sync_offset(sync_offset_us: int, payload: npt.NDArray[np.uint8]) -> None:
    """Write what to add to a point's time for UTC into an information packet, ``uint8[>= 88]``."""
    for byte in range(8):
        payload[SYNC_OFFSET + byte] = (sync_offset_us >> (8 * byte)) & 0xFF


def read_info_packet(payload: bytes) -> InfoPacket | None:
    """Contents of an INFZ payload; None unless it is of version 1 with a whole common header."""
    if len(payload) < INFO_PACKET_SIZE or not payload.startswith(INFO_SIGNATURE):
        return None
    packet: Any = np.frombuffer(payload, INFO_PACKET_DTYPE, count=1)[0]
    version = int(packet["version_and_blocks"])
    if version >> _VERSION_SHIFT != INFO_VERSION or not INFO_PACKET_SIZE <= packet["header_size"] <= len(payload):
        return None
    major, minor, build, patch = packet["firmware"].tolist()
    return InfoPacket(
        model=int(packet["model"]),
        serial=int(packet["serial"]),
        firmware=(major, minor, build, patch),
        model_name=bytes(packet["model_name"]).split(b"\0")[0].decode("latin-1"),
        part_number=int(packet["part_number"]),
        power_up_us=int(packet["power_up_us"]),
        sync_offset_us=int(packet["sync_offset_us"]),
        returns=int(packet["returns"]),
        blocks=version & _BLOCK_FLAGS,
    )
