"""What a lidar model is, as data: frozen specifications that own their rules.

A profile (``profiles/sensors/*.toml``) is one ``LidarSpec``; a rig's ``[[sensor]]`` adds a ``HeadSetting`` and a ``ClockSetting``. Every figure in a
profile carries its source beside it in the TOML file.
"""

from dataclasses import dataclass, field
from typing import Literal

from hilsim.errors import require

ReturnModeName = Literal["strongest", "last", "dual"]
ClockSync = Literal["pps", "free"]


@dataclass(frozen=True, kw_only=True)
class ChannelSpec:
    """One laser, in firing order.

    Attributes:
        elevation_deg: Above the sensor's horizontal plane.
        azimuth_offset_deg: Added to the block's azimuth (clockwise) to get where this laser looks.
        vertical_offset_mm: Height of the laser's origin above the sensor's origin.
        no_return_reflectivity: The byte reported when nothing comes back: a per-unit baseline that real units show.
    """

    elevation_deg: float
    azimuth_offset_deg: float = 0.0
    vertical_offset_mm: float = 0.0
    no_return_reflectivity: int = 0

    def __post_init__(self) -> None:
        require(
            (-90.0 < self.elevation_deg < 90.0, f"elevation_deg must be above -90 and below 90, got {self.elevation_deg}"),
            (-180.0 <= self.azimuth_offset_deg <= 180.0, f"azimuth_offset_deg must be -180 to 180, got {self.azimuth_offset_deg}"),
            (-1000.0 <= self.vertical_offset_mm <= 1000.0, f"vertical_offset_mm must be -1000 to 1000, got {self.vertical_offset_mm}"),
            (0 <= self.no_return_reflectivity <= 255, f"no_return_reflectivity must be 0 to 255, got {self.no_return_reflectivity}"),
        )


@dataclass(frozen=True, kw_only=True)
class EncoderSpec:
    """How the head's angle is read: white noise on the angle, then the encoder's grid, then hundredths of a degree.

    Real units read differently at different rates, so a model has one of these for each rate that was measured; the nearest is used.

    Attributes:
        rate_rpm: Rotation rate this was measured at.
        tick_cdeg: Width of an encoder step in 0.01 deg; 0 reads without a grid.
        noise_cdeg: Standard deviation of the reading noise in 0.01 deg.
        rate_offset_rpm: How much faster the unit turns than it was told.
    """

    rate_rpm: int
    tick_cdeg: float
    noise_cdeg: float
    rate_offset_rpm: float = 0.0

    def __post_init__(self) -> None:
        require(
            (self.rate_rpm > 0, f"rate_rpm must be above 0, got {self.rate_rpm}"),
            (0.0 <= self.tick_cdeg <= 100.0, f"tick_cdeg must be 0 to 100, got {self.tick_cdeg}"),
            (0.0 <= self.noise_cdeg <= 100.0, f"noise_cdeg must be 0 to 100, got {self.noise_cdeg}"),
            (abs(self.rate_offset_rpm) <= 3.0, f"rate_offset_rpm must be at most 3 either way (the manual's tolerance), got {self.rate_offset_rpm}"),
        )


@dataclass(frozen=True, kw_only=True)
class RippleSpec:
    """How the rotation rate swings about its mean.

    Attributes:
        per_turn_ratio: Amplitude, relative to the mean rate, of a swing once per turn (imbalance).
        wander_ratio: Amplitude, relative to the mean rate, of a slow swing.
        wander_period_s: Period of the slow swing.
    """

    per_turn_ratio: float = 0.0
    wander_ratio: float = 0.0
    wander_period_s: float = 2.0

    def __post_init__(self) -> None:
        require(
            (0.0 <= self.per_turn_ratio <= 0.2, f"per_turn_ratio must be 0 to 0.2, got {self.per_turn_ratio}"),
            (0.0 <= self.wander_ratio <= 0.2, f"wander_ratio must be 0 to 0.2, got {self.wander_ratio}"),
            (0.1 <= self.wander_period_s <= 1000.0, f"wander_period_s must be 0.1 to 1000, got {self.wander_period_s}"),
        )


