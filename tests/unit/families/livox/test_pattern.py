"""The scan patterns against figures of the published ones: rates, limits, evenness, and that they repeat nothing.

The tables themselves (wheel mujoco-lidar 0.3.5) are met within 0.0045 and 0.0121 degrees rms (elevation and azimuth, across) by the outer lines of a Mid-360 over the
table's 4 s, 0.0014 and 0.0048 by the inner ones, and within 0.0064 and 0.0523 by a HAP, over 959,359 of 1,048,575 shots, 0.3 % of them more than 0.3 away.
"""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from hilsim.emulator.firing import fire
from hilsim.emulator.workspace import allocate_workspace
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import fixed_track
from hilsim.world.platforms.platform import build_platform
from tests.compiled import compiled_only
from tests.livox_sensors import in_room, mid360

ROWS_OF_PUBLISHED = np.array([[268.9900, 52.1620], [269.0000, 49.1749], [269.0000, 46.4190], [269.0000, 43.8553]])
"""Azimuth and elevation in degrees of its first four rows."""

# sequence, channel, azimuth, elevation: shots of the emulator beside rows of the table at the same phases of both rotations
HAP_BESIDE_PUBLISHED = [
    (581, 18, 32.107, 10.179),
    (822, 18, 13.294, -0.0099),
    (569, 19, -1.892, 10.051),
    (2905, 19, -29.778, 1.2443),
    (557, 20, -39.566, 9.6243),
    (1140, 20, -41.005, -1.9848),
    (1128, 21, -26.806, -11.004),
    (1116, 22, 9.42, -11.809),
    (521, 23, 24.486, -4.4997),
    (1104, 23, 45.712, -10.854),
]


def directions(lidar, sequences):
    """Azimuth (counter-clockwise from ahead) and elevation in degrees of shots ``[sequence, channel]``."""
    workspace = allocate_workspace(lidar.plan, sequences.size, is_opaque=True)
    fire(lidar.plan, build_platform(fixed_track(Pose())), sequences, workspace.rays)
    x, y, z = workspace.rays.direction.astype(float).reshape(-1, sequences.size, 3).transpose(2, 1, 0)  # the world's: x forward, y left
    return np.degrees(np.arctan2(y, x)) % 360.0, np.degrees(np.arcsin(np.clip(z, -1, 1)))


def frames(numbers):
    """Directions of the sequences of tenths of a second, ``[frame, sequence, channel]`` each."""
    lidar, of_frame = in_room(), np.arange(0, 1250, 5)
    found = [directions(lidar, number * 1250 + of_frame) for number in numbers]
    return np.array([azimuth for azimuth, _ in found]), np.array([elevation for _, elevation in found])


def test_the_first_shots_are_those_of_the_published_pattern():
    azimuth, elevation = directions(in_room(), np.arange(1))
    np.testing.assert_allclose(np.stack([azimuth[0, :4], elevation[0, :4]], axis=1), ROWS_OF_PUBLISHED, atol=0.03)


def test_the_lines_fill_the_view_as_the_published_ones_do():
    _, elevation = directions(in_room(), np.arange(0, 50_000, 7))
    for line, (low, high) in enumerate(((-7.21, 52.16), (-5.14, 49.18), (-5.14, 49.18), (-7.21, 52.16))):
        of_line = elevation[:, line::4]
        assert abs(of_line.min() - low) < 0.05, line
        assert abs(of_line.max() - high) < 0.05, line
    share = np.histogram(elevation, bins=np.arange(-10, 60, 5))[0] / elevation.size
    np.testing.assert_allclose(share[:2], [0.019, 0.132], atol=0.003)
    assert ((share[2:12] > 0.065) & (share[2:12] < 0.095)).all()
    assert 0.005 < share[12] < 0.015


def test_the_head_turns_clockwise_182_times_a_second():
    azimuth, _ = directions(in_room(), np.array([0, 1]))
    step = (np.diff(azimuth[:, 0]) + 180.0) % 360.0 - 180.0
    assert abs(step[0] + 182.4167 * 360 * 80e-6) < 0.6  # it nods meanwhile


@compiled_only
def test_no_frame_of_a_minute_is_that_of_another():
    azimuth, elevation = (angle[:, ::10] for angle in frames(range(600)))  # frames that differ in these shots differ
    flat = np.concatenate([np.cos(np.radians(azimuth)), np.sin(np.radians(azimuth)), np.radians(elevation)], axis=1).reshape(600, -1)
    assert cKDTree(flat).query_pairs(np.radians(0.02), p=np.inf) == set()


def test_after_ten_days_shots_are_where_whole_numbers_say():
    lidar, day = in_room(), 86_400 * 12_500
    sequence = 10 * day + 7
    azimuth, elevation = directions(lidar, np.array([sequence]))
    turned = 182_416_673 * 864_000 % 1_000_000 / 1_000_000  # of the fast rotation, in ten days; the slow one turns wholly
    lidar = in_room(phase_deg=-360.0 * turned % 360.0)
    again = directions(lidar, np.array([7]))
    np.testing.assert_allclose((azimuth - again[0] + 180.0) % 360.0, 180.0, atol=2e-5)  # rays are float32
    np.testing.assert_allclose(elevation, again[1], atol=2e-5)


def hap_directions(sequences):
    """Directions of a HAP's shots, azimuths of -180 to 180 degrees."""
    azimuth, elevation = directions(in_room(spec=mid360("hap")), sequences)
    return (azimuth + 180.0) % 360.0 - 180.0, elevation


def test_shots_of_a_hap_are_beside_those_of_the_published_pattern():
    rows = np.array(HAP_BESIDE_PUBLISHED)
    azimuth, elevation = hap_directions(rows[:, 0].astype(int))
    place = np.arange(len(rows)), rows[:, 1].astype(int)
    np.testing.assert_allclose(azimuth[place], rows[:, 2], atol=0.2)
    np.testing.assert_allclose(elevation[place], rows[:, 3], atol=0.05)


@compiled_only
def test_the_lines_of_a_hap_fill_the_view_of_its_manual():
    azimuth, elevation = hap_directions(np.arange(0, 22_000, 3))
    assert 119.0 < np.ptp(azimuth) < 121.0
    for line, top in enumerate((13.25, 12.27, 11.31, 10.34, 9.39, 8.44)):
        assert abs(elevation[:, line::6].max() - top) < 0.03, line
        assert abs(elevation[:, 5 - line :: 6].min() + top) < 0.03, line
    # 0.2165: the share of the table's rows there if the denser ones count by their time
    assert ((np.abs(azimuth) < 20.0) & (np.abs(elevation) < 6.0)).mean() == pytest.approx(0.2165, abs=0.005)
    assert ((np.abs(azimuth) < 40.0).mean(), (np.abs(azimuth) > 50.0).mean()) == pytest.approx((0.79, 0.07), abs=0.03)


@compiled_only
def test_no_tenth_of_a_second_of_a_hap_is_that_of_another():
    first = np.arange(0, 942, 10)
    shots = [hap_directions(number * 942 + first) for number in range(100)]
    flat = np.array([np.concatenate([azimuth, elevation]).ravel() for azimuth, elevation in shots])
    for number in range(100):
        away = np.abs(flat - flat[number]).max(axis=1)
        away[number] = np.inf
        assert away.min() > 0.5, number
