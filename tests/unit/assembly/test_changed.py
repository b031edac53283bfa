"""Rigs that timed changes have made others: plans, and bytes that do not depend on when a change is given."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hilsim.assembly.build import build_lidar, build_scenery
from hilsim.assembly.changed import RigState, changing_lidars, check_script, follow, lidar_after
from hilsim.config.rig import load_rig
from hilsim.config.script import Script, parse_change
from hilsim.emulator.changing.segments import BASE, SegmentTable, enter_segment, render_packet
from hilsim.emulator.schedule import data_deadline_ns
from hilsim.emulator.workspace import allocate_workspace
from hilsim.errors import ConfigError
from tests.compiled import compiled_only
from tests.depth import examples
from tests.random_changes import random_change, random_fault
from tests.support import write_rig

ROOM = """
name = "room"
seed = 5

[[scene.box]]
name = "floor"
size_m = [30.0, 20.0, 0.5]
position_m = [0.0, 0.0, -2.0]
material = "asphalt"

[[scene.box]]
name = "wall"
size_m = [0.3, 20.0, 4.0]
position_m = [9.0, 0.0, 0.0]
material = "brick"

[platform]
kind = "fixed"
position_m = [0.0, 0.0, 0.0]

[control]
socket = "control"
"""
SENSOR = """
[[sensor]]
name = "{name}"
profile = "vlp16"
mount_position_m = {mount}
{keys}
[sensor.network]
source = "127.0.1.{host}"
data_port = {port}
position_port = {position}
"""
SENSORS = (
    SENSOR.format(name="front", mount="[0.0, 0.0, 0.0]", keys="", host=201, port=23681, position=23691),
    SENSOR.format(name="rear", mount="[-1.0, 0.5, 0.2]", keys="sub_rays = 7", host=202, port=23682, position=23692),
)
STOP_NS = 60_000_000
LONGEST_PACKET_NS = 24 * 55_296
PACKETS = 24
"""Data packets that are compared: more than there are until the last change, unless all are of dual returns."""


def room(folder):
    rig = load_rig(write_rig(folder, ROOM + "".join(SENSORS)))
    scenery = build_scenery(rig)
    return rig, scenery, [build_lidar(rig, number, scenery, utc_epoch_ns=0, frames=False) for number in range(2)]


def random_script(rng, share=0.0):
    """Changes at random rig times, several of them within one packet, and a share of faults among them."""
    names, both = [], ["front", "rear"]
    tables = [random_fault(rng, both) if share and rng.random() < share else random_change(rng, names, both) for _ in range(rng.randint(4, 12))]
    times_ns = sorted(rng.choice([rng.randrange(STOP_NS), rng.randrange(5_000_000)]) for _ in tables)
    return tuple(replace(parse_change(table), at_s=at_ns / 1e9) for table, at_ns in zip(tables, times_ns, strict=True))


class Loop:
    """Renders packet after packet of a lidar, as a render thread does, while changes are added."""

    def __init__(self, lidar):
        self._lidars, self._at, self._packet = [lidar], BASE, 0
        self._table = SegmentTable(lidar.plan, lidar.world)
        self._workspace = allocate_workspace(lidar.plan, lidar.plan.sequences_per_packet, is_opaque=False)

    def add(self, later):
        for begin_ns, lidar in later:
            like = self._table.workspace_like(lidar.plan)
            workspace = like or allocate_workspace(lidar.plan, lidar.plan.sequences_per_packet, is_opaque=False)
            self._table.add(begin_ns, lidar.plan, lidar.world, workspace)
            self._lidars.append(lidar)

    @property
    def due_ns(self):
        """Rig time at which the next packet ends, as the render loop sees it: long after its first firing where a limited view lies between."""
        self._at = enter_segment(self._lidars[0].plan, self._table.segments, self._at, self._packet)
        return data_deadline_ns(self._lidars[self._at + 1].plan, self._packet)

    def packet(self):
        segments = self._table.segments
        self._at = enter_segment(self._lidars[0].plan, segments, self._at, self._packet)
        lidar = self._lidars[self._at + 1]
        workspace = self._workspace if self._at == BASE else self._table.workspace_like(lidar.plan)
        payload = np.zeros(lidar.data_size, np.uint8)
        render_packet(lidar.plan, lidar.platform, lidar.world, lidar.data_framing, segments, self._at, self._packet, workspace, payload)
        self._packet += 1
        return payload

    def close(self):
        self._table.close()


@pytest.mark.extended
@compiled_only
@settings(max_examples=examples(20))
@given(seed=st.integers(0, 2**32))
@example(seed=225)  # a limited view that begins with the packet
@example(seed=247)  # a limited view whose first packet begins after further changes
@example(seed=624)  # a packet with firings before and after what a limited view leaves out
def test_changes_given_while_packets_are_rendered_give_the_bytes_of_those_given_at_the_start(tmp_path_factory, seed):
    rng = random.Random(seed)  # noqa: S311 - no secret
    rig, scenery, lidars = room(tmp_path_factory.mktemp("room"))
    changes = random_script(rng, share=0.5 * (seed > 1000))  # the examples are of changes alone
    whole, _ = changing_lidars(rig, scenery, lidars, Script(Path("whole.jsonl"), changes))
    given_ns = rng.randrange(LONGEST_PACKET_NS, STOP_NS)
    at_start = [change for change in changes if change.at_ns < given_ns]
    begun, state = changing_lidars(rig, scenery, lidars, Script(Path("start.jsonl"), tuple(at_start)))
    later = [list(lidar.later) for lidar in begun]
    for change in changes[len(at_start) :]:
        former, state = state, state.after(change)
        for number, lidar in enumerate(lidars):
            follow(later[number], lidar, former, state, number, change.sensor_ns(lidar.setting.name))
    for number, lidar in enumerate(lidars):
        loop, payloads = Loop(lidar), []
        loop.add(begun[number].later)
        while len(payloads) < PACKETS and loop.due_ns <= given_ns:
            payloads.append(loop.packet())
        loop.add(later[number][len(begun[number].later) :])
        payloads += [loop.packet() for _ in range(PACKETS - len(payloads))]
        assert np.array_equal(payloads, whole[number].data_packets(0, PACKETS).payload)
        loop.close()


def values_of(plan):
    for value in plan:
        yield from values_of(value) if isinstance(value, tuple) else (value,)


def test_a_plan_that_takes_over_all_but_its_optics_is_the_plan_made_anew(tmp_path):
    rig, scenery, lidars = room(tmp_path)
    state = RigState.at_start(rig, scenery)
    for table in (
        {"kind": "weather", "weather": {"fog_visibility_m": 30.0, "rain_mm_per_h": 5.0}},
        {"kind": "sensor", "sensor": "rear", "window": {"soiling_transmission": 0.5}},
        {"kind": "sensor", "sensor": "rear", "return_mode": "dual"},
    ):
        state = state.after(parse_change(table))
        found = lidar_after(lidars[1], lidars[1], state, 1)
        anew = replace(found)
        assert "plan" not in vars(anew)
        for value, expected in zip(values_of(found.plan), values_of(anew.plan), strict=True):
            assert np.array_equal(value, expected)


HAS_NOT = {
    "replay": ({"kind": "replay", "replay": "front", "pause": True}, r'replay must be a replay of the rig \(it has none\), got "front"'),
    "vehicle": ({"kind": "vehicle", "reset": True}, r"a rig must have a \[vehicle\] for it to be changed, got none"),
}


@pytest.mark.parametrize(("table", "fault"), HAS_NOT.values(), ids=HAS_NOT)
def test_a_change_of_what_a_rig_does_not_have_is_refused_with_its_place_in_the_script(tmp_path, table, fault):
    rig, scenery, _ = room(tmp_path)
    script = Script(tmp_path / "script.toml", (parse_change({"at_s": 1.5, **table}),))
    for seen in (scenery, None):
        with pytest.raises(ConfigError, match=rf"script.toml: change 0 at 1.5 s: {fault}"):
            check_script(rig, seen, script)


def test_a_rig_in_which_nothing_sees_a_scene_takes_changes_of_its_replays_alone(tmp_path):
    path = write_rig(tmp_path, 'name = "replays"\n[[replay]]\nname = "front"\nfile = "front.pcap"\n')
    rig, pause = load_rig(path), parse_change({"at_s": 1.0, "kind": "replay", "pause": True})
    check_script(rig, None, Script(path, (pause,)))
    fog = parse_change({"at_s": 2.0, "kind": "weather", "weather": {"fog_visibility_m": 30.0}})
    with pytest.raises(
        ConfigError,
        match=r"change 1 at 2 s: a rig must have a \[\[sensor\]\], \[vehicle\], \[\[rangefinder\]\], \[gazebo\], \[\[rover\]\] with drive or",
    ):
        check_script(rig, None, Script(path, (pause, fog)))


def test_changes_of_replays_leave_what_the_sensors_see(tmp_path):
    path = write_rig(tmp_path, ROOM + "".join(SENSORS) + '[[replay]]\nname = "side"\nfile = "side.pcap"\n')
    rig = load_rig(path)
    state = RigState.at_start(rig, build_scenery(rig))
    assert state.after(parse_change({"kind": "replay", "seek_s": 1.0})) is state


def test_a_sensor_hears_the_others_and_they_keep_their_pulses(tmp_path):
    heard = SENSOR.format(name="front", mount="[0.0, 0.0, 0.0]", keys="interference = true", host=201, port=23681, position=23691)
    rig = load_rig(write_rig(tmp_path, ROOM + heard + SENSORS[1]))
    scenery = build_scenery(rig)
    front, rear = (build_lidar(rig, number, scenery, utc_epoch_ns=0, frames=False) for number in range(2))
    assert (front.others, rear.others) == ((rig.lidars[1],), ())
    state = RigState.at_start(rig, scenery)
    for keys in ({"rotation_rate_rpm": 1200}, {"laser": False}, {"phase_lock": True, "phase_lock_deg": 90.0}):
        change = parse_change({"kind": "sensor", "sensor": "rear"} | keys)
        with pytest.raises(ConfigError, match=r"must not be changed while its pulses reach a sensor with interference = true \(front\)"):
            state.after(change)
    with pytest.raises(ConfigError, match="its clock must not be changed while its pulses reach"):
        state.after(parse_change({"kind": "clock", "sensor": "rear", "pps": "locked"}))
    assert state.after(parse_change({"kind": "sensor", "sensor": "front", "rotation_rate_rpm": 1200})).settings[0].setup.rotation_rate_rpm == 1200
    assert state.after(parse_change({"kind": "sensor", "sensor": "rear", "return_mode": "dual"})).settings[1].setup.return_mode == "dual"