@dataclass(frozen=True, kw_only=True)
class PositionTrainSpec:
    """One of the periodic tasks that send position packets; several run side by side, which makes the intervals irregular.

    Attributes:
        period_us: Mean interval.
        jitter_us: Each packet is displaced by a uniform amount up to this, either way.
    """

    period_us: float
    jitter_us: float = 0.0

    def __post_init__(self) -> None:
        require(
            (1000.0 <= self.period_us <= 1e7, f"period_us must be 1000 to 10000000, got {self.period_us}"),
            (0.0 <= self.jitter_us < self.period_us / 2, f"jitter_us must be 0 to less than half of period_us, got {self.jitter_us}"),
        )


@dataclass(frozen=True, kw_only=True)
class PositionSpec:
    """The position packet stream.

    Attributes:
        trains: Periodic tasks that send position packets, 1 to 4.
        minimum_gap_us: Packets of the other trains keep this distance from those of the first.
        latency_us: From a packet's stamp to the wire, beyond ``data_latency_us``.
    """

    trains: tuple[PositionTrainSpec, ...]
    minimum_gap_us: float
    latency_us: float

    def __post_init__(self) -> None:
        require(
            (1 <= len(self.trains) <= 4, f"trains must be 1 to 4, got {len(self.trains)}"),
            (0.0 <= self.minimum_gap_us <= 5000.0, f"minimum_gap_us must be 0 to 5000, got {self.minimum_gap_us}"),
            (0.0 <= self.latency_us <= 100_000.0, f"latency_us must be 0 to 100000, got {self.latency_us}"),
        )


@dataclass(frozen=True, kw_only=True)
class BeamSpec:
    """A laser beam: full width of the visible spot, as ``window + range * divergence``, horizontally and vertically.

    Attributes:
        divergence_h_mrad: Full angle of the spot.
        divergence_v_mrad: Full angle of the spot.
        window_h_mm: Spot on the sensor's window.
        window_v_mm: Spot on the sensor's window.
        profile: How light is spread over the spot: ``top_hat`` evenly, ``gaussian`` falling to 1/e^2 at the rim.
    """

    divergence_h_mrad: float = 0.0
    divergence_v_mrad: float = 0.0
    window_h_mm: float = 0.0
    window_v_mm: float = 0.0
    profile: Literal["top_hat", "gaussian"] = "top_hat"

    def __post_init__(self) -> None:
        require(
            (0.0 <= self.divergence_h_mrad <= 100.0, f"divergence_h_mrad must be 0 to 100, got {self.divergence_h_mrad}"),
            (0.0 <= self.divergence_v_mrad <= 100.0, f"divergence_v_mrad must be 0 to 100, got {self.divergence_v_mrad}"),
            (0.0 <= self.window_h_mm <= 100.0, f"window_h_mm must be 0 to 100, got {self.window_h_mm}"),
            (0.0 <= self.window_v_mm <= 100.0, f"window_v_mm must be 0 to 100, got {self.window_v_mm}"),
        )


@dataclass(frozen=True, kw_only=True)
class DetectorSpec:
    """What the receiver makes of the light that comes back.

    Attributes:
        threshold_reflectivity: With ``threshold_range_m`` the faintest target: a diffuse wall of this reflectivity is detected half of the time at
            that range. 0: everything is detected.
        threshold_range_m: See there.
        noise_ratio: Threshold over noise: how sharp the threshold is; 0: perfectly.
        merge_distance_m: Surfaces nearer to each other than this make one echo.
        pulse_ns: Length of the laser's pulse.
        diffuse_max: Largest reflectivity byte of a diffuse surface.
        range_noise_weak_m: Noise of weak echoes: with ``range_noise_m`` s0 and this s1, the variance is s0^2 + s1^2 / (b + 1) * max(1, R / R1)^2 for a
            reflectivity of b percent at range R.
        range_noise_onset_m: R1.
        laser_bias_m: Standard deviation of each laser's constant range error.
    """

    threshold_reflectivity: float = 0.0
    threshold_range_m: float = 100.0
    noise_ratio: float = 0.0
    merge_distance_m: float = 1.15
    pulse_ns: float = 5.0
    diffuse_max: int = 100
    range_noise_weak_m: float = 0.0
    range_noise_onset_m: float = 15.0
    laser_bias_m: float = 0.0

    def __post_init__(self) -> None:
        require(
            (0.0 <= self.threshold_reflectivity <= 1.0, f"threshold_reflectivity must be 0 to 1, got {self.threshold_reflectivity}"),
            (1.0 <= self.threshold_range_m <= 1000.0, f"threshold_range_m must be 1 to 1000, got {self.threshold_range_m}"),
            (0.0 <= self.noise_ratio <= 100.0, f"noise_ratio must be 0 to 100, got {self.noise_ratio}"),
            (0.0 <= self.merge_distance_m <= 10.0, f"merge_distance_m must be 0 to 10, got {self.merge_distance_m}"),
            (0.1 <= self.pulse_ns <= 1000.0, f"pulse_ns must be 0.1 to 1000, got {self.pulse_ns}"),
            (0 <= self.diffuse_max <= 255, f"diffuse_max must be 0 to 255, got {self.diffuse_max}"),
            (0.0 <= self.range_noise_weak_m <= 1.0, f"range_noise_weak_m must be 0 to 1, got {self.range_noise_weak_m}"),
            (0.1 <= self.range_noise_onset_m <= 1000.0, f"range_noise_onset_m must be 0.1 to 1000, got {self.range_noise_onset_m}"),
            (0.0 <= self.laser_bias_m <= 1.0, f"laser_bias_m must be 0 to 1, got {self.laser_bias_m}"),
        )

    @property
    def threshold_energy(self) -> float:
        """Energy that is detected half of the time."""
        return self.threshold_reflectivity / self.threshold_range_m**2


