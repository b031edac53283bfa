"""Maps against the world: a wall whose distance is known, seen with the profiles' own noise; and real captures against the medians of their cells."""

import numpy as np
import pytest

from hilsim.capture.batches import CaptureBatches
from hilsim.cli.background.outputs import named_profile
from hilsim.families.velodyne.protocol.models import BY_NAME
from hilsim.read.background.generator import generate, prepare
from hilsim.read.background.job import Stretch
from hilsim.read.background.part import GridSetting
from hilsim.read.background.pool import map_here
from hilsim.read.background.surface import SurfaceRule
from tests.unit.background.slow_decoding import returns_by_cell
from tests.walls import GRIDS, PROFILES, record_wall, wall_errors_mm

MAX_MM = 3.0


@pytest.fixture(scope="module", params=PROFILES)
def wall(request, tmp_path_factory):
    """A profile's name, and a recording of a wall by it."""
    path = tmp_path_factory.mktemp(request.param) / "wall.pcap"
    record_wall(path, request.param, seconds=4)
    return request.param, path


def mapped(path, rule, *, profile=None, setting=None, stretch=None):
    named = named_profile(profile).spec if profile else None
    job, found = prepare(path, setting or GridSetting(), named=named, stretch=stretch)
    return generate(job, found, [path], rule, map_here, lambda _: None).map


def test_a_wall_at_20_m_maps_where_it_is_with_the_sensors_own_noise(wall):
    profile, path = wall
    errors = wall_errors_mm(mapped(path, SurfaceRule(), profile=profile, setting=GRIDS[profile]))
    assert errors.size > 3000
    assert abs(errors.mean()) < MAX_MM
    assert abs(np.median(errors)) < MAX_MM
    # of some 30 to 60 returns a cell, and of the HR80W-like's cells 0.4 degrees across, whose returns are not all at the middle
    assert errors.std() < (4.0 if profile == "vlp16" else 20.0)


def test_the_farthest_returns_of_the_same_wall_lie_behind_it(wall):
    profile, path = wall
    errors = wall_errors_mm(mapped(path, SurfaceRule(distance="farthest"), profile=profile, setting=GRIDS[profile]))
    assert errors.mean() > (10.0 if profile == "vlp16" else 50.0)


CAPTURES = [
    ("vlp16_dual.pcap", "VLP-16", None, 5, 400),
    ("vlp16_strongest_1200rpm.pcap", "VLP-16", None, 10, 15_000),
    ("vlp16_strongest_gps.pcap", "VLP-16", None, 4, 15_000),
    ("hdl32e_strongest.pcap", "HDL-32E", 0.2, 4, 700),
    ("vlp32c_strongest_fov.pcap", "VLP-32C", None, 4, 500),
]


@pytest.mark.parametrize(("name", "model", "seconds", "hits", "cells"), CAPTURES)
def test_a_real_capture_maps_to_the_median_of_each_cell_of_one_surface(capture, name, model, seconds, hits, cells):
    path = capture(name)
    formed = mapped(path, SurfaceRule(), stretch=Stretch(duration_s=seconds))
    errors = np.array(list(_errors_mm(path, formed, model, seconds, hits)))
    assert errors.size > cells
    assert abs(errors.mean()) < MAX_MM
    assert abs(np.median(errors)) < MAX_MM
    assert errors.std() < 6.0


def _errors_mm(path, formed, model, seconds, hits):
    """Yield the map's distance minus the median of the cell's returns, by plain NumPy, where they lie within 10 cm of each other."""
    batches = list(CaptureBatches(path))
    until_ns = batches[0].host_stamp_ns[0] + (seconds or 1e6) * 1e9
    payloads = [
        batch.data[start : start + 1206]
        for batch in batches
        for start, size, stamp_ns in zip(batch.start, batch.size, batch.host_stamp_ns, strict=True)
        if size == 1206 and stamp_ns < until_ns
    ]
    geometry = BY_NAME[model].geometry
    packets = np.stack(payloads)
    azimuth = packets[:, :1200].reshape(-1, 12, 100)[:, :, 2:4].copy().view("<u2")[:, :, 0].astype(np.int64)
    within = (np.diff(azimuth, axis=1) % 36_000).max(axis=1) < 400  # a field of view's jump is not for plain NumPy
    (row, column, distance_mm, _), _ = returns_by_cell(packets[within], geometry, formed.grid.columns)
    cell = row * formed.grid.columns + column
    order = np.lexsort((distance_mm, cell))
    cell, distance_mm = cell[order], distance_mm[order]
    borders = np.flatnonzero(np.diff(cell)) + 1
    for at, of_cell in zip(cell[np.concatenate([[0], borders])], np.split(distance_mm, borders), strict=True):
        if of_cell.size >= hits and of_cell[-1] - of_cell[0] <= 100 and formed.used.flat[at]:
            yield int(formed.distance_mm.flat[at]) - float(np.median(of_cell))
