"""What rules know of the controller that judges."""

from dataclasses import dataclass

REST_US = 1_000_000
MOVES_MPS = 0.3  # six times the noise of a receiver


@dataclass
class Situation:
    """Changed by the controller and by the judge."""

    serial: bool
    lockstep: bool = False
    hil: bool = True
    armed: bool = False
    spoken_us: int | None = None  # when the controller's first HEARTBEAT went out
    forgiven_until_us: int = 0  # after a reboot the bridge must be given time to notice
    held_up: bool = False  # the reader itself was late: arrival times are meaningless
    quaternion_wanted: bool = False
    time_lost: bool = False  # frames were never made: the host held the simulator up, and that time is lost to the vehicle; until the next fix
    utc_at_zero_us: int | None = None  # Unix time at the controller's time 0
    altitude_m: float | None = None  # of the last fix
    latitude_deg: float = 0.0
    longitude_deg: float = 0.0
    speed_mps: float = 0.0
    moved_us: int = -10_000_000  # when the GPS last reported motion
    fixed_us: int = -10_000_000  # when the GPS last knew

    def rests(self, now_us: int) -> bool:
        """Disarmed, and at rest for a second by the GPS."""
        return not self.armed and now_us - self.fixed_us < REST_US <= now_us - self.moved_us
