"""State of a sensor behind its control interface: settings in three places, user data, status, and what metadata follow from them.

``staged`` holds what requests have set, ``active`` what packets show, ``saved`` what a restart takes. A reinitialisation makes staged settings active and
takes the next ``initialization_id``, by which clients tell packets of before and after; it lasts until ``initialized``. Nothing here knows a clock or a socket:
who holds the state compares it before and after a request, and makes packets follow.

Source: ouster-sdk 1.0.1 (ouster_sensor/src/sensor_http_imp.cpp); two public captures of one unit, whose ids follow each other by 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from hilsim.families.ouster.interface.settings import (
    DESTINATION_KEYS,
    STANDBY,
    column_window,
    factory_settings,
    require_compatible,
    staged_settings,
)
from hilsim.families.ouster.protocol.firmware import Firmware, pixel_shifts
from hilsim.families.ouster.protocol.imu import ACCEL_GYRO_NMEA
from hilsim.families.ouster.protocol.metadata import FACT_SETTINGS, SensorMetadata, metadata_document, mode_numbers
from hilsim.families.ouster.protocol.profiles import PROFILES, HeaderKind

INITIALIZING, RUNNING = "INITIALIZING", "RUNNING"
RUNNING_GROUPS = ("lidar_data_format", "imu_data_format")
"""Groups of the metadata that there are only while the sensor runs."""
KEPT = ("user_data", "keeps_user_data", "static_address", "ptp_profile")
"""Names of what is saved beside settings."""
_MAX_ID = (1 << 24) - 1
"""0 is left out: clients take it for a packet without a number."""


@dataclass(frozen=True, kw_only=True)
class Streams:
    """Destination of packets.

    Attributes:
        address: IPv4 address, unicast or multicast; empty: nothing is sent.
        lidar_port: Port of lidar packets; 0: none are sent.
        imu_port: Port of IMU packets; 0: none are sent.
    """

    address: str
    lidar_port: int
    imu_port: int


@dataclass(frozen=True, kw_only=True)
class ControlState:
    """State of a sensor.

    Attributes:
        unit: Facts of the unit; what follows from settings is replaced in ``metadata``.
        active: Settings that packets show.
        staged: Settings that a reinitialisation makes active.
        saved: Settings after a restart.
        initialization_id: Number of the initialisation.
        status: Status word.
        user_data: Text that the user left on the sensor.
        keeps_user_data: Whether it stays when the settings are deleted.
        static_address: Address and prefix that the user gave, or None; it is stored and shown.
        ptp_profile: Profile of PTP.
    """

    unit: SensorMetadata
    active: Mapping[str, Any]
    staged: Mapping[str, Any]
    saved: Mapping[str, Any]
    initialization_id: int
    status: str = RUNNING
    user_data: str = ""
    keeps_user_data: bool = False
    static_address: str | None = None
    ptp_profile: str = "default"

    @classmethod
    def of(cls, unit: SensorMetadata) -> Self:
        """State of a sensor that runs with the settings of its metadata."""
        settings = metadata_document(unit)["config_params"]
        state = cls(unit=unit, active=settings, staged=settings, saved=settings, initialization_id=unit.initialization_id)
        return state.initialized()

    @property
    def firmware(self) -> Firmware:
        """Version of the firmware."""
        return self.unit.firmware

    @property
    def shown(self) -> tuple[object, ...]:
        """Parts that packets show."""
        return self.active, self.initialization_id, self.status

    @property
    def kept(self) -> dict[str, Any]:
        """Parts that are saved."""
        return {"config_params": dict(self.saved), **{name: getattr(self, name) for name in KEPT}}

    @property
    def metadata(self) -> SensorMetadata:
        """Metadata that packets are read by."""
        return metadata_with(self.unit, self.active, initialization_id=self.initialization_id, status=self.status)

    @property
    def is_sending(self) -> bool:
        """Whether packets are sent, if they have a destination."""
        return self.status == RUNNING

    @property
    def streams(self) -> Streams:
        """Destination of packets."""
        return Streams(address=self.active["udp_dest"], lidar_port=self.active["udp_port_lidar"], imu_port=self.active["udp_port_imu"])

    # Requests

    def stage(self, given: Any, peer: str) -> Self:
        """Set staged settings; ``peer`` is the address of the client.

        Raises:
            ValueError: a key or value is wrong; all faults.
        """
        return replace(self, staged=staged_settings(given, self.staged, self.firmware, peer))

    def redirect(self) -> Self:
        """Make staged destinations active, and nothing else."""
        return replace(self, active={**self.active, **{key: self.staged[key] for key in DESTINATION_KEYS if key in self.staged}})

    def reinitialize(self) -> Self:
        """Make staged settings active and begin a new initialisation.

        Raises:
            ValueError: staged settings do not go together; all faults.
        """
        require_compatible(self.staged, self.unit.prod_line)
        return self._begin(self.staged)

    def restart(self) -> Self:
        """Begin a new initialisation with the saved settings."""
        return self._begin(self.saved)

    def reset(self) -> Self:
        """Begin a new initialisation with the settings of the factory."""
        user_data = self.user_data if self.keeps_user_data else ""
        begun = self._begin(factory_settings(self.firmware))
        return replace(begun, saved=begun.active, user_data=user_data, keeps_user_data=self.keeps_user_data and bool(user_data))

    def save(self) -> Self:
        """Keep active settings over a restart."""
        return replace(self, saved=self.active)

    def initialized(self) -> Self:
        """End the initialisation: the sensor runs or is in standby, as its operating mode requires."""
        return replace(self, status=STANDBY if self.active["operating_mode"] == STANDBY else RUNNING)

    def _begin(self, settings: Mapping[str, Any]) -> Self:
        number = self.initialization_id % _MAX_ID + 1
        return replace(self, active=settings, staged=settings, initialization_id=number, status=INITIALIZING)

    # Documents

    def document(self) -> dict[str, Any]:
        """All metadata; groups that need a running sensor are missing else."""
        document = metadata_document(self.metadata)
        document.pop("user_data", None)
        # Settings are echoed as they were set: clients compare their types, too.
        document["config_params"] = dict(self.active)
        return {name: group for name, group in document.items() if self.status == RUNNING or name not in RUNNING_GROUPS}


def metadata_with(unit: SensorMetadata, settings: Mapping[str, Any], *, initialization_id: int, status: str = RUNNING) -> SensorMetadata:
    """Metadata of a unit with other settings.

    Args:
        unit: The unit.
        settings: Whole ``config_params``.
        initialization_id: Number of the initialisation.
        status: Status word.

    Raises:
        ValueError: there are no such metadata.
    """
    mode, profile = settings["lidar_mode"], settings["udp_profile_lidar"]
    columns = mode_numbers(mode)[0]
    bounds = settings["azimuth_window"]
    window = column_window((bounds[0], bounds[1]), columns)
    named = HeaderKind[settings["header_type"]] if "header_type" in settings and profile != "LEGACY" else None
    imu_format = {"imu_measurements_per_packet": 8, "imu_packets_per_frame": settings.get("imu_packets_per_frame", 8)}
    return replace(
        unit,
        settings={key: value for key, value in settings.items() if key not in FACT_SETTINGS},
        lidar_mode=mode,
        lidar_profile=profile,
        imu_profile=settings["udp_profile_imu"],
        imu_data_format=(unit.imu_data_format or imu_format) if settings["udp_profile_imu"] == ACCEL_GYRO_NMEA else None,
        header=None if named is None or named is PROFILES[profile].header else named,
        column_window=None if window == (0, columns - 1) else window,
        pixel_shift_by_row=pixel_shifts(unit.beams.azimuth_deg, columns, unit.firmware, unit.prod_line),
        initialization_id=initialization_id,
        status=status,
    )
