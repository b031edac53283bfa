"""One unit of a model, as ``hilsim calibrate`` learns it from a capture and a rig's ``[[sensor]]`` names it."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from hilsim.errors import require, within
from hilsim.protocols.ethernet import parse_mac
from hilsim.sensor.unit.encoder import EncoderSpec, RateJitterSpec
from hilsim.sensor.unit.position import PositionSpec

BYTES = 256
_CODES_MAX = 64


@dataclass(frozen=True, kw_only=True)
class LaserUnitSpec:
    """One laser of a unit, in firing order. What is None is drawn.

    Attributes:
        range_bias_m: Constant range error; above 0 it reports too far.
        elevation_error_deg: Elevation of the true beam above that of the model, which packets imply.
        azimuth_error_deg: Azimuth of the true beam beyond that of the model, clockwise.
        reflectivity_gain: Ratio of its reflectivities to those of a laser without error.
        baseline: Reflectivity byte of no return.
        baseline_ratio: Share of the firings without a return that have this byte.
        empty_bytes: Other bytes of firings without a return, each with its share of them.
        byte_edges: Reflectivities up to which it reports a byte, pairs of a rising byte and an edge. Between the edges of a byte and of the next one it reports
            the next one; where one of them is missing, what is drawn.
        byte_noise: Standard deviation of its reflectivity byte from firing to firing, in place of the unit's: pairs of a byte and the standard deviation there,
            with what the steps between its bytes add. Empty: the unit's.
        range_codes: Correction of the distance by reflectivity byte, in counts of the packet's unit: number ``b`` for byte ``b``, and the last one for all beyond;
            empty: none.
        straddled_bytes: Bytes within which the correction changes: in the upper half of their step it has the other parity.
    """

    range_bias_m: float | None = None
    elevation_error_deg: float | None = None
    azimuth_error_deg: float | None = None
    reflectivity_gain: float | None = None
    baseline: int | None = None
    baseline_ratio: float | None = None
    empty_bytes: tuple[tuple[int, float], ...] = ()
    byte_edges: tuple[tuple[int, float], ...] = ()
    byte_noise: tuple[tuple[float, float], ...] = ()
    range_codes: tuple[int, ...] = ()
    straddled_bytes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        require(*self._rules())

    def _rules(self) -> Iterator[tuple[bool, str]]:
        yield from within(self, range_bias_m=(-1, 1), elevation_error_deg=(-5, 5), azimuth_error_deg=(-5, 5), reflectivity_gain=(0.1, 10))
        yield from within(self, baseline=(0, 255), baseline_ratio=(0, 1))
        yield _byte_noise_rule(self.byte_noise)
        is_rising = all(before < after for before, after in pairwise((-1, *self.straddled_bytes, BYTES)))
        yield is_rising, f"straddled_bytes must be rising bytes of 0 to 255, got {list(self.straddled_bytes)}"
        are_edges = all(after[0] > before[0] and after[1] >= before[1] for before, after in pairwise(self.byte_edges))
        are_edges = are_edges and all(0 <= byte < BYTES and 0.0 <= edge <= BYTES for byte, edge in self.byte_edges)
        yield are_edges, "byte_edges must be pairs of a rising byte of 0 to 255 and an edge of 0 to 256 that does not fall"
        are_shares = all(0 <= byte < BYTES and 0.0 <= share <= 1.0 for byte, share in self.empty_bytes)
        yield (
            are_shares and sum(share for _, share in self.empty_bytes) <= 1.01,
            "empty_bytes must be pairs of a byte and a share, with a sum of at most 1",
        )
        yield (
            len(self.range_codes) <= BYTES and all(abs(code) <= _CODES_MAX for code in self.range_codes),
            f"range_codes must be at most {BYTES} numbers of -{_CODES_MAX} to {_CODES_MAX}",
        )


@dataclass(frozen=True, kw_only=True)
class UnitSpec:
    """One unit of a model. What is None or left out is drawn.

    Attributes:
        model: Name of the model; empty: any.
        mac: MAC address of the sensor.
        oscillator_ppm: Error of the oscillator.
        stamp_ppm: Error of the stamps relative to the firing clock.
        stamp_wander_us: Standard deviation of the slow wander of a Velodyne's stamps about a regular clock.
        phase_deg: Azimuth of the head at the sensor's first firing.
        encoder: Encoder, one entry for each measured rate; the nearest is used.
        rate_jitter: Oscillations of the rotation rate.
        position: The position packet stream.
        range_noise_ratio: White noise of its ranges, relative to the model's.
        ripple_m: Amplitude of its ripple, in place of one drawn about ``SignalSpec.ripple_m``.
        one_sided_ratio: ``SignalSpec.one_sided_ratio`` of it.
        byte_noise: Standard deviation of the reflectivity byte by byte: pairs of a byte and the standard deviation there, linear in between.
        response: Ratio of reflectivities to those that the model reports, by range: pairs of a range in metres and the ratio there, linear in between. Only
            what the unit reports of a surface changes, not whether it detects the surface.
        laser: The lasers in firing order; none, or all.
    """

    model: str = ""
    mac: str = ""
    oscillator_ppm: float | None = None
    stamp_ppm: float | None = None
    stamp_wander_us: float | None = None
    phase_deg: float | None = None
    encoder: tuple[EncoderSpec, ...] = ()
    rate_jitter: RateJitterSpec | None = None
    position: PositionSpec | None = None
    range_noise_ratio: float | None = None
    ripple_m: float | None = None
    one_sided_ratio: float | None = None
    byte_noise: tuple[tuple[float, float], ...] = ()
    response: tuple[tuple[float, float], ...] = ()
    laser: tuple[LaserUnitSpec, ...] = ()

    def __post_init__(self) -> None:
        require(
            *within(self, oscillator_ppm=(-1000, 1000), stamp_ppm=(-1000, 1000), stamp_wander_us=(0, 100), range_noise_ratio=(0, 10)),
            *within(self, ripple_m=(0, 0.1), one_sided_ratio=(0, 1)),
            (not self.mac or _is_mac(self.mac), f'mac must be like "60:76:88:10:2f:6f", got "{self.mac}"'),
            (0.0 <= (self.phase_deg or 0.0) < 360.0, f"phase_deg must be 0 to less than 360, got {self.phase_deg}"),
            _byte_noise_rule(self.byte_noise),
            (_rises(self.response, 1000.0, 100.0), "response must be pairs of a rising range of 0 to 1000 m and a ratio of 0 to 100"),
        )

    def model_rules(self, model: str, lasers: int) -> Iterator[tuple[bool, str]]:
        """Yield the rules that hold for a unit of a model with so many lasers."""
        yield self.model in {"", model}, f'model must be "{model}", the model of the sensor, got "{self.model}"'
        yield len(self.laser) in {0, lasers}, f"laser must have {lasers} entries for a {model}, got {len(self.laser)}"


def _is_mac(text: str) -> bool:
    try:
        parse_mac(text)
    except ValueError:
        return False
    return True


def _byte_noise_rule(pairs: tuple[tuple[float, float], ...]) -> tuple[bool, str]:
    return _rises(pairs, 255.0, 100.0), "byte_noise must be pairs of a rising byte of 0 to 255 and a standard deviation of 0 to 100"


def _rises(pairs: tuple[tuple[float, float], ...], last: float, most: float) -> bool:
    places = [place for place, _ in pairs]
    is_within = all(0.0 <= place <= last and 0.0 <= value <= most for place, value in pairs)
    return is_within and all(before < after for before, after in pairwise(places))
