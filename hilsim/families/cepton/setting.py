"""Settings of the packets of a Cepton-style sensor."""

from dataclasses import dataclass
from typing import Literal

from hilsim.errors import require


@dataclass(frozen=True, kw_only=True)
class CeptonSetting:
    """Settings of the packets of a Cepton-style sensor.

    Attributes:
        header_version: Header version of point packets: 2 (144 points), or 1 (143 points, read by the vendor's SDK 2 and not by SDK 3).
        info_packets: Whether to send a sensor information packet twice a second: SDK 2 requires it to know the sensor, SDK 3 to make frames. The layout
            was measured on the SDKs, the vendor has not
            published it.
        serial: Serial number in the information packet.
        firmware: Firmware version in the information packet, from major to build.
        part_number: Part number in the information packet.
    """

    header_version: Literal[1, 2] = 2
    info_packets: bool = False
    serial: int = 1
    firmware: tuple[int, int, int, int] = (1, 0, 0, 0)
    part_number: int = 0

    def __post_init__(self) -> None:
        require(
            (0 <= self.serial < 2**32, f"serial must be 0 to 4294967295, got {self.serial}"),
            (0 <= self.part_number < 2**32, f"part_number must be 0 to 4294967295, got {self.part_number}"),
            (all(0 <= part <= 255 for part in self.firmware), f"firmware must be four numbers of 0 to 255, got {self.firmware}"),
        )


SETTING = CeptonSetting
CHANGES_LIVE = False