@dataclass(frozen=True, kw_only=True)
class LidarSpec:
    """A lidar model (and unit): geometry, timing, response and packet identity.

    Attributes:
        model: The model's name.
        product: Factory byte that names the model in data packets.
        mac_prefix: First three bytes of the unit's MAC address.
        channels: Lasers in firing order; 16 or 32.
        firing_ns: Time between firings (or pairs of firings) inside a firing sequence.
        lasers_per_firing: Lasers that fire at once.
        sequence_ns: Time between firing sequences.
        range_unit_mm: One count of a packet's distance.
        range_min_m: Nothing nearer is reported.
        range_max_m: Nothing farther is reported.
        range_noise_m: Standard deviation of the range noise of strong echoes.
        drop_out_ratio: Share of returns lost at random.
        rate_min_rpm: Slowest rotation.
        rate_max_rpm: Fastest rotation.
        rate_step_rpm: Rates must be a multiple of this.
        data_latency_us: From the end of a packet's last firing sequence to the wire.
        encoder: How the head's angle is read, one entry for each measured rate.
        ripple: How the rotation rate swings.
        position: The position packet stream.
        beam: The laser beams.
        detector: The receiver.
    """

    model: str
    product: int
    mac_prefix: str
    channels: tuple[ChannelSpec, ...]
    firing_ns: int
    lasers_per_firing: int = 1
    sequence_ns: int
    range_unit_mm: float
    range_min_m: float
    range_max_m: float
    range_noise_m: float
    drop_out_ratio: float = 0.0
    rate_min_rpm: int
    rate_max_rpm: int
    rate_step_rpm: int
    data_latency_us: float
    encoder: tuple[EncoderSpec, ...]
    ripple: RippleSpec = field(default_factory=RippleSpec)
    position: PositionSpec
    beam: BeamSpec = field(default_factory=BeamSpec)
    detector: DetectorSpec = field(default_factory=DetectorSpec)

    def __post_init__(self) -> None:
        span_ns = self.firing_ns * len(self.channels) // max(self.lasers_per_firing, 1)
        require(
            (0 <= self.product <= 255, f"product must be 0 to 255, got {self.product}"),
            (len(self.channels) in (16, 32), f"channels must be 16 or 32, got {len(self.channels)}"),
            (self.lasers_per_firing in (1, 2), f"lasers_per_firing must be 1 or 2, got {self.lasers_per_firing}"),
            (self.firing_ns > 0, f"firing_ns must be above 0, got {self.firing_ns}"),
            (self.sequence_ns >= span_ns, f"sequence_ns must be at least the {span_ns} ns its firings take, got {self.sequence_ns}"),
            (0.1 <= self.range_unit_mm <= 100.0, f"range_unit_mm must be 0.1 to 100, got {self.range_unit_mm}"),
            (
                0.0 <= self.range_min_m < self.range_max_m <= 65.535 * self.range_unit_mm,
                f"range_min_m and range_max_m must be 0 <= min < max <= {65.535 * self.range_unit_mm:g} (16 bits), got {self.range_min_m} and {self.range_max_m}",
            ),
            (0.0 <= self.range_noise_m <= 1.0, f"range_noise_m must be 0 to 1, got {self.range_noise_m}"),
            (0.0 <= self.drop_out_ratio <= 1.0, f"drop_out_ratio must be 0 to 1, got {self.drop_out_ratio}"),
            (
                0 < self.rate_min_rpm <= self.rate_max_rpm,
                f"rate_min_rpm must be above 0 and at most rate_max_rpm, got {self.rate_min_rpm} and {self.rate_max_rpm}",
            ),
            (len(self.encoder) > 0, "encoder must have at least one entry"),
            (self.rate_step_rpm > 0, f"rate_step_rpm must be above 0, got {self.rate_step_rpm}"),
            (0.0 <= self.data_latency_us <= 100_000.0, f"data_latency_us must be 0 to 100000, got {self.data_latency_us}"),
        )

    def encoder_at(self, rate_rpm: int) -> EncoderSpec:
        """The encoder's entry for the measured rate nearest to ``rate_rpm`` (by ratio)."""
        return min(self.encoder, key=lambda entry: max(entry.rate_rpm / rate_rpm, rate_rpm / entry.rate_rpm))

    def check_rate(self, rate_rpm: int) -> None:
        """Raise ``ValueError`` unless this model can rotate at ``rate_rpm``."""
        possible = self.rate_min_rpm <= rate_rpm <= self.rate_max_rpm and rate_rpm % self.rate_step_rpm == 0
        require(
            (
                possible,
                f"rotation_rate_rpm must be {self.rate_min_rpm} to {self.rate_max_rpm} in steps of {self.rate_step_rpm} for a {self.model}, got {rate_rpm}",
            )
        )


