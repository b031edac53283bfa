"""Scripts: timed changes in TOML or JSON lines, checked as a whole."""

import json

import pytest

from hilsim.config.script import CHANGE_KINDS, change_table, load_script, parse_change
from hilsim.errors import ConfigError

CHANGES = [
    {"at_s": 0.5, "kind": "add", "box": {"name": "crate", "size_m": [1.0, 1.0, 2.0], "position_m": [4.0, 0.0, 1.0]}},
    {"at_s": 0.75, "kind": "move", "name": "crate", "position_m": [5.0, 0.0, 1.0], "rotation_deg": [0.0, 0.0, 30.0]},
    {
        "at_s": 1.0,
        "kind": "travel",
        "name": "crate",
        "motion": {"waypoints": [{"time_s": 1.0, "position_m": [5.0, 0.0, 1.0]}, {"time_s": 3.0, "position_m": [9.0, 0.0, 1.0]}]},
    },
    {"at_s": 1.25, "kind": "weather", "weather": {"fog_visibility_m": 40.0}},
    {"at_s": 1.5, "kind": "sensor", "sensor": "roof", "return_mode": "dual", "late_s": {"roof": 1.501}},
    {"at_s": 1.6, "kind": "sensor", "sensor": "roof", "phase_lock_deg": 90.0, "phase_lock": True},
    {"at_s": 1.7, "kind": "clock", "sensor": "roof", "pps": "locked", "utc_epoch_ns": 1767225600000000000},
    {"at_s": 2.0, "kind": "remove", "name": "crate"},
    {"at_s": 2.5, "kind": "replay", "replay": "front", "pause": True, "seek_s": 12.5},
    {"at_s": 2.75, "kind": "replay", "pause": False, "late_s": {"front": 2.8}},
    {
        "at_s": 3.0,
        "kind": "vehicle",
        "wind": {"speed_mps": 4.0, "turbulence_ratio": 0.1},
        "position_m": [1.0, 2.0, 0.0],
        "rotation_deg": [0.0, 0.0, 45.0],
    },
    {"at_s": 3.5, "kind": "vehicle", "reset": True},
    {"at_s": 4.0, "kind": "fault", "fault": {"kind": "motor_weak", "motors": [1, 3], "thrust": 0.5, "for_s": 2.0}},
    {"at_s": 5.0, "kind": "clear", "name": "motor_*"},
]


def test_a_script_in_json_lines_is_read_and_written_alike(tmp_path):
    path = tmp_path / "script.jsonl"
    path.write_text("\n".join(json.dumps(change) for change in CHANGES) + "\n\n")
    script = load_script(path)
    assert [change_table(change) for change in script.changes] == CHANGES
    (tmp_path / "again.jsonl").write_text("".join(f"{json.dumps(change_table(change))}\n" for change in script.changes))
    assert load_script(tmp_path / "again.jsonl").changes == script.changes
    assert {change.kind for change in script.changes} == {kind.kind for kind in CHANGE_KINDS}


def test_a_script_in_toml_has_a_table_per_change_and_is_played_by_time(tmp_path):
    path = tmp_path / "script.toml"
    path.write_text(
        '[[change]]\nat_s = 2.0\nkind = "remove"\nname = "a"\n[[change]]\nat_s = 1.0\nkind = "weather"\nweather = { fog_visibility_m = 30.0 }\n'
    )
    assert [(change.kind, change.at_ns) for change in load_script(path).changes] == [("weather", 10**9), ("remove", 2 * 10**9)]


def test_a_time_in_nanoseconds_survives_being_written(tmp_path):
    path = tmp_path / "script.jsonl"
    times_ns = [0, 1, 999_999_999, 1_754_777_280, 86_399_999_999_999, 86_400_000_000_001]
    path.write_text("".join(json.dumps({"at_s": at_ns / 1e9, "kind": "remove", "name": "a"}) + "\n" for at_ns in times_ns))
    assert [change.at_ns for change in load_script(path).changes] == times_ns


