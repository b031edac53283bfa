"""Keys of a sensor's settings and facts: one table of their lengths, who writes them, their values of the factory, and which values are accepted.

All values are stored as they were sent. Five of them act on packets: the type of the points, both destinations, the mode of work and the IMU's switch; and the
destination of states on push messages. The others are stored and shown alone: a pattern mode has no effect on a real Mid-360 either.

Sources: Livox-SDK2 1.4.3 (include/livox_lidar_def.h); Livox wiki, "Mid-360 communication protocol" and "HAP communication protocol". Not established: which
values a real unit refuses; a value outside the documented ones is out of range here, and 0x11 (two returns, of an Avia 2) is one for the other models.
"""

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType

from hilsim.families.livox.protocol.commands import ReturnCode

ATTITUDE = struct.Struct("<3f3i")
"""Value of the installation: roll, pitch and yaw in degrees, x, y and z in mm."""
FOV = struct.Struct("<iiiiI")
"""Value of a window: first and last azimuth, lowest and highest elevation in degrees, reserved."""
_DESTINATION = struct.Struct("<4sHH")
_YAW_DEG, _PITCH_DEG, _BLIND_CM = range(361), range(-10, 61), range(50, 201)
MID360, MID360S, HAP = "mid360", "mid360s", "hap"
_ALL = frozenset({MID360, MID360S, HAP})
_MID = frozenset({MID360, MID360S})
_NEW = frozenset({MID360S})
_HAP = frozenset({HAP})


class Work(IntEnum):
    """Work states; hosts may ask for the first, the second and the last one."""

    SAMPLING = 1
    IDLE = 2
    ERROR = 4
    SELFCHECK = 5
    MOTOR_STARTUP = 6
    UPGRADE = 8
    READY = 9


@dataclass(frozen=True, kw_only=True)
class Ports:
    """UDP ports of a sensor for commands, push messages, points and inertial packets, and how much larger those of its hosts are."""

    command: int
    push: int
    points: int
    imu: int
    step: int

    def of(self, key: int) -> int:
        """Port that packets of a destination's key leave."""
        return {STATE_HOST: self.push, POINT_HOST: self.points, IMU_HOST: self.imu}[key]


MID360_PORTS = Ports(command=56100, push=56200, points=56300, imu=56400, step=1)
HAP_PORTS = Ports(command=56000, push=56000, points=57000, imu=58000, step=0)
SEARCH_PORT = 56000
MODELS = MappingProxyType({9: (MID360, MID360_PORTS), 10: (HAP, HAP_PORTS), 35: (MID360S, MID360_PORTS)})
"""Model and ports by the number of the model in answers to a host."""

POINT_TYPE, STATE_HOST, POINT_HOST, IMU_HOST, TARGET, IMU_ENABLED = 0x0000, 0x0005, 0x0006, 0x0007, 0x001A, 0x001C
INSTALLATION, BLIND_SPOT, FIRST_FOV, SECOND_FOV, FOV_ENABLED, DETECTION = 0x0012, 0x0013, 0x0015, 0x0016, 0x0017, 0x0018
SERIAL, WORK_STATE, FIRMWARE_KIND = 0x8000, 0x8006, 0x8010


@dataclass(frozen=True, kw_only=True)
class Key:
    """A key.

    Attributes:
        name: Name in the vendor's documents.
        size: Bytes of its value.
        accepts: Whether a value of this size, for a sensor with these ports, is accepted; None: hosts cannot write it.
        factory: Value of the factory.
        models: Models that have it.
    """

    name: str
    size: int
    accepts: Callable[[bytes, Ports], bool] | None = None
    factory: bytes = b""
    models: frozenset[str] = field(default=_ALL)


def _one_of(name: str, *values: int, factory: int = 0, models: frozenset[str] = _ALL) -> Key:
    return Key(name=name, size=1, accepts=lambda value, _: value[0] in values, factory=bytes([factory]), models=models)


def _free(name: str, size: int, models: frozenset[str] = _ALL, factory: bytes = b"") -> Key:
    return Key(name=name, size=size, accepts=lambda _value, _ports: True, factory=factory or bytes(size), models=models)


def _destination(name: str, key: int) -> Key:
    def accepts(value: bytes, ports: Ports) -> bool:
        address, port, source = _DESTINATION.unpack(value)
        return address[0] not in {0, 255} and port > 0 and source == ports.of(key)

    return Key(name=name, size=_DESTINATION.size, accepts=accepts, factory=bytes(_DESTINATION.size))


def _fov(name: str) -> Key:
    def accepts(value: bytes, _ports: Ports) -> bool:
        left, right, low, high, _ = FOV.unpack(value)
        return left in _YAW_DEG and right in _YAW_DEG and _PITCH_DEG[0] <= low <= high <= _PITCH_DEG[-1]

    return Key(name=name, size=FOV.size, accepts=accepts, factory=FOV.pack(0, 360, -10, 60, 0), models=_MID)


def _is_attitude(value: bytes, _ports: Ports) -> bool:
    return all(map(math.isfinite, ATTITUDE.unpack(value)))


