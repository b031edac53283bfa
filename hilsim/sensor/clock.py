"""A sensor's own clock: exact integer arithmetic from firing indices to rig time and time stamps.

Device time is the oscillator's count in nanoseconds, 0 at the sensor's first firing. Firing times are exact multiples of the model's constants in device time
(a VLP-16 firing sequence is 55,296 ns, a packet 1,327,104 ns = 165,888/125 us), so rounding errors do not accumulate. The oscillator's error in
parts per billion scales device time to rig time by integer division.
"""

import math
from typing import NamedTuple

from hilsim.compilation.jit import kernel
from hilsim.sensor.specs import ClockSetting
from hilsim.sensor.unit.wander import StampWander, no_stamp_wander, stamp_wander_ns
from hilsim.units import HOUR_US, NS_PER_S, WHOLE_PPB

_MAX_WANDER_SD = 5.0
"""Standard deviations of the wander by which a free clock begins later, so that none of its first stamps is one of the hour before."""


class DeviceClock(NamedTuple):
    """Kernel-side clock of a sensor.

    Attributes:
        start_ns: Rig time of the sensor's first firing.
        oscillator_ppb: Gain of device time over rig time, in ns per second.
        stamp_ppb: Gain of the stamps over device time, in ns per second.
        follows_pulse: Whether stamps follow UTC, with their sub-second part set at each UTC second.
        counts_utc: Whether the counter that never wraps follows UTC instead of counting on from ``stamp_offset_ns``.
        stamp_offset_ns: Value of the stamps at the first firing (free clock).
        utc_epoch_ns: UTC of rig time 0, in ns since 1970.
        wander: Wander of the stamps past the hour.
    """

    start_ns: int
    oscillator_ppb: int
    stamp_ppb: int
    follows_pulse: bool
    counts_utc: bool
    stamp_offset_ns: int
    utc_epoch_ns: int
    wander: StampWander


def build_device_clock(
    setting: ClockSetting, *, follows_pulse: bool, start_ns: int, utc_epoch_ns: int, wander: StampWander | None = None
) -> DeviceClock:
    """Build the kernel-side clock of a setting.

    Args:
        setting: Settings of the clock.
        follows_pulse: Whether the clock is synchronised: ``setting.sync`` resolved for this sensor.
        start_ns: Rig time of the sensor's first firing.
        utc_epoch_ns: UTC of rig time 0, in ns since 1970.
        wander: Wander of the stamps past the hour; None: none.
    """
    wander = wander or no_stamp_wander()
    starts_at_utc = setting.stamps == "utc" and not follows_pulse
    return DeviceClock(
        start_ns=start_ns,
        oscillator_ppb=round((setting.oscillator_ppm or 0.0) * 1000),
        stamp_ppb=round((setting.stamp_ppm or 0.0) * 1000),
        follows_pulse=follows_pulse,
        counts_utc=setting.stamps == "utc" and follows_pulse,
        stamp_offset_ns=utc_epoch_ns + start_ns if starts_at_utc else round(setting.offset_s * NS_PER_S + _MAX_WANDER_SD * wander.sd_ns),
        utc_epoch_ns=utc_epoch_ns,
        wander=wander,
    )


@kernel
def scaled_down(duration_ns: int, gain_ppb: int) -> int:
    """``floor(duration / (1 + gain))`` exactly, without overflow up to centuries."""
    if gain_ppb == 0:
        return duration_ns
    divisor = WHOLE_PPB + gain_ppb
    whole = duration_ns // divisor
    rest = duration_ns - whole * divisor
    return whole * WHOLE_PPB + (rest * WHOLE_PPB) // divisor


@kernel
def remainder_of(duration_ns: int, gain_ppb: int) -> int:
    """Remainder of the division that ``scaled_down`` makes, from 0 to its divisor."""
    divisor = WHOLE_PPB + gain_ppb
    return (duration_ns % divisor * WHOLE_PPB) % divisor


@kernel
def lost_ns(duration_ns: int, gain_ppb: int) -> float:
    """Fraction of a nanosecond by which ``scaled_down`` is less than the exact quotient, 0 to less than 1."""
    return float(remainder_of(duration_ns, gain_ppb) / (WHOLE_PPB + gain_ppb))


