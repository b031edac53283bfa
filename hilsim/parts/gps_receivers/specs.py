"""The table ``[[gps_receiver]]`` of a rig."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hilsim.errors import within
from hilsim.sensor.time_input import GpsSetting
from hilsim.transmit.links.line import SerialSpec


@dataclass(frozen=True, kw_only=True)
class GpsReceiverSpec(SerialSpec):
    """A GPS receiver on a serial port, for lidar software and time servers: $GPRMC each second, begun as the second begins.

    Attributes:
        latitude_deg: Latitude of the world's point ``origin_m``, north positive.
        longitude_deg: Longitude of the world's point ``origin_m``, east positive.
        origin_m: World east and north (m) of the point with that latitude and longitude.
        valid: Receiver status in the sentence.
    """

    baud: int = 9600
    latitude_deg: float
    longitude_deg: float
    origin_m: tuple[float, float] = (0.0, 0.0)
    valid: bool = True

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Yield each rule as a condition and its error message."""
        yield from super().rules()
        yield from within(self, latitude_deg=(-89.9, 89.9), longitude_deg=(-180, 180))

    @property
    def setting(self) -> GpsSetting:
        """The receiver as a sensor has it, whose sentences name the second in progress from its beginning on."""
        return GpsSetting(
            latitude_deg=self.latitude_deg, longitude_deg=self.longitude_deg, origin_m=self.origin_m, valid=self.valid, sentence_delay_ms=0.0
        )


def receiver_names(specs: Sequence[GpsReceiverSpec]) -> tuple[str, ...]:
    """Names of a rig's receivers."""
    return tuple(f"gps-receiver-{number + 1}" for number in range(len(specs)))
