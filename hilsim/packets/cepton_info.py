"""The sensor information packet ``INFZ`` that goes beside STDV points: UDP payload, little-endian.

**Measured, not vendor-documented.**

======  ====  ===========================================================================================
offset  size  field
======  ====  ===========================================================================================
0       4     ASCII ``INFZ``
4       1     length of this header, 88
5       1     8: version 1 in the upper bits, no blocks in the low three (blocks crash the vendor's SDK 2)
8       2     model
12      4     serial number
16      4     firmware version, major in the lowest byte
20      28    model name
48      4     part number
52      4     firmware version once more, where SDK 3 looks for some models
64      8     power-up, microseconds UTC
72      8     what to add to a point's time for UTC, microseconds
85      1     returns of a firing
======  ====  ===========================================================================================

Found by changing byte after byte of an accepted packet and looking at what ``cepton-sdk2`` 2.1.4 and ``cepton-sdk3`` 3.0.17 then say of the sensor; the vendor's document names the packet,
its table could not be read. Bytes not listed are 0.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilsim._jit import kernel
from hilsim.errors import require

INFO_SIGNATURE = b"INFZ"
INFO_PACKET_SIZE = 88
_VERSION_1_WITHOUT_BLOCKS = 8
_NAME_SIZE = 28
SYNC_OFFSET = 72

INFO_PACKET_DTYPE = np.dtype(
    {
        "names": [
            "signature", "header_size", "version", "model", "serial", "firmware", "model_name", "part_number", "firmware_again", "power_up_us", "sync_offset_us",
            "returns",
        ],
        "formats": ["S4", "u1", "u1", "<u2", "<u4", "(4,)u1", f"S{_NAME_SIZE}", "<u4", "(4,)u1", "<i8", "<i8", "u1"],
        "offsets": [0, 4, 5, 8, 12, 16, 20, 48, 52, 64, 72, 85],
        "itemsize": INFO_PACKET_SIZE,
    }
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class InfoPacket:
    """What an information packet says.

    Attributes:
        model: Code of the model (public header ``cepton_sdk3.h``).
        serial: Serial number.
        firmware: Major, minor, build and patch.
        model_name: ASCII, at most 27 characters.
        part_number: Part number.
        power_up_us: UTC of the counter's zero.
        sync_offset_us: What to add to a point's time for UTC; 0 where the sensor is not synchronised.
        returns: Returns of a firing.
    """

    model: int
    serial: int
    firmware: tuple[int, int, int, int]
    model_name: str
    part_number: int
    power_up_us: int
    sync_offset_us: int
    returns: int

    def __post_init__(self) -> None:
        require(
            (0 <= self.model < 2**16, f"model must be 0 to 65535, got {self.model}"),
            (0 <= self.serial < 2**32, f"serial must be 0 to 4294967295, got {self.serial}"),
            (all(0 <= part <= 255 for part in self.firmware), f"firmware must be four numbers of 0 to 255, got {self.firmware}"),
            (
                self.model_name.isascii() and len(self.model_name) < _NAME_SIZE,
                f'model_name must be ASCII of at most 27 characters, got "{self.model_name}"',
            ),
            (0 <= self.part_number < 2**32, f"part_number must be 0 to 4294967295, got {self.part_number}"),
            (-(2**63) <= self.power_up_us < 2**63, f"power_up_us must fit 64 bits, got {self.power_up_us}"),
            (-(2**63) <= self.sync_offset_us < 2**63, f"sync_offset_us must fit 64 bits, got {self.sync_offset_us}"),
            (1 <= self.returns <= 255, f"returns must be 1 to 255, got {self.returns}"),
        )


def encode_info_packet(packet: InfoPacket) -> npt.NDArray[np.uint8]:
    """``uint8[88]``, the payload."""
    record = np.zeros(1, INFO_PACKET_DTYPE)
    record["signature"], record["header_size"], record["version"] = INFO_SIGNATURE, INFO_PACKET_SIZE, _VERSION_1_WITHOUT_BLOCKS
    for name, value in vars(packet).items():
        record[name] = value.encode() if isinstance(value, str) else value
    record["firmware_again"] = packet.firmware
    return record.view(np.uint8)


@kernel
def write_sync_offset(sync_offset_us: int, payload: npt.NDArray[np.uint8]) -> None:
    """Write what to add to a point's time for UTC into an information packet, ``uint8[>= 88]``."""
    for byte in range(8):
        payload[SYNC_OFFSET + byte] = (sync_offset_us >> (8 * byte)) & 0xFF


def read_info_packet(payload: bytes) -> InfoPacket | None:
    """What a payload says, or None where it is no information packet of this layout; the name ends at its first zero."""
    if len(payload) < INFO_PACKET_SIZE or not payload.startswith(INFO_SIGNATURE) or payload[5] >> 3 != 1:
        return None
    record = np.frombuffer(payload, INFO_PACKET_DTYPE, count=1)[0]
    name = bytes(record["model_name"]).split(b"\0")[0]
    if len(name) == _NAME_SIZE:
        return None
    major, minor, build, patch = (int(part) for part in record["firmware"])
    return InfoPacket(
        model=int(record["model"]),
        serial=int(record["serial"]),
        firmware=(major, minor, build, patch),
        model_name=name.decode("ascii", "replace").replace("\ufffd", "?"),
        part_number=int(record["part_number"]),
        power_up_us=int(record["power_up_us"]),
        sync_offset_us=int(record["sync_offset_us"]),
        returns=max(int(record["returns"]), 1),
    )
