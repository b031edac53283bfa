"""Lidar models as data: frozen specifications with their rules.

A profile (``profiles/sensors/*.toml``) is a ``VelodyneSpec`` or a ``CeptonSpec``, selected by its ``family``; a rig's ``[[sensor]]`` adds the setup. Every figure in a profile
has its source beside it in the TOML file.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from numbers import Integral
from typing import Literal

from hilsim.errors import require, within
from hilsim.sensor.signal.spec import SignalSpec

ClockSync = Literal["auto", "pps", "free"]
ClockStamps = Literal["power_up", "utc"]
_STEP_MAX = 2**31 - 1
SUB_RAY_COUNTS = (1, 7, 19)
"""Supported numbers of sub-rays."""


def is_whole(value: object) -> bool:
    """Whether a value is a whole number of Python or NumPy; ``True`` is not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def step_rule(name: str, step: int) -> tuple[bool, str]:
    """Check that one of ``step`` can be kept; returns the condition and its error message for ``require``."""
    return is_whole(step) and 1 <= step <= _STEP_MAX, f"{name} must be a whole number of 1 to {_STEP_MAX}, got {step}"


@dataclass(frozen=True, kw_only=True)
class BeamSpec:
    """A laser beam: full width of the visible spot, as ``window + range * divergence``, horizontally and vertically.

    Attributes:
        divergence_h_mrad: Horizontal divergence of the spot, full angle.
        divergence_v_mrad: Vertical divergence of the spot, full angle.
        window_h_mm: Width of the spot on the sensor's window.
        window_v_mm: Height of the spot on the sensor's window.
        profile: Distribution of light over the spot: ``top_hat`` (even) or ``gaussian`` (1/e^2 at the rim).
        receiver_offset_mm: Distance of the receiver's axis from the beam's, towards larger azimuths: a near surface beside the beam can hide what the beam
            hits from the receiver. 0: they are one, as they are for a beam of a single ray.
        sub_rays: Rays that sample the spot where a rig does not say otherwise: 1 (no width), 7 or 19.
        halo_share: Share of the light in a faint ring about the spot, by which retro-reflectors bloom: beams beside one see it weakly. 0: none.
            1e-3 is recommended, unproven. It costs six rays a beam.
        halo_ratio: Radius of that ring, in radii of the spot.
    """

    divergence_h_mrad: float = 0.0
    divergence_v_mrad: float = 0.0
    window_h_mm: float = 0.0
    window_v_mm: float = 0.0
    profile: Literal["top_hat", "gaussian"] = "top_hat"
    receiver_offset_mm: float = 0.0
    sub_rays: int = 1
    halo_share: float = 0.0
    halo_ratio: float = 2.0

    def __post_init__(self) -> None:
        require(
            *within(self, divergence_h_mrad=(0, 100), divergence_v_mrad=(0, 100), window_h_mm=(0, 100), window_v_mm=(0, 100)),
            *within(self, receiver_offset_mm=(-100, 100), halo_share=(0, 0.5), halo_ratio=(1, 10)),
            (self.sub_rays in SUB_RAY_COUNTS, f"sub_rays must be one of {', '.join(map(str, SUB_RAY_COUNTS))}, got {self.sub_rays}"),
        )


