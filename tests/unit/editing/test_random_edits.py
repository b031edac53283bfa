"""Random sequences of edits over a scene, a captured background and a replayed recording: what was lived, what a script gives, and what a rig was saved."""

import json
import random
import tomllib
from collections import defaultdict

import numpy as np
import pytest

import hilsim
from hilsim.families.velodyne.protocol.data import DATA_PACKET_DTYPE
from hilsim.world.geometry.poses import mounting
from hilsim.world.geometry.rotations import matrix_from_quaternion
from tests.compiled import compiled_only
from tests.depth import examples
from tests.random_edits import RIG, random_edit, write_all_three

pytest.importorskip("tomlkit", reason="the extra view is not installed")
pytestmark = compiled_only

SEQUENCES, AT_ONCE, EDITS = examples(12), 4, 8
STEP_S, SHOWN_S, SETTLED_S = 0.004, 0.03, 0.01
"""Rig time between two edits, length of what is compared after the last, and the time by which no packet has a firing before the last edit."""
ORIGINAL = {"floor", "crate", "box[1]", "walker", "bin"}
"""Names of the rig's objects in timed changes."""


def stream(rig, start_s, stop_s, script=None):
    """Payloads of each flow."""
    found = defaultdict(list)
    for packet in hilsim.Emulator(rig, script=script, threads=1).packets(start_s, stop_s):
        found[packet.sensor, packet.stream].append(packet.payload)
    return found


def returns(payloads):
    """Distances and reflectivities of data packets."""
    blocks = np.frombuffer(b"".join(payloads), DATA_PACKET_DTYPE)["blocks"]["channels"]
    return blocks["distance"].astype(int), blocks["reflectivity"].astype(int)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    folder = tmp_path_factory.mktemp("all three")
    write_all_three(folder)
    return folder


def lived(directory, seed):
    """A session after random edits, and the packets that left while it was edited, each made without knowledge of later edits."""
    path = directory / "rig.toml"
    rng, target = random.Random(seed), hilsim.ScriptTarget()  # noqa: S311 - no secret
    session = hilsim.edit(path, target)
    packets, passed_s, script = defaultdict(list), 0.0, None
    for number in range(EDITS):
        target.advance(round(STEP_S * (number + rng.random()), 6))
        if number % 3 == 2:
            for flow, payloads in stream(path, passed_s, target.rig_s(), script).items():
                packets[flow] += payloads
            passed_s = target.rig_s()
        random_edit(rng, session)
        script = session.save_script("so-far.jsonl", replace_file=True)
    for flow, payloads in stream(path, passed_s, EDITS * STEP_S + SHOWN_S, script).items():
        packets[flow] += payloads
    return session, target, packets


@pytest.mark.extended
@pytest.mark.parametrize("part", range(SEQUENCES // AT_ONCE))
def test_edits_their_script_and_the_saved_rig_agree(directory, part):
    path = directory / "rig.toml"
    for seed in range(part * AT_ONCE, (part + 1) * AT_ONCE):
        session, target, packets = lived(directory, seed)
        script = session.save_script("edits.toml", replace_file=True)
        assert stream(path, 0.0, EDITS * STEP_S + SHOWN_S, script) == packets, f"seed {seed}"
        _check_saved(directory, session, target, script, seed)
        assert path.read_text() == RIG


def _check_saved(directory, session, target, script, seed):
    before = session.objects()
    saved = session.save_as("saved.toml", replace_file=True)
    text = saved.read_text()
    again = hilsim.edit(saved, hilsim.ScriptTarget())
    assert sorted(map(_told, again.objects().values())) == sorted(map(_told, before.values())), f"seed {seed}"
    _check_bytes(directory, session, saved, target.rig_s() + SETTLED_S, script, seed)
    again.save()
    assert saved.read_text() == text, f"seed {seed}"
    rng = random.Random(seed)  # noqa: S311 - as above
    random_edit(rng, again)
    again.undo(len(again.edits))
    again.save()
    assert saved.read_text() == text, f"seed {seed}"
    untouched = [line for line in RIG.splitlines() if line.startswith("#")]
    lines = iter(text.splitlines())
    assert all(line in lines for line in untouched), f"seed {seed}"  # in their order


def _told(thing):
    """What a file says of an object, but for the name of one without: its place in the table; a composed place is rounded."""
    if thing.motion is not None:
        where = [thing.motion, thing.offset]
    else:
        pose = mounting(thing.position_m, thing.rotation_deg) @ mounting(*thing.offset)
        where = np.concatenate([np.array(pose.position_m), matrix_from_quaternion(pose.orientation).ravel()]).round(6) + 0.0
        where = where.tolist()
    return json.dumps((thing.name, thing.kind, thing.keys, where), sort_keys=True)


def _check_bytes(directory, session, saved, from_s, script, seed):
    """Compare the packets after the last edit with those of the saved rig.

    An object at rest that was edited is a mover, with float32 about its own origin; in the saved rig it is part of a tile, with float32 about the tile's.
    Of one that is moved to its own place at the beginning of the saved rig, every byte is equal.
    """
    edited, loaded = (stream(rig, from_s, from_s + SHOWN_S, of) for rig, of in ((directory / "rig.toml", script), (saved, None)))
    recorded = [flow for flow in edited if flow[0] == "recorded"]
    assert recorded
    assert {flow: edited[flow] for flow in recorded} == {flow: loaded[flow] for flow in recorded}, f"seed {seed}"
    for sensor in ("plain", "map"):
        distances, reflectivities = (np.array(pair) for pair in zip(*(returns(of[sensor, "data"]) for of in (edited, loaded)), strict=True))
        is_other = (distances[0] != distances[1]) | (reflectivities[0] != reflectivities[1])
        assert is_other.mean() < 0.01, f"seed {seed}"
        assert (np.abs(distances[0] - distances[1])[is_other] > 1).sum() <= 3, f"seed {seed}: more than edges"
    lifted = directory / "lifted.jsonl"
    target = hilsim.ScriptTarget()
    for thing in sorted(session.objects().values(), key=lambda thing: session._scene.rows[thing.live_name]):
        kind, row = session._scene.rows[thing.live_name]
        was_changed = thing.live_name not in ORIGINAL or any(thing.live_name == change.get("name") for change in session._target.script())
        if thing.motion is None and was_changed:
            place = tomllib.loads(saved.read_text())["scene"][kind][row]
            keys = {"position_m": place.get("position_m", [0.0, 0.0, 0.0]), "rotation_deg": place.get("rotation_deg", [0.0, 0.0, 0.0])}
            target.change("move", {"name": thing.name or f"{kind}[{row}]", **keys})
    lifted.write_text("".join(json.dumps(change) + "\n" for change in target.script()))
    assert stream(saved, from_s, from_s + SHOWN_S, lifted) == edited, f"seed {seed}"
