"""The scan pattern against figures of the published one: rates, limits, evenness, and that it repeats nothing.

The table itself (mid360 of the wheel mujoco-lidar 0.3.5) is met within 0.0045 and 0.0121 degrees rms (elevation and azimuth, across) of the outer lines, 0.0014 and
0.0048 of the inner ones, over its 4 s.
"""

import numpy as np

from hilsim.emulator.firing import fire
from hilsim.emulator.workspace import allocate_workspace
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import fixed_track
from hilsim.world.platforms.platform import build_platform
from tests.compiled import compiled_only
from tests.livox_sensors import in_room

ROWS_OF_PUBLISHED = np.array([[268.9900, 52.1620], [269.0000, 49.1749], [269.0000, 46.4190], [269.0000, 43.8553]])
"""Azimuth and elevation in degrees of its first four rows."""


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
    azimuth, elevation = frames(range(600))
    flat = np.concatenate([np.cos(np.radians(azimuth)), np.sin(np.radians(azimuth)), np.radians(elevation)], axis=1).reshape(600, -1)
    for number in range(600):
        away = np.abs(flat - flat[number]).max(axis=1)
        away[number] = np.inf
        assert np.degrees(away.min()) > 0.02, number


def test_after_ten_days_shots_are_where_whole_numbers_say():
    lidar, day = in_room(), 86_400 * 12_500
    sequence = 10 * day + 7
    azimuth, elevation = directions(lidar, np.array([sequence]))
    turned = 182_416_673 * 864_000 % 1_000_000 / 1_000_000  # of the fast rotation, in ten days; the slow one turns wholly
    lidar = in_room(phase_deg=-360.0 * turned % 360.0)
    again = directions(lidar, np.array([7]))
    np.testing.assert_allclose((azimuth - again[0] + 180.0) % 360.0, 180.0, atol=2e-5)  # rays are float32
    np.testing.assert_allclose(elevation, again[1], atol=2e-5)
