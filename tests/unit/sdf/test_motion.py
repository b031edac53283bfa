"""Where actors are, against what Gazebo's own library (libignition-common 4.5.1 with libignition-math 6.10) makes of the same waypoints."""

import math
import re

import numpy as np
import pytest

from hilsim.errors import AssetError
from hilsim.world.geometry.poses import Pose, mounting
from hilsim.world.geometry.tracks import track_state
from hilsim.world.sdf.motion import LEAP_NS, actor_track
from hilsim.world.sdf.reading import read_sdf
from hilsim.world.sdf.specs import SdfActor, SdfTrajectory, SdfWaypoint

OPEN = [(0.5, (0, 0, 0), (0, 0, 0)), (2.0, (3, 0, 0), (0, 0, 1.2)), (2.7, (3, 4, 1), (0, 0, 2.0)), (4.0, (-1, 5, 0.5), (0.2, -0.1, 2.4))]
OPEN_THERE = """
0.4 0.622044444444 -0.0730074074074 -0.0182518518519 0.992543769521 0 0 0.12188874265
1 2.14444444444 -0.207407407407 -0.0518518518519 0.92392027079 0 0 0.382585066649
1.9 3.30612244898 2.327696793 0.618658892128 0.657892123247 -0.00592891201347 -0.00538493543431 0.753069588181
2.3 2.84852071006 4.12963131543 1.00400546199 0.521065225645 0.00389564104286 0.00353821669868 0.853500635985
3 0.396449704142 4.77833409194 0.706417842513 0.407643374806 0.0531748012564 0.0482960230895 0.910311382793
3.5 -1 5 0.5 0.355446390517 0.0824800234094 0.0749124965375 0.928031802833"""
CLOSED = [(0.0, (0, 0, 0), (0, 0, 0)), (1.0, (2, 0, 0), (0, 0, math.pi / 2)), (3.0, (2, 2, 0), (0, 0, 3.0)), (4.0, (0, 0, 0), (0, 0, 0))]
CLOSED_THERE = """
0.5 0.875 -0.25 0 0.967843036682 0 0 0.251554877406
1.5 2.1875 0.453125 0 0.522572234468 0 0 0.852595015094
2.5 2.1875 1.734375 0 0.0919432717451 0 0 0.995764246587
3.3 1.421 1.631 0 0.416882739427 0 0 0.908960275022"""


def trajectory(rows, tension=0.0):
    points = [SdfWaypoint(time_ms=round(time_s * 1000), pose=mounting(at, tuple(math.degrees(angle) for angle in turn))) for time_s, at, turn in rows]
    return SdfTrajectory(waypoints=tuple(points), tension=tension)


def actor(*trajectories, is_looped=False, delay_s=0.0, pose=None):
    return SdfActor(name="walker", trajectories=trajectories, is_looped=is_looped, delay_s=delay_s, pose=pose or Pose())


def states(track, times_s):
    found = [track_state(track, round(time_s * 1e9)) for time_s in times_s]
    return np.array([position for position, _ in found]), np.array([turn for _, turn in found])


@pytest.mark.parametrize(("rows", "tension", "there"), [(OPEN, 0.3, OPEN_THERE), (CLOSED, 0.0, CLOSED_THERE)])
def test_an_actor_goes_where_gazebos_library_has_it(rows, tension, there):
    expected = np.array([[float(word) for word in line.split()] for line in there.strip().splitlines()])
    position, turn = states(actor_track(actor(trajectory(rows, tension)), Pose()), expected[:, 0])
    np.testing.assert_allclose(position, expected[:, 1:4], atol=1e-9)
    np.testing.assert_array_less(2.0 * np.arccos(np.clip(np.abs((turn * expected[:, 4:]).sum(axis=1)), 0.0, 1.0)), 1e-3)


def test_it_starts_from_the_actors_own_pose_and_where_the_file_is():
    pose, stand = mounting((1.0, 2.0, 3.0), (0.0, 0.0, 90.0)), Pose(position_m=(100.0, 0.0, 0.0))
    position, turn = states(actor_track(actor(trajectory(OPEN), pose=pose), stand), [0.0, 3.5])
    np.testing.assert_allclose(position, [(101.0, 2.0, 3.0), (101.0 - 5.0, 2.0 - 1.0, 3.5)], atol=1e-9)
    np.testing.assert_allclose(turn[0], pose.orientation, atol=1e-12)


def test_it_is_at_its_first_waypoint_until_the_delay_is_over_and_at_its_last_one_for_ever():
    position, _ = states(actor_track(actor(trajectory(OPEN), delay_s=2.0), Pose()), [0.0, 1.999, 3.5, 5.5, 1000.0])
    np.testing.assert_allclose(position, [(0, 0, 0), (0, 0, 0), (3, 0, 0), (-1, 5, 0.5), (-1, 5, 0.5)], atol=1e-6)


def test_a_loop_begins_again_after_its_delay_and_not_before():
    track = actor_track(actor(trajectory(CLOSED), is_looped=True, delay_s=2.0), Pose())
    first, again, _ = (states(track, np.array([0.3, 1.7, 3.9]) + begin_s)[0] for begin_s in (2.0, 6.0, 10.0))
    np.testing.assert_allclose(again, first, atol=1e-9)
    assert abs(first).max() > 1.0
    np.testing.assert_array_equal(states(track, [0.0, 1.0, 2.0])[0], np.zeros((3, 3)))


