"""Backgrounds of a rig: each must belong to its sensor, which must stand still where the map was captured; every fault is named with its place."""

import dataclasses
import math

import numpy as np
import pytest

from hilsim.assembly.backgrounds import check_places, load_backgrounds, platform_pose
from hilsim.config.rig import load_rig
from hilsim.emulator.overlay import OverlayRule, sample_turning
from hilsim.errors import AssetError, ConfigError
from hilsim.read.background.files.archive import write_archive
from hilsim.world.geometry.overlay_frames import ground_only_pose
from hilsim.world.geometry.poses import Pose, extrinsics
from hilsim.world.scene.background import INVALID, AzimuthGrid, ImageGrid
from tests.support import write_rig
from tests.unit.background.backgrounds import background

TURNING = AzimuthGrid(columns=36, elevation_deg=tuple(np.arange(-15.0, 16.0, 2.0)))
IMAGE = ImageGrid(columns=30, rows=20, x_min=-0.5, x_max=0.5, z_min=-0.3, z_max=0.3)
STANDING = extrinsics((3.0, 4.0, 1.8), (0.0, 2.0, 30.0))

ONE = '[[sensor]]\nname = "lidar"\n'
TWO = '[[sensor]]\nname = "left"\n[[sensor]]\nname = "right"\nnetwork.source = "127.0.1.202"\n'
CEPTON = '[[sensor]]\nname = "lidar"\nprofile = "hr80w-like"\n'
THERE = '[platform]\nkind = "background"\n'


def shows(file="map.npz", **more):
    told = "".join(f"{name} = {value}\n" for name, value in more.items())
    return f'[[scene.background]]\nfile = "{file}"\n{told}'


@pytest.fixture
def rig(tmp_path):
    """A rig of some text beside a map that fits a VLP-16 and says where it was captured."""
    write_archive(background(TURNING, model="VLP-16", pose=STANDING), tmp_path / "map.npz")
    return lambda text: load_rig(write_rig(tmp_path, f'name = "place"\n{text}'))


@pytest.fixture
def keep(tmp_path):
    """Puts another map beside the rig, or any bytes."""

    def write(name, content):
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            write_archive(content, path)

    return write


def test_a_background_belongs_to_the_rigs_only_sensor(rig):
    [found] = load_backgrounds(rig(shows() + ONE))
    assert (found.sensor, found.overlay.rule, found.overlay.is_smooth, found.pose) == (0, OverlayRule.NEAREST, False, STANDING)
    assert found.place.endswith("rig.toml: scene.background[0]")
    assert found.overlay.row.tolist() == [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15]  # of channels in firing order


def test_rule_sampling_and_sensor_are_those_that_the_rig_says(rig):
    [found] = load_backgrounds(rig(shows(sensor='"right"', rule='"background-first"', sampling='"edge-aware"') + TWO))
    assert (found.sensor, found.overlay.rule, found.overlay.is_smooth) == (1, OverlayRule.BACKGROUND_FIRST, True)


def test_the_cells_of_the_file_are_shown(rig, keep):
    shown = background(TURNING, model="VLP-16")
    keep("map.npz", shown)
    [found] = load_backgrounds(rig(shows() + ONE))
    assert sample_turning(found.overlay, 0, 2505.0)[0] == pytest.approx(shown.distance_mm[0, 2] / 1000)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (shows(sensor='"middle"') + TWO, r'scene\.background\[0\]\.sensor must be one of left, right, got "middle"'),
        (shows() + TWO, r'scene\.background\[0\]\.sensor must be one of left, right, got ""'),
        (shows(sensor='"middle"') + ONE, r'scene\.background\[0\]\.sensor must be one of lidar, got "middle"'),
        (shows() + shows() + ONE, r"rig\.toml: a sensor must have one background at most, got 2 for lidar"),
        (
            shows() + '[platform]\nkind = "street"\n[scene]\ngenerator = "street"\n' + ONE,
            r'platform must stand still for a background, .* got "street"$',
        ),
        (
            shows() + "[platform]\ndisturbance = { frequency_hz = 5.0, amplitude_deg = 1.0 }\n" + ONE,
            r'platform must stand still .*: kind "fixed" or "background" without disturbance, got "fixed" with disturbance$',
        ),
        (
            shows() + CEPTON,
            r"must be of the sensor's model HR80W-like, got one of a VLP-16\n.*: a background for a HR80W-like must have cells of image x and z",
        ),
    ],
)
def test_a_background_that_does_not_belong_is_named(rig, text, fault):
    with pytest.raises(ConfigError, match=fault):
        load_backgrounds(rig(text))


@pytest.mark.parametrize(
    ("shown", "text", "fault"),
    [
        (background(TURNING, model="HDL-32E"), ONE, r"must be of the sensor's model VLP-16, got one of a HDL-32E$"),
        (background(IMAGE), ONE, r"a background for a VLP-16 must have cells of azimuth and channel, got the other kind$"),
        (background(TURNING), CEPTON, r"a background for a HR80W-like must have cells of image x and z, got the other kind$"),
        (
            background(AzimuthGrid(columns=5, elevation_deg=(-15.0, -0.1, 7.25))),
            ONE,
            r"rows of a background for a VLP-16 must be its 16 elevations from -15 to 15 deg, got 3 from -15 to 7\.25 deg$",
        ),
        (
            background(AzimuthGrid(columns=5, elevation_deg=tuple(np.arange(-10.0, 10.1, 4.0 / 3.0)))),
            ONE,
            r"its 16 elevations from -15 to 15 deg, got 16 from -10 to 10 deg$",
        ),
        (
            background(TURNING, flags=np.full((16, 36), INVALID)),
            ONE,
            r"a background must have a valid cell between 0\.1 m and 200 m, got none$",
        ),
        (background(TURNING, distance_mm=np.full((16, 36), 200_000)), ONE, r"must have a valid cell between 0\.1 m and 200 m, got none$"),
    ],
    ids=["model", "image for a turn", "turn for an image", "number of rows", "elevations", "nothing valid", "nothing near enough"],
)
def test_a_map_that_does_not_fit_its_sensor_is_named(rig, keep, shown, text, fault):
    keep("other.npz", shown)
    with pytest.raises(ConfigError, match=rf"rig\.toml: scene\.background\[0\]: .*{fault}"):
        load_backgrounds(rig(shows("other.npz") + text))


