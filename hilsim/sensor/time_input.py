"""The GPS input of a Velodyne: the time that it makes of pulses and sentences.

The sub-second part of its stamps is set at each pulse that it trusts; minutes and seconds come from the sentences, or count on without them.
Source: VLP-16 user manual, pages 123 to 125 (qualifiers, their defaults, what happens at the first bad pulse). The manual does not give the tolerance of a pulse's
interval, nor what a single deviating sentence does: here a pulse may be 1 ms off, and two sentences in a row must agree.
"""

from dataclasses import dataclass

from hilsim.errors import require, within
from hilsim.sensor.specs import PulseState, PulseWord
from hilsim.units import NS_PER_S

DAY_S = 86_400
_TOLERANCE_NS = 1_000_000
_MISSING_NS = 1_250_000_000
"""Time after a pulse by which the next one must have come."""
_PLAIN_WINDOW = 2
"""Pulses that must have been good where no lock is required."""
_DRIFT_NS = 20_000
"""Difference of a pulse from the clock's second at which the clock is set anew; users measure a locked clock within 50 us."""


@dataclass(frozen=True, kw_only=True)
class Qualifiers:
    """Conditions on pulses and sentences, as the web interface sets them.

    Attributes:
        pps_needs_valid: Pulses are used only while the receiver's sentences are valid.
        pps_needs_lock: Pulses must have been good for ``delay_s`` before they are used.
        delay_s: That time.
        nmea_needs_valid: Sentences are used only while they are valid.
    """

    pps_needs_valid: bool = False
    pps_needs_lock: bool = False
    delay_s: int = 5
    nmea_needs_valid: bool = False

    def __post_init__(self) -> None:
        require(*within(self, delay_s=(0, 65_535)))


class TimeInput:
    """The GPS input of a sensor. Times are rig times in nanoseconds, and do not decrease.

    Attributes:
        qualifiers: Conditions on pulses and sentences; they may change at any time.
        position: Position in the newest sentence that had one, as the sensor's status shows it; empty without.
    """

    def __init__(self, utc_epoch_ns: int, qualifiers: Qualifiers | None = None) -> None:
        """Begin without a pulse; ``utc_epoch_ns`` is the UTC of rig time 0 to some hours, which gives sentences their day."""
        self.qualifiers = qualifiers or Qualifiers()
        self.position = ""
        self._utc_epoch_ns = utc_epoch_ns
        self._pulse_ns: int | None = None
        self._good = 0
        self._is_bad = False
        self._is_valid = False
        self._candidate_ns: int | None = None
        self._epoch_ns: int | None = None
        self._named_ns: int | None = None

    def pulse(self, at_ns: int, free_utc_ns: int) -> PulseState:
        """Take a pulse.

        Args:
            at_ns: Rig time of its edge.
            free_utc_ns: Time that the sensor's stamps show then, in ns since 1970: its whole second is kept where no sentence names another.
        """
        interval_ns = at_ns - self._pulse_ns if self._pulse_ns is not None else None
        self._is_bad = interval_ns is not None and interval_ns < _MISSING_NS and abs(interval_ns - NS_PER_S) > _TOLERANCE_NS
        is_next = interval_ns is not None and abs(interval_ns - NS_PER_S) <= _TOLERANCE_NS
        self._good = 0 if self._is_bad else self._good + 1 if is_next else 1
        self._pulse_ns = at_ns
        if self._named_ns is not None:
            shown_ns = self._named_ns + at_ns
        elif self._epoch_ns is not None:
            shown_ns = self._epoch_ns + at_ns
        else:
            shown_ns = free_utc_ns
        if self._word() == "locked":
            epoch_ns = (shown_ns + NS_PER_S // 2) // NS_PER_S * NS_PER_S - at_ns
            if self._epoch_ns is None or abs(epoch_ns - self._epoch_ns) > _DRIFT_NS:
                self._epoch_ns = epoch_ns
        else:
            self._epoch_ns = None
        return self.state

    def sentence(self, at_ns: int, of_day_s: int | None, *, is_valid: bool) -> PulseState:
        """Take a sentence.

        Args:
            at_ns: Rig time at which its last byte came.
            of_day_s: UTC second of the day that it names, which began with the pulse before; None: it names none that can be used.
            is_valid: Whether the receiver says that it is valid.
        """
        self._is_valid = is_valid
        usable = of_day_s is not None and (is_valid or not self.qualifiers.nmea_needs_valid)
        if not usable or self._pulse_ns is None or at_ns - self._pulse_ns >= _MISSING_NS:
            self._candidate_ns = None
            return self.state
        day_ns = DAY_S * NS_PER_S
        named_ns = (of_day_s or 0) * NS_PER_S - self._pulse_ns
        near_ns = self._utc_epoch_ns - day_ns // 2
        epoch_ns = near_ns + (named_ns - near_ns) % day_ns
        if self._candidate_ns is not None and abs(epoch_ns - self._candidate_ns) < NS_PER_S // 2:
            self._named_ns = epoch_ns
        self._candidate_ns = epoch_ns
        return self.state

    def look(self, now_ns: int) -> PulseState:
        """Find out at a rig time whether a pulse is missing."""
        if self._pulse_ns is not None and now_ns - self._pulse_ns > _MISSING_NS:
            self._pulse_ns, self._good, self._is_bad = None, 0, False
            self._epoch_ns = self._named_ns = self._candidate_ns = None
        return self.state

    @property
    def state(self) -> PulseState:
        """State of the pulse now."""
        word = self._word()
        return PulseState(pps=word, utc_epoch_ns=self._epoch_ns if word == "locked" else None)

    def _word(self) -> PulseWord:
        if self._pulse_ns is None:
            return "absent"
        if self._is_bad:
            return "error"
        window = max(self.qualifiers.delay_s, 1) if self.qualifiers.pps_needs_lock else _PLAIN_WINDOW
        is_usable = self._good >= window and (self._is_valid or not self.qualifiers.pps_needs_valid)
        return "locked" if is_usable else "synchronizing"


@dataclass(frozen=True, kw_only=True)
class GpsSetting:
    """The receiver on the sensor's GPS input; its sentence is sent in position packets.

    Attributes:
        latitude_deg: Latitude of the world's point ``origin_m``, north positive.
        longitude_deg: Longitude of the world's point ``origin_m``, east positive.
        origin_m: World east and north (m) of the point with that latitude and longitude.
        valid: Receiver status in the sentence.
        sentence_delay_ms: Time from the pulse to the sentence's use (70.9 ms measured for 66 characters at 9600 baud).
    """

    latitude_deg: float
    longitude_deg: float
    origin_m: tuple[float, float] = (0.0, 0.0)
    valid: bool = True
    sentence_delay_ms: float = 70.9

    def __post_init__(self) -> None:
        require(
            *within(self, latitude_deg=(-89.9, 89.9), longitude_deg=(-180, 180)),
            (0.0 <= self.sentence_delay_ms < 1000.0, f"sentence_delay_ms must be 0 to less than 1000, got {self.sentence_delay_ms}"),
        )
