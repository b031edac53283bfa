"""Range and direction errors of lasers, recovered from an empty room of known walls."""

import numpy as np
import pytest

from hilsim.families.velodyne.calibration.figures import Learned
from hilsim.families.velodyne.calibration.lasers import fit_lasers, learn_lasers
from hilsim.families.velodyne.calibration.surfaces import Rays, find_planes
from hilsim.families.velodyne.protocol.models import VLP_16

LASERS, CELLS = 16, 900
ROOM_M = ((-4.0, 5.5), (-3.2, 6.0), (-1.4, 1.9))
NOTHING = np.zeros(LASERS)


def room_rays(bias_m=NOTHING, elevation_deg=NOTHING, azimuth_deg=NOTHING, noise_m=0.002, room_m=ROOM_M):
    """Cells of a still sensor in an empty room whose walls are not parallel to its axes."""
    draw = np.random.default_rng(5)
    laser, column = (grid.ravel() for grid in np.meshgrid(np.arange(LASERS), np.arange(CELLS), indexing="ij"))
    geometry = VLP_16.geometry
    height_m = np.array(geometry.vertical_offset_mm)[laser] / 1000.0
    rays = Rays(
        laser=laser,
        range_m=np.ones(laser.size),
        azimuth_rad=(column + draw.random(laser.size)) * 2.0 * np.pi / CELLS,
        elevation_rad=np.radians(geometry.elevation_deg)[laser],
        origin_m=np.stack([0.0 * height_m, 0.0 * height_m, height_m], axis=1),
        reflectivity=np.full(laser.size, 40.0),
        visits=np.full(laser.size, 10),
    )
    tilt = np.array([[1.0, 0.02, 0.03], [-0.02, 1.0, 0.01], [-0.03, -0.01, 1.0]])
    ahead = rays.directions(np.radians(elevation_deg)[laser], np.radians(azimuth_deg)[laser])
    with np.errstate(divide="ignore"):
        reach = [(limit - rays.origin_m @ axis) / (ahead @ axis) for axis, limits in zip(tilt, room_m, strict=True) for limit in limits]
    reach = np.where(np.array(reach) > 0.0, reach, np.inf).min(axis=0)
    measured = reach + bias_m[laser] + noise_m * draw.standard_normal(laser.size)
    return Rays(**{name: measured if name == "range_m" else getattr(rays, name) for name in Rays.__dataclass_fields__})


@pytest.fixture(scope="module")
def unit():
    draw = np.random.default_rng(1)
    return {
        "bias_m": 0.008 * draw.standard_normal(LASERS),
        "elevation_deg": 0.03 * draw.standard_normal(LASERS),
        "azimuth_deg": 0.03 * draw.standard_normal(LASERS),
    }


def test_the_walls_are_found():
    rays = room_rays()
    planes = find_planes(rays)
    assert len(planes) == 4
    assert sum(plane.size for plane in planes) > 0.9 * rays.laser.size


def test_range_errors_are_learned_within_two_millimetres_beside_errors_of_direction(unit):
    rays = room_rays(**unit)
    found = fit_lasers([rays.chosen(on) for on in find_planes(rays)], LASERS)
    np.testing.assert_allclose(found.bias_m, unit["bias_m"] - unit["bias_m"].mean(), atol=0.002)
    np.testing.assert_allclose(np.degrees(found.azimuth_rad), unit["azimuth_deg"] - unit["azimuth_deg"].mean(), atol=0.01)
    assert found.bias_sd_m.max() < 0.002


def test_a_room_without_planes_gives_a_reason():
    draw = np.random.default_rng(2)
    rays = room_rays()
    rays = Rays(**{name: 3.0 + draw.random(rays.laser.size) if name == "range_m" else getattr(rays, name) for name in Rays.__dataclass_fields__})
    learned = Learned(lasers=[{} for _ in range(LASERS)])
    learn_lasers([rays], LASERS, learned)
    assert {figure.reason for figure in learned.figures} == {"no plane of 4 lasers and 150 directions was seen"}
    assert learned.lasers == [{}] * LASERS