def test_every_fault_of_a_map_is_named_at_once(rig, keep):
    keep("other.npz", background(IMAGE, model="HR80T-like", flags=np.full((20, 30), INVALID)))
    with pytest.raises(ConfigError) as caught:
        load_backgrounds(rig(shows("other.npz") + ONE))
    assert [line.split(": ", 2)[2].split(",")[0] for line in str(caught.value).splitlines()] == [
        "a background must be of the sensor's model VLP-16",
        "a background for a VLP-16 must have cells of azimuth and channel",
        "a background must have a valid cell between 0.1 m and 200 m",
    ]


def test_files_that_cannot_be_used_are_named_with_the_rest(rig, keep, tmp_path):
    keep("good.npz", background(TURNING, model="VLP-16"))
    damaged = bytearray((tmp_path / "good.npz").read_bytes())
    damaged[200] ^= 1
    keep("damaged.npz", bytes(damaged))
    keep("cut.npz", bytes(damaged)[:500])
    keep("photo.npz", b"\x89PNG\r\n")
    files = ("missing.npz", "damaged.npz", "cut.npz", "photo.npz")
    with pytest.raises(AssetError) as caught:
        load_backgrounds(rig("".join(map(shows, files)) + shows(sensor='"middle"') + ONE))
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[0].rsplit("/", 1)[1] for line in lines] == [*files, "rig.toml"]
    assert "is damaged" in lines[1]
    assert "must be a whole NPZ file" in lines[2]
    assert "must be a whole NPZ file" in lines[3]
    assert 'sensor must be one of lidar, got "middle"' in lines[4]


def test_the_rigs_word_on_where_the_map_was_goes_before_the_files(rig):
    [ground] = load_backgrounds(rig(shows(height_m=2.0, pitch_deg=5.0) + ONE))
    [full] = load_backgrounds(rig(shows(position_m=[1.0, 2.0, 3.0]) + ONE))
    assert ground.pose == ground_only_pose(2.0, 5.0)
    assert full.pose == extrinsics((1.0, 2.0, 3.0), (0.0, 0.0, 0.0))


def test_a_platform_is_placed_so_that_its_sensor_is_where_the_map_was_captured(rig):
    mounted = ONE + "mount_position_m = [0.5, 0.0, 1.0]\nmount_rotation_deg = [0.0, 0.0, 90.0]\n"
    one = rig(shows() + THERE + mounted)
    backgrounds = load_backgrounds(one)
    body = platform_pose(one, backgrounds)
    stands = body @ extrinsics((0.5, 0.0, 1.0), (0.0, 0.0, 90.0))
    np.testing.assert_allclose(stands.position_m, STANDING.position_m, atol=1e-12)
    check_places(one, backgrounds, body)


def test_a_platform_that_is_to_stand_there_must_know_where_that_is(rig, keep):
    keep("nowhere.npz", background(TURNING, model="VLP-16"))
    one = rig(shows("nowhere.npz") + THERE + ONE)
    with pytest.raises(
        ConfigError, match=r'platform\.kind "background" must have a background with the pose of its capture, got none: give it height_m'
    ):
        platform_pose(one, load_backgrounds(one))


def test_a_map_without_a_pose_is_wherever_its_sensor_is(rig, keep):
    keep("nowhere.npz", background(TURNING, model="VLP-16"))
    one = rig(shows("nowhere.npz") + ONE)
    check_places(one, load_backgrounds(one), extrinsics((7.0, 8.0, 9.0), (1.0, 2.0, 3.0)))


@pytest.mark.parametrize(
    ("moved_m", "turned_deg", "told"),
    [(0.009, 0.0, None), (0.0, 0.04, None), (0.011, 0.0, r"0\.011 m and 0\.00 deg off"), (0.0, 0.06, r"0\.000 m and 0\.06 deg off")],
)
def test_a_sensor_must_stand_within_a_centimetre_and_a_twentieth_of_a_degree_of_where_its_map_was_captured(rig, moved_m, turned_deg, told):
    one = rig(shows() + ONE)
    backgrounds = load_backgrounds(one)
    turned = math.radians(turned_deg) / 2.0
    body = platform_pose(one, backgrounds) @ Pose(position_m=(moved_m, 0.0, 0.0), orientation=(math.cos(turned), 0.0, 0.0, math.sin(turned)))
    if told is None:
        check_places(one, backgrounds, body)
        return
    with pytest.raises(
        ConfigError, match=rf"sensor lidar must be at the place where its background was captured, got {told} \(platform\.kind = \"background\""
    ):
        check_places(one, backgrounds, body)


def test_each_sensor_that_is_elsewhere_is_named(rig):
    one = rig(shows(sensor='"left"') + shows(sensor='"right"') + TWO)
    with pytest.raises(ConfigError) as caught:
        check_places(one, load_backgrounds(one), dataclasses.replace(STANDING, position_m=(0.0, 0.0, 0.0)))
    assert ["left" in line for line in str(caught.value).splitlines()] == [True, False]