@dataclass(frozen=True, kw_only=True)
class DetectorSpec:
    """The receiver: detection threshold, noise and reflectivity scale.

    Attributes:
        threshold_reflectivity: Reflectivity of the faintest target: a diffuse wall of this reflectivity at ``threshold_range_m`` is detected with a probability of 1/2.
            0: everything is detected.
        threshold_range_m: Range of the faintest target.
        noise_ratio: Ratio of threshold to noise, which sets the threshold's sharpness; 0: a hard threshold.
        merge_distance_m: Smallest distance between two surfaces that make two echoes.
        pulse_ns: Length of the laser's pulse.
        diffuse_max: Largest reflectivity byte of a diffuse surface.
        range_noise_weak_m: Noise of weak echoes: with ``range_noise_m`` s0 and this s1, the variance is s0^2 + s1^2 / (b + 1) * max(1, R / R1)^2 for a
            reflectivity of b percent at range R.
        range_noise_onset_m: R1.
        range_noise_overlap: Share of the error of the next firing's range that a range has too, so that neighbours are correlated: by this share s,
            s / (1 + s^2); 0: not.
        laser_bias_m: Standard deviation of each laser's constant range error.
        saturation_ratio: Ratio to the threshold's energy above which an echo saturates the receiver and is flagged where packets have a field for it; 0:
            none.
        doubt_ratio: Ratio to the threshold's energy below which an echo is flagged as noise where packets have a field for it; 0: none.
    """

    threshold_reflectivity: float = 0.0
    threshold_range_m: float = 100.0
    noise_ratio: float = 0.0
    merge_distance_m: float = 1.15
    pulse_ns: float = 5.0
    diffuse_max: int = 100
    range_noise_weak_m: float = 0.0
    range_noise_onset_m: float = 15.0
    range_noise_overlap: float = 0.0
    laser_bias_m: float = 0.0
    saturation_ratio: float = 0.0
    doubt_ratio: float = 0.0

    def __post_init__(self) -> None:
        require(
            *within(self, threshold_reflectivity=(0, 1), threshold_range_m=(1, 1000), noise_ratio=(0, 100), merge_distance_m=(0, 10)),
            *within(self, pulse_ns=(0.1, 1000), diffuse_max=(0, 255), range_noise_weak_m=(0, 1), range_noise_onset_m=(0.1, 1000)),
            *within(self, range_noise_overlap=(0, 1), laser_bias_m=(0, 1), saturation_ratio=(0, 1_000_000_000_000), doubt_ratio=(0, 1_000_000)),
        )

    @property
    def threshold_energy(self) -> float:
        """Energy that is detected with a probability of one half."""
        return self.threshold_reflectivity / self.threshold_range_m**2


