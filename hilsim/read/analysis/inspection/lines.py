"""Lines of the report of an inspection, and those that flows of all families share."""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from hilsim.read.analysis.inspection.result import DeviceClock, FlowSummary, Missing, Place

_TICKING_RATIO = 0.9
_UNEVEN_RATIO = 0.5
_MIN_INTERVALS = 50
_CROWDED_RATIO = 0.2
_STANDING_RATIO = 0.5
_TELLING_ERROR_PPM = 100.0


class Tone(StrEnum):
    """Kind of a line, which decides its colour."""

    FILE = "file"
    SENSOR = "sensor"
    PLAIN = "plain"
    PROBLEM = "problem"
    NEXT = "next"


class Line(NamedTuple):
    """A line of the report."""

    text: str
    tone: Tone = Tone.PLAIN


def seconds(duration_s: float) -> str:
    """Format a duration."""
    return f"{duration_s:.3f} s" if duration_s < 100.0 else f"{duration_s:,.1f} s"


def at(place: Place) -> str:
    """Format a place in the capture."""
    return f"frame {place.frame} ({place.at_s:.3f} s)"


def counted(count: int, thing: str) -> str:
    """Format a number of things."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def detail(label: str, text: str) -> Line:
    """Make a line on a flow."""
    return Line(f"      {label:9} {text}")


def problem(text: str) -> Line:
    """Make a line on a problem of a flow."""
    return Line(f"    ! {text}", Tone.PROBLEM)


def times(count: int) -> str:
    """Format how often something happened."""
    return "once" if count == 1 else f"{count:,} times"


def pace_problem(flow: FlowSummary) -> str | None:
    """Reason why capture times are a bad pace for a flow with its own stamps, or None."""
    spacing = flow.spacing
    if flow.clock is None or spacing is None or spacing.intervals < _MIN_INTERVALS:
        return None
    if flow.clock.repeated > _STANDING_RATIO * flow.packets:
        return None
    if spacing.whole_millisecond_ratio >= _TICKING_RATIO:
        return "capture times are whole milliseconds"
    is_uneven = spacing.p99_us - spacing.p1_us > _UNEVEN_RATIO * spacing.p50_us
    return "capture times are uneven, not those of a network card" if is_uneven else None


def captured_lines(flow: FlowSummary) -> Iterator[Line]:
    """Yield lines on capture times, and on their relation to the sensor's clock if it is known."""
    spacing = flow.spacing
    if spacing is None or spacing.intervals < _MIN_INTERVALS:
        return
    clock = flow.clock
    spread = f"every {spacing.mean_us:,.1f} us ({spacing.p1_us:,.0f} to {spacing.p99_us:,.0f} for 98 %)"
    yield detail("captured", spread + ("" if clock is None else _drift(clock)))
    reason = pace_problem(flow)
    if reason is not None:
        yield problem(f"{reason}: pace by the sensor's stamps (--pace device)")


def _drift(clock: DeviceClock) -> str:
    drift_ppm, error_ppm = clock.host_drift_ppm, clock.host_drift_error_ppm
    if not error_ppm < _TELLING_ERROR_PPM:
        return ""
    if abs(drift_ppm) <= 2.0 * error_ppm:
        return f", sensor and host clocks agree within {2.0 * error_ppm:.0f} ppm"
    return f", sensor clock {abs(drift_ppm):,.1f} ± {error_ppm:.1f} ppm {'slower' if drift_ppm > 0 else 'faster'} than host"


def missing_lines(missing: Missing | None) -> Iterator[Line]:
    """Yield lines on missing packets."""
    if missing is None or missing.longest_after is None:
        return
    where = f"after {at(missing.longest_after)}"
    if missing.runs == 1:
        yield problem(f"{counted(missing.packets, 'packet')} missing {where}")
    else:
        most = f"at most {missing.longest_run:,} together, {where}"
        yield problem(f"{counted(missing.packets, 'packet')} missing in {missing.runs:,} places, {most}")


def clock_lines(clock: DeviceClock, packets: int) -> Iterator[Line]:
    """Yield lines on irregular stamps."""
    if clock.repeated > _STANDING_RATIO * packets:
        yield problem("stamps stand still: pace by capture times")
    elif clock.repeated:
        yield problem(f"{counted(clock.repeated, 'packet')} with the stamp of the one before")
    if clock.out_of_order:
        yield problem(f"{counted(clock.out_of_order, 'packet')} out of order by the stamps")
    if clock.jumps > _CROWDED_RATIO * packets:
        yield problem(f"stamps jump in {clock.jumps:,} of {packets:,} packets: do several sensors share this address and port?")
    elif clock.first_jump is not None:
        first = "at" if clock.jumps == 1 else "first at"
        yield problem(f"stamps jump {times(clock.jumps)}, {first} {at(clock.first_jump)}: the clock was set, or the capture was joined")
