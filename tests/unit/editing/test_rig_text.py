"""Texts of rigs in every layout: tables apart or together, comments between and within, motions in either form."""

import random
import tomllib

import pytest

from hilsim.editing.rig_text import edited_text
from tests.depth import examples

pytest.importorskip("tomlkit", reason="the extra view is not installed")

KINDS = ("box", "sphere", "mesh")
MOTIONS = (
    "",
    "motion = {{ loop = true, waypoints = [{{ time_s = 0.0, position_m = [{n}.0, 0.0, 0.0] }}, {{ time_s = 1.0, position_m = [{n}.0, 0.0, 0.0] }}] }}\n",
    "[scene.{kind}.motion]  # way {n}\nwaypoints = [\n  {{ time_s = 0.0, position_m = [1.0, 0.0, 0.0] }},  # from\n  {{ time_s = 1.0, position_m = [2.0, 0.0, 0.0] }},\n]\n",
    "[[scene.{kind}.motion.waypoints]]\ntime_s = 0.0\n[[scene.{kind}.motion.waypoints]]\ntime_s = 1.0\n\n",
)
BETWEEN = (
    "",
    "\n",
    "\n\n",
    "# note {n}\n",
    "\n# [[scene.box]] {n}\n\n",
    "\n[[sensor]]\nname = \"s{n} [[scene.box]]\"  # '''\n[sensor.network]\ndata_port = {n}\n",
    '\n[[replay]]\nfile = """\n[[scene.box]]\n{n}\n"""\n',
    "[scene.materials.m{n}]\nreflectivity = 5\n",
)


def random_text(rng):
    """Segments of a rig's text, each with the object that it is the table of, or None."""
    head = rng.choice(['name = "rig"\n', "# top\nseed = 1 # of all\n\n", "\"name\" = 'rig'\n[scene]\norigin_m = [0, 0, 0]  # here\n"])
    segments, rows = [(head, None)], dict.fromkeys(KINDS, 0)
    for number in range(rng.randint(1, 7)):
        kind = rng.choice(KINDS)
        header = rng.choice(["[[scene.{kind}]]", "[[ scene . {kind} ]]  # {n}", '  [["scene"."{kind}"]]'])
        keys = [f'name = "{kind} {number}"', f"label = {number} # class", "size_m = [\n  1.0, # x\n  1.0,\n 1.0 ]", "position_m=[ 1.0,2.0 , 3.0 ]"]
        rng.shuffle(keys)
        body = "\n".join([header, *keys[: rng.randint(1, 4)]]) + "\n" + rng.choice(MOTIONS)
        segments += [
            (body.replace("{{", "{").replace("}}", "}").replace("{kind}", kind).replace("{n}", str(number)), (kind, rows[kind])),
            (rng.choice(BETWEEN).replace("{n}", str(number)), None),
        ]
        rows[kind] += 1
    return segments


def random_changes(rng, scene):
    """Tables that replace some, and new ones."""
    changed = {}
    for kind in KINDS:
        for row, table in enumerate(scene.get(kind, [])):
            match rng.randrange(5):
                case 0:
                    changed[kind, row] = None
                case 1:
                    changed[kind, row] = {**table, "position_m": [rng.random(), -0.0, 1e-7], "name": 'other "name"\t'}
                case 2:
                    still = {key: value for key, value in table.items() if key not in {"motion", "label"}}
                    way = {
                        "waypoints": [{"time_s": 0.5, "position_m": [rng.random(), 0.0, 0.0]}, {"time_s": 2.5, "position_m": [9.0, 0.0, 0.0]}],
                        "loop": False,
                    }
                    changed[kind, row] = {**still, **rng.choice([{}, {"motion": way}])}
    added = [(rng.choice(KINDS), {"name": f"new {number}", "materials": {"a b": "wood"}}) for number in range(rng.randint(0, 3))]
    return changed, added


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_every_line_that_no_edit_concerns_stays_as_it_is(line_end):
    for seed in range(examples(200)):
        rng = random.Random(seed)  # noqa: S311 - no secret
        segments = [(part.replace("\n", line_end), row) for part, row in random_text(rng)]
        text = "".join(part for part, _ in segments)
        changed, added = random_changes(rng, tomllib.loads(text)["scene"])
        edited = edited_text(text, changed, added)
        passed = 0
        for part, row in segments:
            if row not in changed and part.strip():
                found = edited.find(part.strip(), passed)
                assert found >= 0, f"seed {seed}: {part}"
                passed = found + len(part.strip())
        made = tomllib.loads(edited).get("scene", {})
        for kind in KINDS:
            former = tomllib.loads(text)["scene"].get(kind, [])
            meant = [changed.get((kind, row), table) for row, table in enumerate(former)]
            assert made.get(kind, []) == [table for table in meant if table is not None] + [table for of, table in added if of == kind]
        if line_end == "\r\n":
            assert edited.count("\n") == edited.count("\r\n")
        assert edited_text(edited, {}, []) == edited
