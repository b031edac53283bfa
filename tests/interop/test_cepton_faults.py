"""Every fault of a Cepton-style sensor on command, with its default noise, as the vendor's SDK 2 reads a recording."""

from dataclasses import dataclass

import numpy as np
import pytest

import hilsim
from hilsim.errors import ConfigError
from hilsim.faults.catalogue import FAULTS, Place
from tests.interop.cepton_judges import judge_capture

pytestmark = pytest.mark.extended

SECONDS, COUNT_M = 0.3, 0.005
BEGIN_S = 0.1
FIRST = 12_300
"""Points of a sensor that come before any fault begins."""


@dataclass(frozen=True)
class Read:
    """What the SDK gives of a sensor's points, those without return with a range of 0, and the stamps of its packets."""

    place_m: np.ndarray
    byte: np.ndarray
    channel: np.ndarray
    start_us: np.ndarray

    @property
    def range_m(self):
        return np.linalg.norm(self.place_m, axis=1)

    @property
    def azimuth_deg(self):
        return np.degrees(np.arctan2(self.place_m[:, 0], self.place_m[:, 1]))


def address(number):
    return f"127.0.32.{number + 1}"


def judged(folder, faults):
    """What the SDK makes of a rig with a sensor for each kind of fault."""
    sensors = [
        {"name": kind, "profile": "hr80w-like", "cepton": {"serial": number + 1}, "network": {"source": address(number), "source_ports": "any"}}
        for number, kind in enumerate(SHOWN)
    ]
    scene = {"box": [{"size_m": [40.0, 30.0, 12.0], "material": "concrete"}]}
    hilsim.record(hilsim.load_rig({"name": "judged", "scene": scene, "sensor": sensors, "fault": faults}), folder / "x.pcap", duration_s=SECONDS)
    found = judge_capture("sdk2", folder / "x.pcap")
    of_kind = {}
    for number, kind in enumerate(SHOWN):
        points, batches = found.points(address(number)), [batch for batch in found.packets if batch.source == address(number)]
        place_m = np.stack([points[axis] for axis in "xyz"], axis=1) * COUNT_M
        of_kind[kind] = Read(
            place_m, points["reflectivity"].astype(int), points["channel"].astype(int), np.array([batch.start_us for batch in batches])
        )
    return of_kind


def same(clean, broken, where):
    return np.array_equal(clean.place_m[where], broken.place_m[where]) and np.array_equal(clean.byte[where], broken.byte[where])


def is_late(read):
    """Which points a fault befalls for certain."""
    return np.arange(read.byte.size) > 1.05 * FIRST


def seen(*reads):
    return np.logical_and.reduce([read.range_m > 0.0 for read in reads])


def off_m(clean, broken):
    both = seen(clean, broken) & is_late(clean)
    return (broken.range_m - clean.range_m)[both]


def a_channel(holds):
    """A check of what a fault does to channel 3, and of nothing to the others."""

    def check(clean, broken):
        ours = clean.channel == 3
        return same(clean, broken, ~ours) and holds(clean, broken, ours & is_late(clean) & seen(clean))

    return check


def a_sector(holds):
    """A check of what a fault does to the right half of the view, and of nothing elsewhere."""

    def check(clean, broken):
        right = seen(clean) & is_late(clean) & (clean.azimuth_deg > 0.5) & (clean.azimuth_deg < 19.5)
        return same(clean, broken, seen(clean) & (clean.azimuth_deg < -0.5)) and right.sum() > 3000 and holds(clean, broken, right)

    return check


def dimmed(clean, broken, where):
    """Whether a quarter of the light comes back: half of it passes the window, twice."""
    return seen(broken)[where].all() and abs(broken.byte[where].mean() / clean.byte[where].mean() - 0.25) < 0.02


def gone(_, broken, where):
    return not seen(broken)[where].any()


def stamps_off(least_us, most_us):
    def check(clean, broken):
        off_us = (broken.start_us - clean.start_us)[-20:]
        return off_us.min() >= least_us and off_us.max() <= most_us and np.array_equal(clean.place_m, broken.place_m)

    return check


