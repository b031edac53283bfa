"""Feeds of made-up scans: a room around each sensor, which drives along y."""

import numpy as np

from hilsim.api.points import DECODED_DTYPE
from hilsim.read.scans.scan import Scan

RINGS = 16


def points(count, number=0, distance_m=10.0):
    """``DECODED_DTYPE[count]``: a wall around the sensor, one turn of 0.1 s."""
    made = np.zeros(count, DECODED_DTYPE)
    order = np.arange(count)
    azimuth = 2 * np.pi * order / max(count, 1)
    made["ring"] = order % RINGS
    elevation = np.radians(-15.0 + 2.0 * made["ring"])
    away = distance_m + 3.0 * np.sin(3 * azimuth) + 0.1 * number
    made["x"], made["y"] = away * np.sin(azimuth) * np.cos(elevation), away * np.cos(azimuth) * np.cos(elevation)
    made["z"] = away * np.sin(elevation)
    made["range"], made["azimuth"] = away, np.degrees(azimuth)
    made["intensity"] = (order * 100) // max(count, 1)
    made["time"] = 1_000_000_000 + number * 100_000_000 + (order * 100_000_000) // max(count, 1)
    made["return"] = order % 2
    return made


def scan(number, count=1000, sensor="roof", **changes):
    made = points(count, number)
    truth = {"instance": (np.arange(count) % 7 - 1).astype(np.int32), "label": (np.arange(count) % 5).astype(np.int16)}
    values = {"points": made, **truth, "position_m": (0.0, 0.5 * number, 1.8), "stamp_ns": 1_800_000_000_000_000_000 + number * 100_000_000}
    return Scan(sensor=sensor, number=number, **{**values, **changes})


class MadeFeed:
    """Feed whose scans a test adds; the last 20 are stored."""

    title = "made-up <b>scans</b>"

    def __init__(self, *sensors, count=1000):
        self.names = sensors or ("roof",)
        self.count = count
        self.state = None
        self.is_closed = False
        self.scans = {name: [] for name in self.names}

    def turn(self, **changes):
        """Add a scan of every sensor."""
        for name in self.names:
            stored = self.scans[name]
            stored.append(scan(stored[-1].number + 1 if stored else 0, self.count, name, **changes))
            del stored[:-20]

    def sensors(self):
        return tuple(name for name in self.names if self.scans[name])

    def scans_since(self, sensor, number):
        return [one for one in self.scans.get(sensor, ()) if one.number >= number]

    def status(self):
        return self.state

    def close(self):
        self.is_closed = True


class MadeCapture(MadeFeed):
    """Feed of a capture that can be played."""

    duration_s = 20.0

    def __init__(self, *sensors, count=1000):
        super().__init__(*sensors, count=count)
        self.position_s = 0.0
        self.done = []

    def play(self):
        self.done.append("play")

    def pause(self):
        self.done.append("pause")

    def seek_s(self, position_s):
        self.done.append(position_s)
        self.position_s = position_s
