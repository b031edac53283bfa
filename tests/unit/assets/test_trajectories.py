"""Trajectory files by hand."""

import numpy as np
import pytest

from hilsim.errors import AssetError
from hilsim.world.assets.trajectories import load_trajectory
from hilsim.world.geometry.tracks import track_pose

HEADER = "time_s,x_m,y_m,z_m,qw,qx,qy,qz\n"
ROWS = "0.0,0,0,0,1,0,0,0\n1.0,10,0,0,0.7071068,0,0,0.7071068\n2.0,10,10,1,0,0,0,1\n"


@pytest.fixture
def load(tmp_path):
    def read(text, name="way.csv", **rest):
        (tmp_path / name).write_text(text)
        return load_trajectory(tmp_path / name, **rest)

    return read


def pose(track, time_s):
    position_m, orientation = np.empty(3), np.empty(4)
    track_pose(track, round(time_s * 1e9), position_m, orientation)
    return position_m.tolist(), orientation.tolist()


@pytest.mark.parametrize(
    "text",
    [
        HEADER + ROWS,
        ROWS,
        "# a comment\n" + HEADER + "\n" + ROWS,
        "# time_s, x_m, y_m, z_m, qw, qx, qy, qz\n" + ROWS,
        "\ufeff" + HEADER + ROWS,
        (HEADER + ROWS).replace("\n", "\r\n"),
        "qz,Time,px,py,pz,qw,qx,qy,name\n0,0.0,0,0,0,1,0,0,a\n0.7071068,1.0,10,0,0,0.7071068,0,0,b\n1,2.0,10,10,1,0,0,0,c\n",
        "time_ns,x,y,z,roll_deg,pitch_deg,yaw_deg\n0,0,0,0,0,0,0\n1000000000,10,0,0,0,0,90\n2000000000,10,10,1,0,0,180\n",
    ],
    ids=["header", "plain", "comment", "hidden header", "mark", "dos", "order", "angles"],
)
def test_every_way_to_write_a_csv_means_the_same(load, text):
    track = load(text)
    position_m, orientation = pose(track, 1.0)
    assert position_m == [10.0, 0.0, 0.0]
    np.testing.assert_allclose(orientation, [np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)], atol=1e-7)


@pytest.mark.parametrize("name", ["way.tum", "way.txt"])
def test_tum_has_w_last_and_blanks_between(load, name):
    track = load("# timestamp tx ty tz qx qy qz qw\n0 0 0 0 0 0 0 1\n1  10 0 0 0 0 0.7071068 0.7071068\n2 10\t10 1 0 0 1 0\n", name)
    position_m, orientation = pose(track, 1.0)
    assert position_m == [10.0, 0.0, 0.0]
    np.testing.assert_allclose(orientation, [np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)], atol=1e-7)


def test_times_since_1970_are_exact_and_begin_at_zero(load):
    track = load("1403636579.763555527 0 0 0 0 0 0 1\n1403636579.763555628 1 0 0 0 0 0 1\n", "way.tum")
    assert track.time_ns.tolist() == [0, 101]


def test_times_may_be_kept_as_rig_times(load):
    assert load("5.5,0,0,0,1,0,0,0\n6.5,1,0,0,1,0,0,0\n", start_at_zero=False).time_ns.tolist() == [5_500_000_000, 6_500_000_000]


def test_the_track_has_no_corners(load):
    track = load(HEADER + ROWS)
    np.testing.assert_array_equal(track.arrival_mps, track.departure_mps)


def test_utm_coordinates_keep_their_digits(load):
    track = load("0,691000.123456,5334000.25,1,1,0,0,0\n1,691001,5334001,1,1,0,0,0\n")
    assert pose(track, 0.0)[0] == [691000.123456, 5334000.25, 1.0]


LOOP = "0,0,0,0,1,0,0,0\n1,10,0,0,1,0,0,0\n2,10,10,0,1,0,0,0\n3,0.005,0,0,1,0,0,0.002\n"


def test_a_loop_repeats_without_a_jump(load):
    track = load(LOOP, loop=True)
    assert track.period_ns == 3_000_000_000
    before, after = np.array(pose(track, 3.0 - 1e-6)[0]), np.array(pose(track, 3.0 + 1e-6)[0])
    assert np.linalg.norm(after - before) < 1e-4
    assert pose(track, 1.0) == pose(track, 301.0)


