"""Every fault of a Velodyne's optics, head, clock and GPS input on command, as velodyne-decoder reads the packets."""

import tomllib
from dataclasses import dataclass

import numpy as np
import pytest
from velodyne_decoder import Config, Model, ScanDecoder, TelemetryPacket, VelodynePacket

import hilsim
from hilsim.faults.catalogue import FAULTS, Place
from tests.support import ROOM

BEGIN_S, STOP_S = 0.9, 3.6
"""The fault begins in the second before the hour ends, at 1 s."""
CYCLE_S = 1_327_104e-9
SETTLED = round(BEGIN_S / CYCLE_S) + 3
"""First packet that the fault befalls as a whole; the one six before it is the last that it does not."""
RING_DEG = np.arange(-15.0, 16.0, 2.0)
LASER_OF_RING = np.array([2 * ring if ring < 8 else 2 * ring - 15 for ring in range(16)])
"""Manual of the VLP-16, page 54: rings rise, lasers alternate between the halves."""
HOUR_S = 3600.0


@dataclass(frozen=True)
class Read:
    """What the decoder finds: of packet, firing and ring (NaN where there is no point), of data packets, and of telemetry packets.

    Attributes:
        range_m: Range, of its place on the level; without the ring's height offset, which the decoder adds.
        azimuth_deg: Azimuth, clockwise from forward.
        intensity: Reflectivity.
        stamp_s: Stamp of each data packet.
        telemetry: Telemetry packets.
        told_s: Rig time of each of them.
    """

    range_m: np.ndarray
    azimuth_deg: np.ndarray
    intensity: np.ndarray
    stamp_s: np.ndarray
    telemetry: list[TelemetryPacket]
    told_s: list[float]

    @property
    def seen(self):
        return np.isfinite(self.range_m)

    def after(self):
        """What the fault can befall."""
        told = self.told(BEGIN_S, STOP_S)
        return Read(*(column[SETTLED:] for column in (self.range_m, self.azimuth_deg, self.intensity, self.stamp_s)), told, self.told_s[-len(told) :])

    def told(self, begin_s, end_s):
        """Telemetry packets of a stretch of rig time."""
        return [packet for packet, each_s in zip(self.telemetry, self.told_s, strict=True) if begin_s + 0.02 < each_s < end_s]

    def said(self, begin_s, end_s):
        """What they say."""
        names = "nmea_sentence", "pps_status", "usec_since_toh", "thermal_shutdown", "temp_at_shutdown"
        return [[getattr(packet, name) for name in names] for packet in self.told(begin_s, end_s)]


def read(*tables):
    """What the decoder makes of the packets of a rig with faults, one by one."""
    emulator = hilsim.Emulator(hilsim.load_rig({**tomllib.loads(ROOM), "fault": list(tables)}), start_utc="2026-03-01T11:59:59Z")
    decoder, telemetry, points, stamps_s = ScanDecoder(Config(model=Model.VLP16, min_range=0.0, max_range=300.0)), [], [], []
    told_s = []
    for packet in emulator.packets(0.0, STOP_S):
        if packet.stream == "position":
            telemetry.append(TelemetryPacket(packet.payload))
            told_s.append(packet.time_ns / 1e9)
            continue
        stamp, found = decoder.decode([VelodynePacket(0.0, packet.payload)], as_pcl_structs=True)
        cells = np.full((3, 24, 16), np.nan)
        level_m = np.hypot(found["x"].astype(float), found["y"].astype(float)) / np.cos(np.radians(RING_DEG[found["ring"]]))
        cells[:, found["column"], found["ring"]] = level_m, np.degrees(np.arctan2(-found["y"], found["x"])) % 360.0, found["intensity"]
        points.append(cells)
        stamps_s.append(stamp.device)
    return Read(*np.stack(points, axis=1), np.array(stamps_s), telemetry, told_s)


def turned(one, two):
    """Angle from one azimuth to another, -180 to 180 degrees."""
    return (two - one + 180.0) % 360.0 - 180.0


def inside(clean, first_deg, last_deg):
    """Which points lie in a sector for certain, and which do not for certain."""
    at = (clean.azimuth_deg - first_deg) % 360.0
    width = (last_deg - first_deg) % 360.0
    return (at > 0.6) & (at < width - 0.6), (at > width + 0.6) & (at < 359.4)


def same(clean, broken, where=slice(None)):
    """The same points with the same reflectivities."""
    return all(
        np.array_equal(one[where], two[where], equal_nan=True) for one, two in ((clean.range_m, broken.range_m), (clean.intensity, broken.intensity))
    )


