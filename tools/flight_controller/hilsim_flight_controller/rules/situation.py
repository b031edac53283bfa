"""State of the checking controller that rules depend on."""

from dataclasses import dataclass

REST_US = 1_000_000
MOVES_MPS = 0.3  # six times the noise of a receiver


@dataclass
class Situation:
    """State, changed by the controller and by the judge."""

    serial: bool
    lockstep: bool = False
    hil: bool = True
    armed: bool = False
    spoken_us: int | None = None  # time of the controller's first HEARTBEAT
    forgiven_until_us: int = 0  # after a reboot the bridge needs time to notice
    held_up: bool = False  # the reader itself was late: arrival times are meaningless
    quaternion_wanted: bool = False
    time_lost: bool = False  # frames were not made, because the host delayed the simulator, and the vehicle skips that time; until the next fix
    utc_at_zero_us: int | None = None  # Unix time at the controller's time 0
    altitude_m: float | None = None  # altitude of the last fix
    latitude_deg: float = 0.0
    longitude_deg: float = 0.0
    speed_mps: float = 0.0
    moved_us: int = -10_000_000  # latest time at which the GPS reported motion
    fixed_us: int = -10_000_000  # time of the latest fix

    def rests(self, now_us: int) -> bool:
        """Whether it is disarmed, and has been at rest for a second by the GPS."""
        return not self.armed and now_us - self.fixed_us < REST_US <= now_us - self.moved_us
