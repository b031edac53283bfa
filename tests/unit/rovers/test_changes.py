"""Driving rovers in a scene that changes at rig times."""

import struct
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import hilsim
from hilsim.assembly.build import build_scenery
from hilsim.config.rig import rig_of_table
from hilsim.daemon.parts import RigClock, RigContext
from hilsim.daemon.precompile import kernel_needs
from hilsim.errors import ConfigError
from hilsim.parts.rovers.lidars import rover_sources
from hilsim.parts.rovers.part import Rovers
from hilsim.world.scene.world import build_world

MS = 1_000_000
PERIOD_NS = 100 * MS
NEAR_M, FAR_M = 5.0, 9.0
IDEAL = {"steered_by": "buttons", "columns": 90, "rows": 4}
WITH_LIDAR = {"steered_by": "buttons", "lidar": {"profile": "vlp16"}}
NOISELESS = {"position_m": 0.0, "rotation_deg": 0.0, "point_m": 0.0}


def rig(drive, **keys):
    return {
        "name": "yard",
        "seed": 7,
        "scene": {
            "plane": [{"size_m": [80.0, 80.0]}],
            "box": [{"name": "wall", "position_m": [NEAR_M + 0.5, 0.0, 2.0], "size_m": [1.0, 30.0, 8.0]}],
        },
        "rover": [{"number": 1, "noise": NOISELESS, "drive": drive}],
    } | keys


def wall_at(east_m, **times):
    return {"kind": "move", "name": "wall", "position_m": [east_m + 0.5, 0.0, 2.0], **times}


def walls_m(table, tmp_path, changes, seconds=0.75):
    """East of the points straight ahead of each cycle, by the cycle's number."""
    script = None
    if changes:
        script = tmp_path / "script.toml"
        script.write_text("".join("[[change]]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in change.items()) for change in changes))
    found = defaultdict(list)
    for packet in hilsim.Emulator(table, script=script).packets(0.0, seconds):
        if packet.stream == "lidar":
            (stamp,) = struct.unpack_from("<d", packet.payload)
            found[round(stamp * 10)].append(np.frombuffer(packet.payload, "<f4", offset=20).reshape(-1, 3))
    ahead = {}
    for cycle, chunks in found.items():
        points = np.concatenate(chunks)
        is_ahead = (points[:, 0] > 1.0) & (np.abs(points[:, 2]) < 0.3) & (points[:, 1] > 0.3)
        ahead[cycle] = float(np.median(points[is_ahead, 0]))
    return ahead


def toml(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f'"{key}" = {toml(each)}' for key, each in value.items()) + " }"
    return f'"{value}"' if isinstance(value, str) else str(value)


@pytest.mark.parametrize("drive", [IDEAL, WITH_LIDAR])
def test_a_cycle_sees_the_scene_of_its_own_instant(tmp_path, drive):
    ahead = walls_m(rig(drive), tmp_path, [wall_at(FAR_M, at_s=0.3), wall_at(NEAR_M, at_s=0.5000001)])
    expected = {1: NEAR_M, 2: NEAR_M, 3: FAR_M, 4: FAR_M, 5: FAR_M, 6: NEAR_M, 7: NEAR_M}
    assert ahead == pytest.approx(expected, abs=0.03)


def test_a_rover_that_had_begun_its_cycle_sees_a_change_from_its_own_time_on(tmp_path):
    ahead = walls_m(rig(IDEAL), tmp_path, [wall_at(FAR_M, at_s=0.3, late_s={"rover-1": 0.4})])
    assert ahead == pytest.approx({1: NEAR_M, 2: NEAR_M, 3: NEAR_M} | dict.fromkeys(range(4, 8), FAR_M), abs=0.03)


def test_changes_that_become_due_one_after_the_other_show_long_after_each_other(tmp_path):
    changes = [wall_at(FAR_M, at_s=1.0), wall_at(NEAR_M, at_s=14.0)]
    ahead = walls_m(rig(IDEAL), tmp_path, changes, seconds=15.0)
    assert ahead == pytest.approx({cycle: FAR_M if 10 <= cycle < 140 else NEAR_M for cycle in ahead}, abs=0.03)


@pytest.mark.parametrize("from_cycles", [0.0, 2.0, 2.01, 3.0, 7.5])
def test_a_world_begins_with_the_next_cycle_at_the_earliest(from_cycles):
    table = rig_of_table(rig(IDEAL), Path("rig.toml"))
    [source] = rover_sources(table, build_scenery(table).world, can_change=True)
    other, from_ns = build_world([]), round(from_cycles * PERIOD_NS)
    assert source._world_of(2, PERIOD_NS) is source.world
    begun_ns = source.see_later(from_ns, other, PERIOD_NS)
    assert begun_ns == (from_ns if from_ns > 2 * PERIOD_NS else 3 * PERIOD_NS)
    for cycle in range(3, 10):
        assert (source._world_of(cycle, PERIOD_NS) is other) == (cycle * PERIOD_NS >= begun_ns)


def test_after_a_reload_rovers_see_the_scene_of_the_rigs_file_again():
    table = rig_of_table(rig(IDEAL, control={"socket": "control"}), Path("rig.toml"))
    part = Rovers(RigContext(rig=table))
    part.prepare()
    [source] = part._sources
    other = build_world([])
    assert part.viewer(0, other) == {"rover-1": PERIOD_NS}
    assert source._world_of(1, PERIOD_NS) is other
    part.change(table).make(RigClock())
    now_cycle = time.monotonic_ns() // PERIOD_NS  # the rig's epoch is 0
    assert source._world_of(now_cycle + 1, PERIOD_NS) is source.world


def test_a_rover_with_a_file_sees_no_scene_that_could_be_changed(tmp_path):
    (tmp_path / "scans.dat").write_text("0,0,0,0,0,0; 1,2,3\n")
    table = {"name": "files", "rover": [{"number": 1, "file": str(tmp_path / "scans.dat")}]}
    with pytest.raises(ConfigError, match=r"\[\[rover\]\] with drive"):
        walls_m(table, tmp_path, [{"kind": "remove", "name": "wall", "at_s": 1.0}])


def test_rovers_that_can_change_need_kernels_of_their_own():
    needs = [set(kernel_needs(rig_of_table(rig(IDEAL, control=control), Path("rig.toml")))) for control in ({}, {"socket": "control"})]
    assert needs[1] - needs[0] == {"rovers-change"}