@dataclass(frozen=True, kw_only=True)
class ClockSetting:
    """A sensor's own clock.

    Attributes:
        sync: ``pps``: the stamp's second follows UTC and its sub-second part is set at each pulse; ``free``: it runs on from ``offset_s``.
        offset_s: What a free clock shows when the rig starts (seconds; only its part within the hour is sent).
        oscillator_ppm: How much faster than true time the oscillator runs; firings and stamps follow it.
        stamp_ppm: How much faster than the firing clock the stamps run (two of seven real units: +137 and +141).
    """

    sync: ClockSync = "pps"
    offset_s: float = 0.0
    oscillator_ppm: float = 0.0
    stamp_ppm: float = 0.0

    def __post_init__(self) -> None:
        require(
            (0.0 <= self.offset_s < 1e9, f"offset_s must be 0 to 1000000000, got {self.offset_s}"),
            (abs(self.oscillator_ppm) <= 1000.0, f"oscillator_ppm must be -1000 to 1000, got {self.oscillator_ppm}"),
            (abs(self.stamp_ppm) <= 1000.0, f"stamp_ppm must be -1000 to 1000, got {self.stamp_ppm}"),
        )


@dataclass(frozen=True, kw_only=True)
class GpsSetting:
    """The receiver on the sensor's GPS input: it feeds the sentence in position packets.

    Attributes:
        latitude_deg: Of the world's point ``origin_m``, north positive.
        longitude_deg: Of the same point, east positive.
        origin_m: World east and north (m) that latitude and longitude belong to.
        valid: Receiver status in the sentence.
        sentence_delay_ms: From the pulse to the sentence being taken over (70.9 ms measured for 66 characters at 9600 baud).
    """

    latitude_deg: float
    longitude_deg: float
    origin_m: tuple[float, float] = (0.0, 0.0)
    valid: bool = True
    sentence_delay_ms: float = 70.9

    def __post_init__(self) -> None:
        require(
            (-89.9 <= self.latitude_deg <= 89.9, f"latitude_deg must be -89.9 to 89.9, got {self.latitude_deg}"),
            (-180.0 <= self.longitude_deg <= 180.0, f"longitude_deg must be -180 to 180, got {self.longitude_deg}"),
            (0.0 <= self.sentence_delay_ms < 1000.0, f"sentence_delay_ms must be 0 to less than 1000, got {self.sentence_delay_ms}"),
        )