def exchanged(clean, broken):
    """Each channel has the points of the channel four before or after it, but for its own errors."""
    one, two = (read.range_m[FIRST // 8 * 8 + 400 :].reshape(-1, 8) for read in (clean, broken))
    return np.abs(np.roll(one, 4, axis=1) - two).max() < 0.03


SECTOR = {"azimuth_deg": [0.0, 20.0]}
SHOWN = {
    "dead_channel": ({"channels": [3]}, a_channel(gone)),
    "weak_channel": ({"channels": [3], "transmission": 0.5}, a_channel(dimmed)),
    "blocked_sector": (SECTOR, a_sector(gone)),
    "dirty_window": ({**SECTOR, "transmission": 0.5}, a_sector(dimmed)),
    "iced_window": ({**SECTOR, "transmission": 0.5}, a_sector(dimmed)),
    "wet_window": ({"drops": 100, "drop_deg": 3.0, "transmission": 0.0}, lambda clean, broken: (seen(clean) & ~seen(broken)).sum() > 100),
    "glare": (
        {**SECTOR, "share": 0.5, "scatter_m": 2.0},
        a_sector(lambda clean, broken, right: abs(np.std((broken.range_m - clean.range_m)[right]) - 2.0 * 0.5**0.5) < 0.1),
    ),
    "crosstalk": ({"share": 0.3, "max_range_m": 5.0}, lambda clean, broken: 0.05 < np.mean(off_m(clean, broken) < -0.5) < 0.35),
    "jamming": (
        {**SECTOR, "max_range_m": 10.0},
        a_sector(lambda _, broken, right: abs(broken.range_m[right].mean() - 5.5) < 1.0 and np.std(broken.range_m[right]) > 2.0),
    ),
    "spoofed_surface": ({**SECTOR, "range_m": 3.0}, a_sector(lambda _, broken, right: np.median(np.abs(broken.range_m[right] - 3.0)) < 0.1)),
    "removed_surface": (SECTOR, a_sector(gone)),
    "range_bias": ({"bias_m": 0.5}, lambda clean, broken: np.abs(off_m(clean, broken) - 0.5).max() < 0.02),
    "range_noise": ({"scatter_m": 0.3}, lambda clean, broken: abs(np.std(off_m(clean, broken)) - 0.3) < 0.02),
    "reflectivity_lost": (
        {"spread": 0.4},
        lambda clean, broken: np.array_equal(clean.place_m, broken.place_m) and not np.array_equal(clean.byte, broken.byte),
    ),
    "mixed_firmware": ({"channels_by": 4}, exchanged),
    "clock_jump": ({"jump_s": 0.5}, stamps_off(500_000, 500_000)),
    "clock_drift": ({"drift_ppm": 1000.0}, stamps_off(150, 200)),
    "leap_second": ({}, stamps_off(-1_000_000, -1_000_000)),
    "ptp_lost": ({"drift_ppm": 1000.0}, stamps_off(150, 200)),
    "brown_out": (
        {"off_ms": 20.0, "down_ms": 50.0, "drift_ppm": 0.0},
        lambda clean, broken: abs(1.0 - len(broken.start_us) / len(clean.start_us) - 0.05 / SECONDS) < 0.01 and broken.start_us[-1] < 200_000,
    ),
}
"""Keys of each fault, and what the SDK must show of it."""


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    faults = [{"kind": kind, "on": kind, "at_s": BEGIN_S, **keys} for kind, (keys, _) in SHOWN.items()]
    return judged(tmp_path_factory.mktemp("clean"), []), judged(tmp_path_factory.mktemp("broken"), faults)


@pytest.mark.parametrize("row", [row for row in FAULTS if row.place == Place.SENSOR and row.kind not in SHOWN], ids=lambda row: row.kind)
def test_every_other_fault_of_a_sensor_is_refused(row):
    sensor = {"name": "front", "profile": "hr80w-like"}
    with pytest.raises(ConfigError, match="must "):
        hilsim.load_rig({"name": "rig", "sensor": [sensor], "fault": [{"kind": row.kind}]})


@pytest.mark.parametrize("kind", SHOWN)
def test_the_sdk_shows_a_fault_from_its_begin_on(both, kind):
    clean, broken = (read[kind] for read in both)
    assert same(clean, broken, slice(FIRST))
    assert SHOWN[kind][1](clean, broken)