@kernel
def scaled_up(duration_ns: int, gain_ppb: int) -> int:
    """``floor(duration * (1 + gain))`` exactly, without overflow up to centuries."""
    if gain_ppb == 0:
        return duration_ns
    whole = duration_ns // WHOLE_PPB
    rest = duration_ns - whole * WHOLE_PPB
    return duration_ns + whole * gain_ppb + (rest * gain_ppb) // WHOLE_PPB


@kernel
def rig_from_device(clock: DeviceClock, device_ns: int) -> int:
    """Rig time (ns) of a device time (ns)."""
    return clock.start_ns + scaled_down(device_ns, clock.oscillator_ppb)


@kernel
def rig_after(clock: DeviceClock, rig_ns: int, remainder: int, offset_ns: int) -> int:
    """``rig_from_device`` of ``device_ns + offset_ns``, without its divisions of integers: for offsets of up to a second.

    Args:
        clock: The clock.
        rig_ns: ``rig_from_device`` of ``device_ns``.
        remainder: ``remainder_of`` ``device_ns`` and the clock's ``oscillator_ppb``.
        offset_ns: Device time since then.
    """
    gain_ppb = clock.oscillator_ppb
    return rig_ns + offset_ns + math.floor((remainder - offset_ns * gain_ppb) / (WHOLE_PPB + gain_ppb))


@kernel
def device_from_rig(clock: DeviceClock, rig_ns: int) -> int:
    """Device time (ns) of a rig time (ns), within 1 ns of the inverse of ``rig_from_device``."""
    return scaled_up(rig_ns - clock.start_ns, clock.oscillator_ppb)


@kernel
def stamp_us(clock: DeviceClock, device_ns: int) -> int:
    """Time stamp at a device time: microseconds past the hour, truncated, 0..3,599,999,999.

    With a pulse the sub-second part counts oscillator time since the last UTC second (VLP-16 manual page 123: it is set at every valid edge).
    """
    if clock.follows_pulse:
        utc_ns = clock.utc_epoch_ns + rig_from_device(clock, device_ns)
        second = utc_ns // NS_PER_S
        since_edge_ns = scaled_up(scaled_up(utc_ns - second * NS_PER_S, clock.oscillator_ppb), clock.stamp_ppb) + stamp_wander_ns(
            clock.wander, device_ns
        )
        return (second % 3600 * 1_000_000 + since_edge_ns // 1000) % HOUR_US
    return (clock.stamp_offset_ns + scaled_up(device_ns, clock.stamp_ppb) + stamp_wander_ns(clock.wander, device_ns)) // 1000 % HOUR_US


def shown_utc_ns(clock: DeviceClock, device_ns: int) -> int:
    """Time that stamps show at a device time, in ns: of a free clock from ``stamp_offset_ns`` on, of one that follows pulses since 1970."""
    if not clock.follows_pulse:
        return clock.stamp_offset_ns + int(scaled_up(device_ns, clock.stamp_ppb))
    utc_ns = clock.utc_epoch_ns + int(rig_from_device(clock, device_ns))
    return utc_ns - utc_ns % NS_PER_S + int(scaled_up(scaled_up(utc_ns % NS_PER_S, clock.oscillator_ppb), clock.stamp_ppb))


def continued_offset_ns(former: DeviceClock, clock: DeviceClock, device_ns: int) -> int:
    """``stamp_offset_ns`` of a clock whose stamps go on, at a device time, where the former one's are if it runs free: it counts on after its last pulse."""
    if clock.follows_pulse or not former.follows_pulse:
        return former.stamp_offset_ns
    return shown_utc_ns(former, device_ns) - int(scaled_up(device_ns, clock.stamp_ppb))


@kernel
def counter_us(clock: DeviceClock, device_ns: int) -> int:
    """Counter of microseconds that never wraps: it counts from ``stamp_offset_ns`` or follows UTC."""
    if clock.counts_utc:
        return (clock.utc_epoch_ns + rig_from_device(clock, device_ns)) // 1000
    return (clock.stamp_offset_ns + scaled_up(device_ns, clock.stamp_ppb)) // 1000


@kernel
def utc_lead_us(clock: DeviceClock, device_ns: int) -> int:
    """Lead of UTC over ``counter_us``, in microseconds: 0 where the counter follows UTC; variable where the clock drifts."""
    if clock.counts_utc:
        return 0
    return (clock.utc_epoch_ns + rig_from_device(clock, device_ns) - clock.stamp_offset_ns - scaled_up(device_ns, clock.stamp_ppb)) // 1000