def off_m(clean, broken):
    """Errors of the ranges of points that both have."""
    return (broken.range_m - clean.range_m)[clean.seen & broken.seen]


def dimmed(clean, broken, where):
    """Share of the light that comes back, from the reflectivities of bright points."""
    bright = where & broken.seen & (clean.intensity > 40) & (clean.intensity < 100)
    return broken.intensity[bright].mean() / clean.intensity[bright].mean()


def late_s(clean, broken):
    """By how much stamps are ahead, of each packet."""
    return (broken.stamp_s - clean.stamp_s + HOUR_S / 2) % HOUR_S - HOUR_S / 2


def rate_dps(read):
    """Rate of the head from packet to packet."""
    first_deg = read.azimuth_deg[:, 0]
    return np.nanmedian(turned(first_deg[:-1], first_deg[1:]), axis=1) / CYCLE_S


def spread_m(read):
    """Between the nearest and the farthest point of the highest ring, from 1.1 s after the fault's begin on."""
    late_m = read.range_m[since_s(read) > 1.1][..., 15]
    return np.nanmax(late_m) - np.nanmin(late_m)


def since_s(clean):
    """Time since the fault's begin of each packet's first firing."""
    return (np.arange(len(clean.stamp_s)) + SETTLED) * CYCLE_S - BEGIN_S


def seconds_off(clean, broken):
    """By how many seconds sentences differ."""
    return {(two.nmea_time - one.nmea_time).total_seconds() for one, two in zip(clean.telemetry, broken.telemetry, strict=True)}


def a_sector(holds):
    """A check of what a fault does between 80 and 200 degrees, and of nothing elsewhere."""

    def check(clean, broken):
        within, without = inside(clean, *SECTOR)
        return same(clean, broken, without) and within.sum() > 10_000 and holds(clean, broken, within)

    return check


def a_ring(holds):
    """A check of what a fault does to laser 15, the highest, and of nothing to the others."""

    def check(clean, broken):
        others = np.broadcast_to(LASER_OF_RING != 15, clean.seen.shape)
        return same(clean, broken, others) and clean.seen[~others].sum() > 10_000 and holds(clean, broken, ~others)

    return check


def a_drop_that_runs_down(clean, broken):
    """The points that a drop of 8 degrees takes are of few rings, and lower ones the later it is."""
    gone = clean.seen & ~broken.seen
    heights_deg = [np.average(RING_DEG, weights=turn.sum(axis=(0, 1))) for turn in np.array_split(gone[:608], 8)]
    return all(0 < (turn.any(axis=(0, 1))).sum() < 9 for turn in np.array_split(gone[:608], 8)) and heights_deg[0] - heights_deg[5] > 3.0


def stripes(clean, broken):
    """Each ring's reflectivities have a factor of their own, and no range is another."""
    bright = clean.seen & (clean.intensity > 20) & (clean.intensity < 90) & (broken.intensity < 250)
    of_ring = [np.nonzero(bright & (np.arange(16) == ring)) for ring in range(16)]
    ratios = [broken.intensity[points] / clean.intensity[points] for points in of_ring if points[0].size > 1000]
    return np.array_equal(clean.range_m, broken.range_m, equal_nan=True) and max(map(np.std, ratios)) < 0.03 and np.std([*map(np.mean, ratios)]) > 0.1


def exchanged(clean, broken):
    """Each laser has the points of the laser eight before or after it."""
    ring_of_laser = np.argsort(LASER_OF_RING)
    one, two = clean.range_m[..., ring_of_laser], broken.range_m[..., ring_of_laser]
    return np.array_equal(np.isfinite(np.roll(one, 8, axis=-1)), np.isfinite(two)) and np.nanmax(np.abs(np.roll(one, 8, axis=-1) - two)) < 0.5


def unmoved_but_in_azimuth(angle_deg):
    """A check of ranges that are as they were, and of azimuths that are off by an angle."""
    return lambda clean, broken: (
        np.allclose(clean.range_m, broken.range_m, atol=1e-4, equal_nan=True)
        and np.nanmax(np.abs(turned(clean.azimuth_deg, broken.azimuth_deg) - angle_deg)) < 0.03
    )


def each_second(jitter_s):
    """A check of stamps that leap at each second, and go on evenly within it."""

    def check(clean, broken):
        off_s = late_s(clean, broken)
        of_second = [off_s[np.floor(clean.stamp_s) == second] for second in np.unique(np.floor(clean.stamp_s))][:-1]
        return max(map(np.ptp, of_second)) < 3e-6 and 0.2 * jitter_s < np.std([each[0] for each in of_second]) < 3.0 * jitter_s

    return check


