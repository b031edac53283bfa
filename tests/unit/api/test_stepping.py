"""A rig driven by a program's own loop: its packets depend on the poses alone, and are those of a rig whose poses are all known beforehand."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import hilsim
from hilsim import Motion, ObjectClass, TrackedObject
from hilsim.api.stepping import packets_of
from hilsim.assembly.build import build_lidar, build_scenery
from hilsim.offline.epoch import START_UTC, utc_ns
from hilsim.offline.merging import merged
from hilsim.offline.pose_keys import KeyBuffer, ObjectKeys, PlatformKeys
from hilsim.offline.stepper import last_firing_ns
from hilsim.protocols.osi import LIGHT_MPS, decode_reflections
from hilsim.world.geometry.live_keys import LivePlacement, build_live_keys
from hilsim.world.geometry.poses import Pose
from hilsim.world.platforms.live import build_live_pose
from hilsim.world.platforms.platform import live_platform
from hilsim.world.scene.materials import DEFAULTS
from hilsim.world.scene.primitives import box
from hilsim.world.scene.world import SceneObject, build_world
from tests.unit.api.rigs import room

SECOND_SENSOR = '[[sensor]]\nname = "second"\nrotation_rate_rpm = 1200\nstart_delay_us = 333.0\n[sensor.network]\nsource = "127.0.1.202"\n'


def circling(time_s, rate=0.8, radius=1.5):
    """A platform on a circle."""
    angle = rate * time_s
    return Motion(
        position_m=(radius * math.cos(angle), radius * math.sin(angle), 0.3),
        orientation=(math.cos(0.5 * angle), 0.0, 0.0, math.sin(0.5 * angle)),
        velocity_mps=(-radius * rate * math.sin(angle), radius * rate * math.cos(angle), 0.0),
        rates_radps=(0.0, 0.0, rate),
    )


def crate(time_s, name="crate", number=41):
    """A crate that slides past."""
    motion = Motion(position_m=(5.0, -3.0 + 4.0 * time_s, 0.5), velocity_mps=(0.0, 4.0, 0.0), rates_radps=(0.0, 0.0, 0.0))
    return TrackedObject(id=number, name=name, size_m=(0.8, 0.6, 1.2), kind=ObjectClass.VEHICLE, motion=motion)


def frames(packets):
    """Frames of each stream in order."""
    found = {}
    for packet in packets:
        found.setdefault((packet.sensor, packet.stream), []).append((packet.time_ns, packet.frame))
    return found


def drive(rig, times_s, **asked):
    emulator = hilsim.Emulator(rig)
    steps = [emulator.step(at_s, platform=circling(at_s), objects=[crate(at_s)] if at_s >= 0.1 else (), **asked) for at_s in times_s]
    return emulator, steps


def test_packets_are_those_of_a_rig_whose_keys_are_all_known_beforehand(tmp_path):
    rig = room(tmp_path, more=SECOND_SENSOR)
    times = [round(0.01 * number, 9) for number in range(31)]
    _, steps = drive(rig, times)

    scenery, live, pose = build_scenery(rig), build_live_keys(1), build_live_pose(1 << 15)
    platform = PlatformKeys(pose)
    for at_s in times:
        platform.commit(round(at_s * 1e9), circling(at_s))
    things = (*scenery.objects, SceneObject(mesh=box((0.8, 0.6, 1.2), DEFAULTS["paint_silver"]), placement=LivePlacement(0), label=1, name="crate"))
    buffer = KeyBuffer(live)
    keys = ObjectKeys(buffer, 0, 100.0, "crate", 41)
    for at_s in times:
        if at_s >= 0.1:
            keys.commit(round(at_s * 1e9), crate(at_s).motion)
    buffer.flush()
    world = build_world(things, live=live)
    whole = replace(scenery, world=world, platform=live_platform(pose), still_at=None)
    lidars = [build_lidar(rig, number, whole, utc_epoch_ns=utc_ns(START_UTC), frames=True) for number in range(2)]
    batches = [batch for lidar in lidars for batch in (lidar.data_span(0, 400_000_000), lidar.position_span(0, 400_000_000))]
    expected = frames(packets_of(merged(batches)))
    got = frames(itertools.chain.from_iterable(step.packets for step in steps))
    assert got.keys() == expected.keys()
    for stream, packets in got.items():
        assert packets == expected[stream][: len(packets)]
        assert len(packets) > (200 if stream[1] == "data" else 30)


@pytest.mark.parametrize("pieces", [1, 3, 10])
def test_packets_do_not_depend_on_how_time_is_divided(tmp_path, pieces):
    rig = room(tmp_path)
    fine = [round(0.005 * number, 9) for number in range(1, 61)]
    emulator = hilsim.Emulator(rig)
    emulator.step(0.0, platform=circling(0.0), objects={})
    found = []
    for begin in range(0, 60, pieces):
        part = fine[begin : begin + pieces]
        found.extend(emulator.step(part[-1], platform=[(at_s, circling(at_s)) for at_s in part]).packets)
    alone = hilsim.Emulator(rig)
    alone.step(0.0, platform=circling(0.0))
    expected = [packet for at_s in fine for packet in alone.step(at_s, platform=circling(at_s)).packets]
    assert frames(found) == frames(expected)


def test_packets_come_out_with_the_step_that_ends_at_their_last_firing(tmp_path):
    rig = room(tmp_path)
    emulator = hilsim.Emulator(rig)
    lidar = build_lidar(rig, 0, build_scenery(rig), utc_epoch_ns=utc_ns(START_UTC), frames=True)
    last_ns = last_firing_ns(lidar.plan, 7)
    data = [packet for packet in emulator.step((last_ns - 1) / 1e9).packets if packet.stream == "data"]
    assert len(data) == 7
    (after,) = (packet for packet in emulator.step(last_ns / 1e9).packets if packet.stream == "data")
    assert after.time_ns > last_ns
    assert after.payload == lidar.data_packets(7, 1).payload[0, 42 : 42 + 1206].tobytes()


def test_a_rig_whose_own_platform_is_kept_has_the_packets_of_a_recording(tmp_path):
    rig = room(tmp_path, more='[platform]\nkind = "fixed"\nposition_m = [0.2, 0.1, 0.0]\n')
    emulator = hilsim.Emulator(rig)
    stepped = frames(packet for number in range(1, 30) for packet in emulator.step(0.01 * number).packets)
    recorded = frames(hilsim.Emulator(rig).packets(0.0, 0.3))
    for stream, packets in stepped.items():
        assert packets == recorded[stream][: len(packets)]
    assert sum(map(len, stepped.values())) > 240


def test_points_and_hits_are_those_of_the_packets(tmp_path):
    emulator, steps = drive(room(tmp_path), [round(0.05 * number, 9) for number in range(8)], points=True, truth=True)
    names = emulator.object_names()
    assert names[-1] == "crate"
    points = np.concatenate([step.points["lidar"] for step in steps[1:]])
    hits = np.concatenate([step.hits["lidar"] for step in steps[1:]])
    on_crate = points[points["instance"] == len(names) - 1]
    assert set(on_crate["label"]) == {int(ObjectClass.VEHICLE)}
    assert on_crate.size > 50
    assert on_crate["time"].min() >= 100_000_000
    assert set(hits["object_id"][hits["instance"] == len(names) - 1]) == {41}
    assert set(hits["object_id"][hits["instance"] != len(names) - 1]) == {2**64 - 1}
    time_ns, reflections = decode_reflections(steps[-1].reflections["lidar"])
    assert time_ns == steps[-1].until_ns == 350_000_000
    assert [one.object_id for one in reflections] == [
        None if number == 2**64 - 1 else number for number in steps[-1].hits["lidar"]["object_id"].tolist()
    ]
    np.testing.assert_allclose([0.5 * one.flight_s * LIGHT_MPS for one in reflections], steps[-1].hits["lidar"]["range"], rtol=1e-6)


def test_points_lie_where_the_moved_objects_and_platform_are(tmp_path):
    emulator, steps = drive(room(tmp_path, keys="sub_rays = 1"), [round(0.01 * number, 9) for number in range(40)], points=True)
    number = len(emulator.object_names()) - 1
    for step in steps:
        points = step.points.get("lidar", np.zeros(0, hilsim.POINT_DTYPE))
        for point in points[points["instance"] == number]:
            at_s = point["time"] * 1e-9
            place, thing = circling(at_s), crate(at_s).motion
            x, y, z = (float(point[axis]) for axis in "xyz")
            world = Pose(position_m=place.position_m, orientation=place.orientation).transform((y, -x, z))
            off = np.abs(np.subtract(world, thing.position_m)) - np.array([0.4, 0.3, 0.6])
            assert off.max() < 0.15  # range noise


def test_objects_that_are_removed_are_not_seen_until_their_next_poses(tmp_path):
    emulator = hilsim.Emulator(room(tmp_path))

    def seen(step, from_ns=0):
        points = step.points["lidar"]
        return emulator.object_names().index("crate") in points["instance"][points["time"] >= from_ns]

    emulator.step(0.0, platform=circling(0.0), objects=[crate(0.0)], points=True)
    assert seen(emulator.step(0.2, points=True))
    emulator.step(0.21, removed=["crate"])
    assert not seen(emulator.step(0.4, points=True), 210_000_000)
    emulator.step(0.41, objects=[crate(0.3)])
    assert seen(emulator.step(0.6, points=True))


def test_objects_of_the_rig_are_moved_by_name(tmp_path):
    more = '[[scene.box]]\nname = "gate"\nposition_m = [3.0, 0.0, 0.0]\nsize_m = [0.2, 1.0, 1.0]\n'
    emulator = hilsim.Emulator(room(tmp_path, more=more))
    number = emulator.object_names().index("gate")
    before = emulator.step(0.1, points=True).points["lidar"]
    emulator.step(0.11, objects={"gate": Pose(position_m=(3.0, 0.0, 0.0))})
    emulator.step(0.21, objects={"gate": [(0.15, Pose(position_m=(3.0, 0.0, 0.0))), (0.2, Pose(position_m=(4.5, 0.0, 0.0)))]})
    after = emulator.step(0.31, points=True).points["lidar"]
    np.testing.assert_allclose(before["y"][before["instance"] == number].mean(), 2.9, atol=0.1)
    np.testing.assert_allclose(after["y"][after["instance"] == number].mean(), 4.4, atol=0.1)


def test_scene_can_gain_many_objects_at_once(tmp_path):
    emulator = hilsim.Emulator(room(tmp_path))

    def crowd(at_s):
        return [
            TrackedObject(
                id=number, name=f"walker {number}", size_m=(0.2, 0.2, 1.0), motion=Motion(position_m=(-8.0 + 0.05 * number + at_s, 4.0, 0.0))
            )
            for number in range(300)
        ]

    for at_s in (0.0, 0.05, 0.1):
        step = emulator.step(at_s, objects=crowd(at_s), truth=True)
    assert len(set(step.hits["lidar"]["object_id"].tolist())) > 20


@pytest.mark.parametrize(
    ("keys", "error", "rule"),
    [
        ({"until_s": 0.1}, ValueError, "must end after the one before at 100000000 ns, got 100000000 ns"),
        ({"until_s": math.nan}, ValueError, "until_s must be 0 or more, got nan"),
        ({"platform": [(0.05, circling(0.0))]}, ValueError, "a pose's time must be after 100000000 ns and at most 200000000 ns, got 50000000 ns"),
        ({"platform": [(0.2, circling(0.2)), (0.15, circling(0.15))]}, ValueError, "a pose must be later than the one before at 200000000 ns"),
        ({"objects": [crate(0.0), crate(0.0)]}, ValueError, "an object must be listed once in a step"),
        ({"objects": {"ghost": circling(0.0)}}, hilsim.ConfigError, 'an object without a size must be one of the rig\'s, got "ghost"'),
        ({"removed": ["ghost"]}, hilsim.ConfigError, 'name of a removed object must be one that had a pose, got "ghost"'),
        ({"objects": {"crate": Pose(position_m=(500.0, 0.0, 0.0))}}, ValueError, "speed of crate must be at most 100 m/s, got 4950"),
        (
            {"platform": [(0.1 + 0.0001 * n, circling(0.0)) for n in range(1, 102)]},
            ValueError,
            "poses of one body in a step must be at most 100, got 101",
        ),
    ],
)
def test_a_step_that_cannot_be_made_is_refused_with_its_rule(tmp_path, keys, error, rule):
    emulator = hilsim.Emulator(room(tmp_path))
    emulator.step(0.1, platform=circling(0.1), objects=[crate(0.1)])
    with pytest.raises(error, match=rule):
        emulator.step(**{"until_s": 0.2, **keys})


def test_platform_is_given_from_the_first_step_on_or_never(tmp_path):
    emulator = hilsim.Emulator(room(tmp_path))
    emulator.step(0.1)
    with pytest.raises(ValueError, match="platform must be given from the first step on, or never"):
        emulator.step(0.2, platform=circling(0.2))


def test_vehicles_and_scripts_are_refused(tmp_path):
    with pytest.raises(hilsim.ConfigError, match=r"a rig that is stepped must have no \[vehicle\]"):
        hilsim.Emulator("px4").step(0.1)
    script = tmp_path / "script.toml"
    script.write_text('[[change]]\nat_s = 1.0\nkind = "weather"\nweather = {}\n')
    with pytest.raises(ValueError, match="an emulator that is stepped must have no script"):
        hilsim.Emulator(room(tmp_path), script=script).step(0.1)


def test_a_limited_field_of_view_gives_the_packets_of_the_whole_stretch(tmp_path):
    rig = room(tmp_path, more=SECOND_SENSOR.replace("[sensor.network]", "field_of_view_deg = [300, 40]\n[sensor.network]"))
    emulator = hilsim.Emulator(rig)
    steps = [emulator.step(round(0.03 * number, 9)) for number in range(1, 16)]
    got = frames(itertools.chain.from_iterable(step.packets for step in steps))
    expected = frames(hilsim.Emulator(rig).packets(0.0, 0.5))
    assert expected["second", "data"]
    for stream, packets in got.items():
        assert packets == expected[stream][: len(packets)]
        assert len(packets) > 0.8 * len(expected[stream])


EXTERNAL = """[platform]
kind = "external"
position_m = [0.1, 0.0, 0.0]
[external]
time = "{time}"
{more}
[[external.object]]
id = 4
box = {{ name = "cart", size_m = [0.5, 0.5, 1.0], label = 6 }}
[[external.object]]
id = 5
box = {{ name = "never moved", size_m = [1.0, 1.0, 1.0] }}
"""


def test_packets_of_steps_are_those_of_the_recording_of_their_poses(tmp_path):
    rig = room(tmp_path, more=SECOND_SENSOR + EXTERNAL.format(time="lockstep", more='record = "poses.bin"'))
    emulator = hilsim.Emulator(rig)
    stepped = []
    for number in range(41):
        at_s = round(0.01 * number, 9)
        cart = {"cart": replace(crate(at_s).motion, velocity_mps=None)} if 5 <= number < 15 or number > 25 else {}
        removed = ["cart"] if number == 20 else []
        stepped.extend(emulator.step(at_s, platform=circling(at_s) if number > 2 and number % 7 else None, objects=cart, removed=removed).packets)
    replayed = room(tmp_path, more=SECOND_SENSOR + EXTERNAL.format(time="replay", more='file = "poses.bin"'))
    expected = frames(hilsim.Emulator(replayed).packets(0.0, 0.5))
    for stream, packets in frames(stepped).items():
        assert packets == expected[stream][: len(packets)]
        assert len(packets) > (250 if stream[1] == "data" else 40)


def test_recordings_are_not_stepped(tmp_path):
    rig = room(tmp_path, more=EXTERNAL.format(time="replay", more='file = "poses.bin"'))
    with pytest.raises(hilsim.ConfigError, match=r'external\.time of a rig that is stepped must be "lockstep" or "live", got "replay"'):
        hilsim.Emulator(rig).step(0.1)
