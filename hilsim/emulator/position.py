"""Sentences of a lidar's receiver, and times of its position packets, without Python objects."""

import math

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import load_acquire
from hilsim.compilation.jit import kernel
from hilsim.emulator.plan import Gps, LidarPlan
from hilsim.protocols.nmea import write_gprmc
from hilsim.sensor.clock import DeviceClock, rig_from_device
from hilsim.units import NS_PER_S
from hilsim.world.geometry.geodesy import geodetic
from hilsim.world.platforms.platform import Platform, platform_state

_SPEED_SPAN_NS = 100_000_000


@kernel
def _write_heard(gps: Gps, rig_ns: int, sentence: npt.NDArray[np.uint8]) -> int:
    """Write the newest sentence of a receiver outside that has come by a rig time, as it came; returns its size, 0 if there is none."""
    heard = gps.heard
    count = load_acquire(heard.written, (0,))
    for back in range(1, min(count, heard.size.size - 1) + 1):  # the row after the newest one may be written meanwhile
        row = (count - back) % heard.size.size
        if heard.at_ns[row] <= rig_ns:
            for place in range(heard.size[row]):
                sentence[place] = heard.text[row, place]
            return int(heard.size[row])
    return 0


@kernel
def write_sentence(clock: DeviceClock, gps: Gps, platform: Platform, rig_ns: int, sentence: npt.NDArray[np.uint8], seconds: int = 0) -> int:
    """Write the sentence the sensor holds at ``rig_ns``; returns its size, 0 without a receiver.

    It names the second in progress once it has arrived (``sentence_delay_ns`` after the pulse), the one before until then, and the position at
    the start of the second it names, or of that which is ``seconds`` before where it names one of these.
    """
    if not gps.present:
        return _write_heard(gps, rig_ns, sentence)
    second = (clock.utc_epoch_ns + rig_ns - gps.sentence_delay_ns) // NS_PER_S
    fix_ns = second * NS_PER_S - clock.utc_epoch_ns
    before, _ = platform_state(platform, fix_ns - _SPEED_SPAN_NS)
    now, _ = platform_state(platform, fix_ns)
    east_mps = (now[0] - before[0]) * 1e9 / _SPEED_SPAN_NS
    north_mps = (now[1] - before[1]) * 1e9 / _SPEED_SPAN_NS
    speed_mps = math.hypot(east_mps, north_mps)
    course_deg = math.degrees(math.atan2(east_mps, north_mps)) % 360.0 if speed_mps > 0.0 else 0.0
    latitude, longitude = geodetic(gps.latitude_deg, gps.longitude_deg, now[0] - gps.origin_east_m, now[1] - gps.origin_north_m)
    return write_gprmc(second + seconds, gps.valid, latitude, longitude, speed_mps, course_deg, sentence)


@kernel
def position_deadline_ns(plan: LidarPlan, device_ns: int) -> int:
    """Rig time at which the position or information packet assembled at ``device_ns`` is due."""
    return rig_from_device(plan.clock, device_ns) + plan.position.latency_ns + plan.data_latency_ns