def test_a_loop_that_does_not_close_leaps_within_a_millisecond():
    track = actor_track(actor(trajectory(OPEN), is_looped=True), Pose())
    leap_s = LEAP_NS * 1e-9
    before, after = states(track, [3.5 - leap_s, 7.0 - leap_s])[0], states(track, [3.5, 7.0, 3.9])[0]
    np.testing.assert_allclose(before, [(-1, 5, 0.5)] * 2, atol=5e-3)
    np.testing.assert_allclose(after[:2], np.zeros((2, 3)), atol=1e-6)
    np.testing.assert_allclose(after[2], states(track, [0.4])[0][0], atol=1e-9)


def test_trajectories_follow_each_other():
    second = [(10.0, (-1, 5, 0.5), (0, 0, 0)), (12.0, (-1, 9, 0.5), (0, 0, 0))]
    third = [(0.0, (50, 0, 0), (0, 0, 0)), (1.0, (51, 0, 0), (0, 0, 0))]
    track = actor_track(actor(trajectory(OPEN), trajectory(second), trajectory(third)), Pose())
    position, _ = states(track, [1.5, 3.5, 4.5, 5.5 - LEAP_NS * 1e-9, 5.5, 6.0, 6.5, 9.0])
    np.testing.assert_allclose(
        position, [(3, 0, 0), (-1, 5, 0.5), (-1, 7, 0.5), (-1, 9, 0.5), (50, 0, 0), (50.5, 0, 0), (51, 0, 0), (51, 0, 0)], atol=5e-3
    )


def test_a_rover_without_a_waypoint_does_not_move_and_one_with_one_stays_there():
    assert actor_track(actor(), Pose()) is None
    assert actor_track(actor(SdfTrajectory()), Pose()) is None
    for is_looped in (False, True):
        track = actor_track(actor(trajectory([(3.0, (1, 2, 3), (0, 0, 0))]), is_looped=is_looped), Pose())
        np.testing.assert_array_equal(states(track, [0.0, 1.0, 9.0])[0], [(1, 2, 3)] * 3)


def world(script, inner=""):
    return f'<sdf version="1.9"><world name="w">\n<actor name="walker"><pose>0 0 1 0 0 0</pose>{inner}\n<script>{script}\n</script></actor></world></sdf>'


def read(tmp_path, script, inner=""):
    (tmp_path / "world.sdf").write_text(world(script, inner))
    return read_sdf(tmp_path / "world.sdf")


WAYPOINT = "<waypoint><time>{}</time><pose>{} 0 0 0 0 0</pose></waypoint>"


def test_a_script_is_read_with_its_waypoints_in_the_order_of_their_times(tmp_path):
    points = "".join(WAYPOINT.format(time_s, at) for time_s, at in (("4.0019", 8), ("0", 1)))
    script = f'<loop>false</loop><delay_start>2</delay_start><trajectory id="0" type="walk" tension="0.25">{points}</trajectory><trajectory id="1" type="walk"/>'
    scene = read(tmp_path, script)
    (found,) = scene.actors
    first, second = found.trajectories
    assert (found.name, found.is_looped, found.delay_s, found.pose.position_m) == ("walker", False, 2.0, (0.0, 0.0, 1.0))
    assert [(point.time_ms, point.pose.position_m[0]) for point in first.waypoints] == [(0, 1.0), (4001, 8.0)]
    assert (first.tension, second.waypoints, scene.unsupported) == (0.25, (), ())


def test_of_two_waypoints_at_one_millisecond_the_later_one_counts_and_is_reported(tmp_path):
    points = "\n".join(WAYPOINT.format(time_s, at) for time_s, at in (("1", 1), ("1.0004", 2)))
    scene = read(tmp_path, f'<trajectory id="0" type="walk">{points}</trajectory>')
    [point] = scene.actors[0].trajectories[0].waypoints
    assert point.pose.position_m[0] == 2.0
    [note] = scene.unsupported
    assert re.search(r"world\.sdf:4: a <waypoint> before is at the same millisecond, 1 s", note)


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        ("<delay_start>-1</delay_start>", r"world\.sdf:3: <delay_start> must be 0 to 2147484 s, got -1"),
        ("<delay_start>1e30</delay_start>", "<delay_start> must be 0 to 2147484 s, got 1e"),
        (f'<trajectory id="0" type="walk">{WAYPOINT.format("1e12", 0)}</trajectory>', "<time> must be at most 2147484 s, got 1e"),
        ('<trajectory id="0" type="walk" tension="2"/>', 'tension must be 0 to 1, got "2"'),
        ('<trajectory id="0" type="walk" tension="nan"/>', 'tension must be 0 to 1, got "nan"'),
        ('<trajectory id="0" type="walk" tension="tight"/>', 'tension must be 0 to 1, got "tight"'),
    ],
)
def test_a_script_that_cannot_be_is_refused_with_its_line(tmp_path, script, fault):
    with pytest.raises(AssetError, match=fault):
        read(tmp_path, script)


def test_contents_of_an_actors_links_move_with_it_and_its_collisions_are_reported(tmp_path):
    shape = "<geometry><box><size>1 1 1</size></box></geometry>"
    link = f'<link name="body"><pose>1 0 0 0 0 0</pose><visual name="v">{shape}</visual><collision name="c">{shape}</collision></link>'
    scene = read(tmp_path, "", link)
    [seen] = scene.visuals
    assert (seen.name, seen.actor, seen.pose.position_m, scene.collisions) == ("walker::body::v", "walker", (1.0, 0.0, 1.0), ())
    assert scene.unsupported == (f"{tmp_path}/world.sdf:2: collisions of <actor> walker are not detected by lidars, as in Gazebo: they are ignored",)