def _is_blind_spot(value: bytes, _ports: Ports) -> bool:
    return int.from_bytes(value, "little") in _BLIND_CM


def _fact(name: str, size: int, models: frozenset[str] = _ALL) -> Key:
    return Key(name=name, size=size, models=models)


KEYS: Mapping[int, Key] = MappingProxyType(
    {
        POINT_TYPE: _one_of("pcl_data_type", 1, 2, 3, factory=1),
        0x0001: _one_of("pattern_mode", 0, 1, 2),
        0x0002: _one_of("dual_emit_en", 0, 1, models=_HAP),
        0x0003: _one_of("point_send_en", 0, 1, models=_HAP),
        0x0004: _free("lidar_ipcfg", 12),
        STATE_HOST: _destination("state_info_host_ipcfg", STATE_HOST),
        POINT_HOST: _destination("pointcloud_host_ipcfg", POINT_HOST),
        IMU_HOST: _destination("imu_host_ipcfg", IMU_HOST),
        INSTALLATION: Key(name="install_attitude", size=ATTITUDE.size, accepts=_is_attitude, factory=bytes(ATTITUDE.size)),
        BLIND_SPOT: Key(name="blind_spot_set", size=4, accepts=_is_blind_spot, factory=bytes((50, 0, 0, 0)), models=_HAP),
        FIRST_FOV: _fov("fov_cfg0"),
        SECOND_FOV: _fov("fov_cfg1"),
        FOV_ENABLED: _one_of("fov_cfg_en", 0, 1, 2, 3, models=_MID),
        DETECTION: _one_of("detect_mode", 0, 1),
        0x0019: _free("func_io_cfg", 4),
        TARGET: _one_of("work_tgt_mode", Work.SAMPLING, Work.IDLE, Work.READY, factory=Work.IDLE),
        IMU_ENABLED: _one_of("imu_data_en", 0, 1, factory=1),
        0x0020: _one_of("workmode_after_boot", 0, 1, 2, models=_HAP),
        0x0021: _one_of("esc_mode", 0, 1, models=_MID),
        0x0022: _one_of("fov_mode", 0, 1, models=_NEW),
        0x0024: _one_of("echo_mode", 0, 1, models=_NEW),
        0x0025: _free("ntp_server_ip", 4, _NEW),
        0x0026: _one_of("pps_sync_mode", 0, 1, models=_NEW),
        0x0027: _one_of("ito_ctrl", 0, 1, 2, models=_NEW),
        0x0028: _one_of("fog_noise_filter", 0, 1, 2, models=_NEW),
        0x002B: _free("imu_range", 3, _NEW),
        SERIAL: _fact("sn", 16),
        0x8001: _fact("product_info", 64),
        0x8002: _fact("version_app", 4),
        0x8003: _fact("version_loader", 4),
        0x8004: _fact("version_hardware", 4),
        0x8005: _fact("mac", 6),
        WORK_STATE: _fact("cur_work_state", 1),
        0x8007: _fact("core_temp", 4),
        0x8008: _fact("powerup_cnt", 4),
        0x8009: _fact("local_time_now", 8),
        0x800A: _fact("last_sync_time", 8),
        0x800B: _fact("time_offset", 8),
        0x800C: _fact("time_sync_type", 1),
        0x800D: _fact("status_code", 32, _HAP),
        0x800E: _fact("lidar_diag_status", 2),
        FIRMWARE_KIND: _fact("fw_type", 1),
        0x8011: _fact("hms_code", 32, _MID),
    }
)


def keys_of(model: str) -> dict[int, Key]:
    """Keys that a model has: ``mid360``, ``mid360s`` or ``hap``."""
    return {number: key for number, key in KEYS.items() if model in key.models}


def fault_of(number: int, value: bytes, keys: Mapping[int, Key], ports: Ports) -> ReturnCode:
    """``OK`` if a host may write a value to a key, else why not."""
    key = keys.get(number)
    if key is None:
        return ReturnCode.UNKNOWN_KEY
    if key.accepts is None:
        return ReturnCode.READ_ONLY
    if len(value) != key.size:
        return ReturnCode.BAD_LENGTH
    return ReturnCode.OK if key.accepts(value, ports) else ReturnCode.OUT_OF_RANGE


@dataclass(frozen=True, kw_only=True)
class Destination:
    """Value of a destination's key: IPv4 address and port; the port that packets leave is the sensor's."""

    address: str
    port: int

    @classmethod
    def read(cls, value: bytes) -> "Destination":
        """Destination of a value of 8 bytes; address ``0.0.0.0`` where none has been set."""
        address, port, _ = _DESTINATION.unpack(value)
        return cls(address=".".join(map(str, address)), port=port)

    def value(self, source_port: int) -> bytes:
        """Value of the key."""
        return _DESTINATION.pack(address_bytes(self.address), self.port, source_port)


def address_bytes(address: str) -> bytes:
    """Four bytes of an IPv4 address."""
    return bytes(map(int, address.split(".")))