@pytest.mark.parametrize(
    ("last", "message"),
    [
        ("3,0.02,0,0,1,0,0,0\n", "a loop must end where it starts within 0.01 m, got 0.02 m away"),
        ("3,0,0,0,0.7071068,0,0,0.7071068\n", "a loop must end as it starts within 0.5 degrees, got 90"),
    ],
)
def test_a_loop_whose_ends_do_not_meet_is_refused(load, last, message):
    with pytest.raises(AssetError, match=message):
        load("0,0,0,0,1,0,0,0\n1,10,0,0,1,0,0,0\n" + last, loop=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + "0,0,0,0,1,0,0,0\n0,1,0,0,1,0,0,0\n", "line 3: time must be later than in the row before, got 0.000000000 s after 0.000000000 s"),
        (HEADER + "0,0,nan,0,1,0,0,0\n", "line 2: a pose must be finite, got nan"),
        (HEADER + "0,0,0,0,0,0,0,0\n", "line 2: the quaternion must have length 1, got 0"),
        (HEADER + "0,0,0,0,1,1,0,0\n", "line 2: the quaternion must have length 1, got 1.41421"),
        (HEADER + "0,0,0,0,1,0,0\n", "line 2: a pose must have 8 columns, got 7"),
        (HEADER + "0,0,0,here,1,0,0,0\n", "line 2: a pose must be numbers, got 'here'"),
        (HEADER + "1e40,0,0,0,1,0,0,0\n", "line 2: time must be within 146 years of 0, got 1e40"),
        (HEADER + "0,0,0,0,1,0,0,0\n", "a trajectory must have at least 2 poses, got 1"),
        (HEADER, "a trajectory must have at least 2 poses, got 0"),
        ("x,y,z\n" + ROWS, "line 1: the header must have one time column"),
        ("time_s,x_m,y_m,qw,qx,qy,qz\n" + ROWS, "line 1: the header must have the columns x_m, y_m, z_m"),
        ("time_s,x_m,y_m,z_m\n" + ROWS, "line 1: the header must have the columns qw, qx, qy, qz or roll_deg"),
        ("time_s,x_m,y_m,z_m,x_m,qw,qx,qy,qz\n" + ROWS, "the header must name each column once, got x_m twice"),
    ],
    ids=range(13),
)
def test_a_fault_is_named_with_file_and_line(load, tmp_path, text, message):
    with pytest.raises(AssetError, match=message) as caught:
        load(text)
    assert str(caught.value).startswith(str(tmp_path / "way.csv"))


KITTI = "1 0 0 1 0 1 0 2 0 0 1 3\n1 0 0 1 0 1 0 2 0 0 1 4\n"


@pytest.mark.parametrize("folder", [".", "sequences/way"])
def test_poses_of_kittis_camera_become_those_of_the_body(load, tmp_path, folder):
    (tmp_path / "poses").mkdir()
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / folder / "times.txt").write_text("0.0\n1.5e-01\n")
    track = load(KITTI, "way.txt" if folder == "." else "poses/way.txt")
    assert track.time_ns.tolist() == [0, 150_000_000]
    np.testing.assert_allclose(track.position_m, [(3, -1, -2), (4, -1, -2)])
    (tmp_path / folder / "calib.txt").write_text("P0: 1\nTr: 1 0 0 0 0 1 0 0 0 0 1 0\n")
    np.testing.assert_allclose(load(KITTI, "way.txt" if folder == "." else "poses/way.txt").position_m, [(1, 2, 3), (1, 2, 4)])


@pytest.mark.parametrize(
    ("text", "times", "calibration", "message"),
    [
        (KITTI, None, None, r"way\.txt: rows of 12 numbers are poses of KITTI, whose times must be in times\.txt beside it, got no such file"),
        (KITTI, "0\n", None, r"times\.txt: must have a time for each of the 2 poses of way\.txt, got 1"),
        (KITTI, "0\n1\n", "Tr: 1 0\n", r"calib\.txt: must have one line Tr: with 12 numbers"),
        (KITTI, "0\n1\n", "Tr: 2 0 0 0 0 1 0 0 0 0 1 0\n", r"calib\.txt: Tr must be a rotation and a translation"),
        (KITTI, "0\n0\n", None, "line 2: time must be later than in the row before"),
        (KITTI.replace("1 0 2 0 0 1 4", "1 0 2 0 0"), "0\n1\n", None, "line 2: a pose must have 12 columns, got 10"),
        (KITTI.replace("0 0 1 4", "0 0 2 4"), "0\n1\n", None, "line 2: the first three columns of a matrix must be a rotation"),
    ],
)
def test_a_fault_of_kittis_files_is_named(load, tmp_path, text, times, calibration, message):
    for name, held in (("times.txt", times), ("calib.txt", calibration)):
        if held is not None:
            (tmp_path / name).write_text(held)
    with pytest.raises(AssetError, match=message):
        load(text, "way.txt")


def test_faults_are_reported_together_and_the_rest_is_counted(load):
    with pytest.raises(AssetError) as caught:
        load(HEADER + "0,0,0,0,1,0,0,0\n" + "0,0,0,0,1,0,0,0\n" * 15)
    lines = str(caught.value).splitlines()
    assert len(lines) == 11
    assert lines[-1].endswith("and 5 more faults")


def test_files_that_are_no_text_or_not_there_are_refused(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"0,1\xff")
    with pytest.raises(AssetError, match="must be text in UTF-8, got byte 0xff at 3"):
        load_trajectory(tmp_path / "a.csv")
    with pytest.raises(AssetError, match="no such file"):
        load_trajectory(tmp_path / "b.csv")
    with pytest.raises(AssetError, match=r'must be a \.csv, \.tum or \.txt file, got "\.bag"'):
        load_trajectory(tmp_path / "c.bag")


@pytest.mark.parametrize("word", ["1e999999", "-1e999999", "1e1000000000"])
def test_a_time_of_a_million_digits_is_refused_without_writing_it_out(tmp_path, word):
    (tmp_path / "a.tum").write_text(f"0 0 0 0 0 0 0 1\n{word} 0 0 0 0 0 0 1\n")
    with pytest.raises(AssetError, match=r"line 2: (time must be within 146 years of 0|a pose must be finite)"):
        load_trajectory(tmp_path / "a.tum")


def test_a_position_beyond_the_limit_of_coordinates_is_refused(tmp_path):
    (tmp_path / "a.tum").write_text("0 0 0 0 0 0 0 1\n1 1e300 0 0 0 0 0 1\n")
    with pytest.raises(AssetError, match=r"line 2: each coordinate must be at most 100,000,000 m, got 1e\+300 m"):
        load_trajectory(tmp_path / "a.tum")