@dataclass(frozen=True, kw_only=True)
class LidarSpec:
    """Common part of every lidar model (and unit): its firings, its response and its MAC prefix.

    Attributes:
        model: The model's name.
        mac_prefix: First three bytes of the unit's MAC address.
        firing_ns: Time between firings (or groups of firings) inside a firing sequence.
        lasers_per_firing: Lasers that fire at once.
        sequence_ns: Time between firing sequences.
        range_unit_mm: Distance of one count.
        range_min_m: Smallest reported range.
        range_max_m: Largest reported range.
        range_noise_m: Standard deviation of the range noise of strong echoes.
        drop_out_ratio: Share of returns lost at random.
        data_latency_us: Time from the end of a packet's last firing sequence to its departure.
        beam: The laser beams.
        detector: The receiver.
        signal: Noise, grid and losses of its signal.
    """

    model: str
    mac_prefix: str
    firing_ns: int
    lasers_per_firing: int = 1
    sequence_ns: int
    range_unit_mm: float
    range_min_m: float
    range_max_m: float
    range_noise_m: float
    drop_out_ratio: float = 0.0
    data_latency_us: float
    beam: BeamSpec = field(default_factory=BeamSpec)
    detector: DetectorSpec = field(default_factory=DetectorSpec)
    signal: SignalSpec = field(default_factory=SignalSpec)

    def __post_init__(self) -> None:
        require(*self.rules())

    @property
    def laser_count(self) -> int:
        """Number of firings in a firing sequence."""
        raise NotImplementedError

    @property
    def firing_delays_ns(self) -> tuple[int, ...]:
        """Time of each firing from the start of its firing sequence."""
        return tuple(laser // self.lasers_per_firing * self.firing_ns for laser in range(self.laser_count))

    @property
    def range_code_max(self) -> int:
        """Largest distance, in counts of ``range_unit_mm``, that the model's packets can represent."""
        raise NotImplementedError

    @property
    def no_return_reflectivities(self) -> tuple[int, ...]:
        """Reflectivity byte that each laser reports for no return."""
        return (0,) * self.laser_count

    @property
    def has_linear_reflectivity(self) -> bool:
        """Whether the reflectivity byte is linear up to 1.27 of a white target and exponential above, as Cepton's; false for a Velodyne's scale."""
        return False

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Yield each rule as a condition and its error message."""
        span_ns = self.firing_ns * self.laser_count // max(self.lasers_per_firing, 1)
        yield self.firing_ns > 0, f"firing_ns must be above 0, got {self.firing_ns}"
        yield self.sequence_ns >= span_ns, f"sequence_ns must be at least the {span_ns} ns its firings take, got {self.sequence_ns}"
        yield from within(self, range_unit_mm=(0.1, 100))
        farthest_m = self.range_code_max * self.range_unit_mm / 1000.0
        yield (
            0.0 <= self.range_min_m < self.range_max_m <= farthest_m,
            f"range_min_m and range_max_m must be 0 <= min < max <= {farthest_m:g} (16 bits), got {self.range_min_m} and {self.range_max_m}",
        )
        yield from within(self, range_noise_m=(0, 1), drop_out_ratio=(0, 1), data_latency_us=(0, 100_000))


@dataclass(frozen=True, kw_only=True)
class ClockSetting:
    """A sensor's own clock.

    Attributes:
        sync: ``pps``: follow UTC (a Velodyne's stamp: its second is UTC's, and its sub-second part is set at each pulse); ``free``: count on from ``offset_s``;
            ``auto``: ``pps`` for a Velodyne with a ``gps`` and for a Cepton-style sensor, ``free`` for a Velodyne without ``gps``, as real units behave.
        offset_s: Value of a free clock when the rig starts (seconds; a Velodyne sends only the part within the hour); for a Cepton-style sensor, time from
            power-up to its first firing.
        stamps: Time stamps of a Cepton-style sensor's points: ``power_up``: microseconds since power-up; ``utc``: microseconds since 1970, as with
            PTP. A Velodyne's stamps count from the hour.
        oscillator_ppm: Oscillator error: above 0 it runs faster than true time; firings and stamps follow it. None: the unit's, 0 for an ideal one.
        stamp_ppm: Error of the stamps relative to the firing clock (two of seven real units: +137 and +141). None: the unit's, 0 for an ideal one.
    """

    sync: ClockSync = "auto"
    offset_s: float = 0.0
    stamps: ClockStamps = "power_up"
    oscillator_ppm: float | None = None
    stamp_ppm: float | None = None

    def __post_init__(self) -> None:
        require(
            (0.0 <= self.offset_s < 1e9, f"offset_s must be 0 to 1000000000, got {self.offset_s}"),
            *within(self, oscillator_ppm=(-1000, 1000), stamp_ppm=(-1000, 1000)),
        )


class PpsState(IntEnum):
    """State of the sensor's clock relative to the pulse per second (VLS-128 manual page 59)."""

    ABSENT = 0
    SYNCHRONIZING = 1
    LOCKED = 2
    ERROR = 3


PulseWord = Literal["absent", "synchronizing", "locked", "error"]
"""State of the pulse at a sensor's input, as its web interface and its position packets report it."""


@dataclass(frozen=True, kw_only=True)
class PulseState:
    """The pulse at a sensor's input as it is now, in place of one that is always locked or never there.

    Attributes:
        pps: State of the pulse; stamps follow it where it is locked, and count on from it otherwise.
        utc_epoch_ns: UTC of rig time 0 by the pulse and the receiver's sentences, in ns since 1970; None: the rig's.
    """

    pps: PulseWord
    utc_epoch_ns: int | None = None


@dataclass(frozen=True, kw_only=True)
class DecimationSpec:
    """Share of a streaming sensor's channels and firings that is reported.

    Attributes:
        beam_step: Every ``beam_step``-th channel is reported, counted by ring from the lowest.
        ray_step: Every ``ray_step``-th firing of a ring is reported, counted in each turn from azimuth 0.
    """

    beam_step: int = 1
    ray_step: int = 1

    def __post_init__(self) -> None:
        require(step_rule("beam_step", self.beam_step), step_rule("ray_step", self.ray_step))
