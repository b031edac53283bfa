"""Settings and identity of a Livox, as its host sets them by commands."""

from dataclasses import dataclass
from typing import Literal

from hilsim.errors import require, within

WHOLE_VIEW_DEG = (0, 360, -10, 60)


@dataclass(frozen=True, kw_only=True)
class LivoxSetting:
    """Settings and identity of a Livox, as its host sets them by commands.

    Attributes:
        serial: Serial number, at most 15 characters; empty: one made of the sensor's number (key 0x8000).
        pcl_data_type: Type of points: 1: x, y and z in mm; 2: in cm; 3: distance and angles (key 0x0000).
        work_mode: It sends points and IMU packets in ``sampling`` alone (key 0x001A).
        imu: Whether it sends IMU packets (key 0x001C).
        fov_deg: Two windows, each as first and last azimuth (0 to 360, counter-clockwise from ahead) and lowest and highest elevation (-10 to 60); where one is
            enabled, shots outside of all that are have no return (keys 0x0015 and 0x0016).
        fov_enable: Windows that are enabled: 1 the first one, 2 the second one, 3 both, 0 none (key 0x0017).
        install_rotation_deg: Roll, pitch and yaw of its installation, which it keeps for hosts and does not apply (key 0x0012).
        install_position_mm: Place of its installation, x, y and z, which it keeps for hosts and does not apply (key 0x0012).
        detect_mode: ``sensitive`` is kept for hosts; what it changes is not known (key 0x0018).
        blind_spot_cm: Range from which a HAP reports points, 50 to 200 (key 0x0013).
    """

    serial: str = ""
    pcl_data_type: Literal[1, 2, 3] = 1
    work_mode: Literal["sampling", "ready", "idle"] = "sampling"
    imu: bool = True
    fov_deg: tuple[tuple[int, int, int, int], tuple[int, int, int, int]] = (WHOLE_VIEW_DEG, WHOLE_VIEW_DEG)
    fov_enable: Literal[0, 1, 2, 3] = 0
    install_rotation_deg: tuple[float, float, float] = (0.0, 0.0, 0.0)
    install_position_mm: tuple[int, int, int] = (0, 0, 0)
    detect_mode: Literal["normal", "sensitive"] = "normal"
    blind_spot_cm: int = 50

    def __post_init__(self) -> None:
        require(
            (self.serial.isascii() and len(self.serial) <= 15, f'serial must be at most 15 ASCII characters, got "{self.serial[:40]}"'),
            *(
                (
                    0 <= left <= 360 and 0 <= right <= 360 and -10 <= low <= high <= 60,
                    f"fov_deg must be azimuths of 0 to 360 and elevations of -10 to 60, the lower one first, got {[left, right, low, high]}",
                )
                for left, right, low, high in self.fov_deg
            ),
            *within(self, blind_spot_cm=(50, 200)),
        )

    @property
    def windows_deg(self) -> tuple[tuple[int, int, int, int], ...]:
        """Windows that are enabled."""
        return tuple(window for number, window in enumerate(self.fov_deg) if self.fov_enable >> number & 1)


SETTING = LivoxSetting
CHANGES_LIVE = True