def begun_again(clean, broken):
    """Within each second stamps fall back once, by less than a second, and count on."""
    second = np.floor(clean.stamp_s)
    whole = [late_s(clean, broken)[second == each] for each in (0.0, 1.0)]
    return all(np.abs(each[:2]).max() < 1e-5 and -1.0 < each[-1] < -1e-3 and np.sum(np.diff(each) < -1e-3) <= 2 for each in whole)


def pulse(word):
    """A check of what telemetry says of the pulse."""
    return lambda clean, broken: {each.pps_status.name for each in broken.telemetry} == {word} != {each.pps_status.name for each in clean.telemetry}


def drifts(ppm):
    """A check of stamps that run away."""
    return lambda clean, broken: np.abs(late_s(clean, broken) - ppm * 1e-6 * since_s(clean)).max() < 5e-6


SECTOR = (80.0, 200.0)
IN_SECTOR = {"azimuth_deg": list(SECTOR)}
SHOWN = {
    "dead_channel": ({"channels": [15]}, a_ring(lambda _, broken, ring: not broken.seen[ring].any())),
    "weak_channel": ({"channels": [15], "transmission": 0.5}, a_ring(lambda *all_: abs(dimmed(*all_) - 0.25) < 0.03)),
    "blocked_sector": (IN_SECTOR, a_sector(lambda _, broken, sector: not broken.seen[sector].any())),
    "dirty_window": ({**IN_SECTOR, "transmission": 0.5}, a_sector(lambda *all_: abs(dimmed(*all_) - 0.25) < 0.03)),
    "iced_window": ({**IN_SECTOR, "transmission": 0.7}, a_sector(lambda *all_: abs(dimmed(*all_) - 0.49) < 0.03)),
    "wet_window": (
        {"drops": 1, "drop_deg": 8.0, "transmission": 0.0, "speed_dps": 10.0, "elevation_deg": [-15.0, 15.0], "seed": 1},
        a_drop_that_runs_down,
    ),
    "glare": (
        {"share": 0.05, "scatter_m": 0.5},
        lambda clean, broken: (
            abs((np.abs(off_m(clean, broken)) > 3e-3).mean() - 0.05) < 0.005 and abs(np.std(off_m(clean, broken)) - 0.5 * 0.05**0.5) < 0.02
        ),
    ),
    "crosstalk": (
        {"share": 0.2, "max_range_m": 5.0},
        lambda clean, broken: (
            0.05 < (np.abs(off_m(clean, broken)) > 0.1).mean() < 0.2
            and np.mean(broken.range_m[np.abs(broken.range_m - clean.range_m) > 0.1] < 5.1) > 0.98
        ),
    ),
    "jamming": (
        {**IN_SECTOR, "max_range_m": 50.0},
        a_sector(
            lambda clean, broken, sector: (
                np.mean(np.abs(broken.range_m - clean.range_m)[sector & clean.seen & broken.seen] < 0.05) < 0.05
                and abs(np.nanmean(broken.range_m[sector]) - 25.5) < 2.0
            )
        ),
    ),
    "spoofed_surface": (
        {**IN_SECTOR, "range_m": 3.0, "reflectivity": 5.0},
        a_sector(lambda _, broken, sector: np.mean(np.abs(broken.range_m[sector] - 3.0) < 0.05) > 0.95),
    ),
    "removed_surface": (IN_SECTOR, a_sector(lambda _, broken, sector: not broken.seen[sector].any())),
    "range_bias": ({"bias_m": 0.5}, lambda clean, broken: np.abs(off_m(clean, broken) - 0.5).max() < 0.004),
    "range_noise": ({"scatter_m": 0.3}, lambda clean, broken: abs(np.std(off_m(clean, broken)) - 0.3) < 0.01),
    "reflectivity_lost": ({"spread": 0.4}, stripes),
    "mixed_firmware": ({"channels_by": 8}, exchanged),
    "encoder_stuck": ({}, lambda _, broken: np.nanmax(np.abs(turned(np.nanmedian(broken.azimuth_deg), broken.azimuth_deg))) < 0.03),
    "encoder_jump": ({"jump_cdeg": 200}, unmoved_but_in_azimuth(2.0)),
    "encoder_overflow": ({}, unmoved_but_in_azimuth(0.0)),
    "motor_stall": (
        {"ramp_s": 1.0},
        lambda clean, broken: (
            len(clean.stamp_s) == len(broken.stamp_s) and rate_dps(broken)[0] > 3500.0 and spread_m(clean) > 3.0 and spread_m(broken) < 0.1
        ),
    ),
    "spin_up": (
        {"for_s": 1.5, "ramp_out_s": 1.5},
        lambda clean, broken: (
            np.abs(rate_dps(broken)[:20]).max() < 200.0
            and abs(rate_dps(broken)[since_s(clean)[1:] > 1.6].mean() - 3600.0) < 20.0
            and rate_dps(broken)[500:600].mean() > rate_dps(broken)[200:300].mean() + 500.0
        ),
    ),
    "wrong_rate": ({"too_fast": 0.05}, lambda _, broken: abs(rate_dps(broken).mean() - 3780.0) < 5.0),
    "lock_lost": (
        {"slip_deg": 90.0},
        lambda clean, broken: abs(np.nanmedian(turned(clean.azimuth_deg[:, 0], broken.azimuth_deg[:, 0])) - 90.0) < 0.1,
    ),
    "clock_jump": ({"jump_s": 0.5}, lambda clean, broken: np.abs(late_s(clean, broken) - 0.5).max() < 3e-6),
    "clock_drift": ({"drift_ppm": 1000.0}, drifts(1000.0)),
    "leap_second": ({}, lambda clean, broken: np.abs(late_s(clean, broken) + 1.0).max() < 3e-6),
    "hour_overflow": (
        {},
        lambda clean, broken: broken.stamp_s.max() > HOUR_S + 2.0 and np.all(np.diff(broken.stamp_s) > 0.0) and clean.stamp_s.min() < 1.0,
    ),
    "pps_noisy": ({"jitter_s": 0.01}, each_second(0.01)),
    "pps_doubled": ({}, begun_again),
    "pps_absent": ({"drift_ppm": 500.0}, lambda clean, broken: pulse("ABSENT")(clean, broken) and drifts(500.0)(clean, broken)),
    "pps_error": ({}, pulse("ERROR")),
    "nmea_missing": ({}, lambda _, broken: {each.nmea_sentence for each in broken.telemetry} == {""}),
    "nmea_invalid": ({}, lambda _, broken: {each.parse_nmea().fix_available for each in broken.telemetry} == {False}),
    "nmea_late": ({"delay_s": 0.5}, lambda clean, broken: seconds_off(clean, broken) == {0.0, -1.0}),
    "nmea_wrong_second": ({"seconds_by": -5.0}, lambda clean, broken: seconds_off(clean, broken) == {-5.0}),
    "nmea_garbled": ({"share": 0.2}, lambda _, broken: {each.parse_nmea() for each in broken.telemetry} == {None}),
    "brown_out": (
        {"off_ms": 500.0, "down_ms": 1000.0, "drift_ppm": 0.0},
        lambda clean, broken: (
            abs(len(clean.stamp_s) - len(broken.stamp_s) - 1.0 / CYCLE_S) < 2.0
            and abs(broken.stamp_s[-1] - (STOP_S - BEGIN_S - 0.5)) < 0.01
            and {each.pps_status.name for each in broken.telemetry} == {"SYNCHRONIZING"}
        ),
    ),
    "overheated": (
        {"temperature_c": 91},
        lambda _, broken: len(broken.stamp_s) == 0 and {(each.thermal_shutdown, each.temp_at_shutdown) for each in broken.telemetry} == {(True, 91)},
    ),
}
"""Keys of each fault, and what the decoder must show from its begin on. It takes azimuths modulo a turn: of ``encoder_overflow`` it must show nothing."""


@pytest.fixture(scope="module")
def clean():
    return read()


def test_every_fault_of_a_sensor_is_shown():
    assert {*SHOWN, "ptp_lost"} == {row.kind for row in FAULTS if row.place == Place.SENSOR}  # a Velodyne does not follow a master of PTP


@pytest.mark.extended
@pytest.mark.parametrize("kind", SHOWN)
def test_the_decoder_shows_a_fault_from_its_begin_on(clean, kind):
    keys, shows = SHOWN[kind]
    broken = read({"kind": kind, "at_s": BEGIN_S, **keys})
    before = slice(SETTLED - 6)
    assert same(clean, broken, before)
    assert np.array_equal(clean.stamp_s[before], broken.stamp_s[before])
    assert clean.said(0.0, BEGIN_S - 0.05) == broken.said(0.0, BEGIN_S - 0.05)
    assert shows(clean.after(), broken.after())