FAULTY = {
    "an unknown kind": ({"kind": "grow"}, "kind must be"),
    "no kind": ({"at_s": 1.0}, "kind must be given"),
    "an unknown key": ({"kind": "remove", "name": "a", "colour": 1}, "colour: unknown key"),
    "a wrong type": ({"kind": "move", "name": "a", "position_m": [1.0, 2.0]}, "position_m must have 3 entries, got"),
    "no number": ({"kind": "move", "name": "a", "position_m": [1.0, 2.0, float("inf")]}, "position_m"),
    "no shape": ({"kind": "add"}, "one of mesh, plane, box, cylinder, sphere, cone, capsule, ellipsoid and like must be given, got 0"),
    "two shapes": (
        {"kind": "add", "box": {"name": "a", "size_m": [1.0, 1.0, 1.0]}, "sphere": {"name": "b", "radius_m": 1.0}},
        "must be given, got 2",
    ),
    "a shape without a name": ({"kind": "add", "box": {"size_m": [1.0, 1.0, 1.0]}}, "name of the object must be given"),
    "nothing to change": ({"kind": "sensor", "sensor": "roof"}, "field_of_view_deg, phase_lock, phase_lock_deg, ouster or livox must be given"),
    "a lock without an angle": ({"kind": "sensor", "sensor": "roof", "phase_lock": True}, "phase_lock_deg must be given with phase_lock = true"),
    "an unknown state of the pulse": ({"kind": "clock", "sensor": "roof", "pps": "lost"}, "pps must be"),
    "nothing for a replay": ({"kind": "replay", "replay": "front"}, "pause or seek_s must be given"),
    "a capture time before the first packet": ({"kind": "replay", "seek_s": -0.5}, "seek_s must be 0 to 1e\\+08, got -0.5"),
    "nothing for a vehicle": ({"kind": "vehicle"}, "wind, position_m or reset must be given"),
    "a rotation alone": ({"kind": "vehicle", "reset": True, "rotation_deg": [0.0, 0.0, 1.0]}, "rotation_deg must be given with position_m"),
    "two places": ({"kind": "vehicle", "reset": True, "position_m": [0.0, 0.0, 1.0]}, "reset must not be given with position_m"),
    "a gale": ({"kind": "vehicle", "wind": {"speed_mps": 99.0}}, "speed_mps must be 0 to 60, got 99"),
    "no place": ({"kind": "vehicle", "position_m": [0.0, float("nan"), 1.0]}, "position_m"),
    "a time before the start": ({"kind": "remove", "name": "a", "at_s": -1.0}, "at_s must be 0 to 1e\\+08, got -1.0"),
}


@pytest.mark.parametrize(("table", "fault"), FAULTY.values(), ids=FAULTY)
def test_a_fault_of_a_change_is_named(table, fault):
    with pytest.raises(ConfigError, match=fault):
        parse_change(table)


def test_all_faults_of_a_script_are_named_at_once(tmp_path):
    path = tmp_path / "script.jsonl"
    path.write_text("".join(json.dumps({"at_s": 1.0, **table}) + "\n" for table, _ in list(FAULTY.values())[1:4]))
    with pytest.raises(ConfigError) as caught:
        load_script(path)
    assert str(caught.value).count("\n") >= 2
    assert str(path) in str(caught.value)


def test_lines_that_are_no_json_are_named_by_their_numbers(tmp_path):
    path = tmp_path / "script.jsonl"
    path.write_text('{"at_s": 1.0, "kind": "remove", "name": "a"}\n{"at_s"\n\n' + 5000 * "[" + "\n")
    with pytest.raises(ConfigError, match=r"script.jsonl:2: must be a JSON object, got .*\n.*script.jsonl:4: must be a JSON object, got"):
        load_script(path)
    with pytest.raises(ConfigError, match="must be a readable file of JSON lines, got No such file"):
        load_script(tmp_path / "gone.jsonl")


def test_a_change_of_a_script_must_have_a_time(tmp_path):
    path = tmp_path / "script.jsonl"
    path.write_text('{"kind": "remove", "name": "a"}\n')
    with pytest.raises(ConfigError, match=r"change\[0\].at_s must be given"):
        load_script(path)
