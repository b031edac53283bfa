"""Faults of ``[external]``, all at once, and what a rig makes of it."""

import numpy as np
import pytest

from hilsim.assembly.build import build_scenery
from hilsim.config.rig import load_rig
from hilsim.errors import AssetError, ConfigError
from hilsim.parts.external.recording import KEY_DTYPE, key_records
from hilsim.parts.external.scene import SPARE_SLOTS
from hilsim.world.platforms.platform import platform_state
from tests.support import ROOM, write_rig

HEAD, TAIL = ROOM.split("[[sensor]]")[0], "[[sensor]]" + ROOM.split("[[sensor]]", 1)[1]


def rig(tmp_path, external, platform='[platform]\nkind = "external"\nposition_m = [1.0, 2.0, 3.0]\n', name="rig.toml"):
    return write_rig(tmp_path, f"{HEAD}\n{platform}{external}\n{TAIL}", name)


def faults(tmp_path, *arguments):
    with pytest.raises(ConfigError) as caught:
        load_rig(rig(tmp_path, *arguments))
    return str(caught.value)


BOX = '[[external.object]]\nid = {id}\nbox = {{ name = "{name}", size_m = [1, 1, 1] }}\n'


def test_all_faults_of_the_table_are_reported_at_once(tmp_path):
    text = faults(
        tmp_path,
        '[external]\nlisten = "tcp:1"\ndelay_ms = -1.0\nextrapolate_ms = 0.0\nspeed_max_mps = inf\ntime = "replay"\nrecord = "a"\n'
        '[[external.object]]\nid = 0\nspeed_max_mps = 0.0\n[[external.object]]\nid = 3\nbox = { name = " ", size_m = [1, 1, 1], stand_on_ground = true }\n',
    )
    for expected in (
        'external.listen must be udp:ADDRESS:PORT like udp:127.0.0.1:2400, or unix:PATH of at most 100 bytes, got "tcp:1"',
        "external.delay_ms must be 0 to 10000, got -1.0",
        "external.extrapolate_ms must be above 0 to 10000, got 0.0",
        "external.speed_max_mps must be above 0 to 10000",
        'external.file must be given for time "replay" and only for it',
        'external.record must not be given for time "replay", whose file it would repeat',
        "external.object[0].id must be 1 to 4294967295, got 0",
        "external.object[0].speed_max_mps must be above 0 to 10000, got 0.0",
        "external.object[0].one of mesh, plane, box, cylinder, sphere, cone, capsule and ellipsoid must be given, got 0",
        "external.object[1].stand_on_ground must not be given: another simulator moves the object",
    ):
        assert expected in text


@pytest.mark.parametrize("listen", ["udp:127.0.0.1", "udp:localhost:1", "udp:127.0.0.1:70000", "unix:", f"unix:{'a' * 101}", "127.0.0.1:2400"])
def test_an_address_that_is_none_is_refused(tmp_path, listen):
    assert "external.listen must be" in faults(tmp_path, f'[external]\nlisten = "{listen}"\n')


def test_ids_and_names_of_objects_must_differ(tmp_path):
    text = faults(tmp_path, "[external]\n" + BOX.format(id=3, name="a") + BOX.format(id=3, name="a"))
    assert "id of objects must differ, got 3 more than once" in text
    assert "name of objects must differ, got a more than once" in text


def test_a_platform_that_is_moved_needs_the_table_and_the_table_something_to_move(tmp_path):
    assert 'platform.kind "external" needs an [external], got none' in faults(tmp_path, "")
    assert 'external must move the platform (platform.kind = "external") or have at least one object' in faults(tmp_path, "[external]\n", "")


def test_an_objects_name_that_the_scene_has_and_an_unknown_material_are_refused(tmp_path):
    text = '[external]\n[[external.object]]\nid = 1\nbox = { name = "one", size_m = [1, 1, 1], material = "cheese" }\n'
    scene = '[[scene.box]]\nname = "one"\nsize_m = [1, 1, 1]\n'
    with pytest.raises(ConfigError) as caught:
        build_scenery(load_rig(rig(tmp_path, text + scene)))
    assert 'name must be new, got "one", which an object of the scene has' in str(caught.value)
    assert "external.object[0]: material must be built in or in the rig's materials, got 'cheese'" in str(caught.value)


def test_a_platform_is_where_the_rig_has_it_and_objects_have_slots(tmp_path):
    scenery = build_scenery(load_rig(rig(tmp_path, "[external]\n" + BOX.format(id=5, name="a") + BOX.format(id=9, name="b"))))
    assert platform_state(scenery.platform, 10**10)[0] == (1.0, 2.0, 3.0)
    assert scenery.world.key_first.tolist()[-2:] == [-1, -2]
    assert len(scenery.world.live.written) == 2 + SPARE_SLOTS
    assert scenery.object_names[-2:] == ("a", "b")


def recording(tmp_path, ids=(0, 0, 5), times=(0, 1000, 1000)):
    state = np.zeros((len(ids), 13))
    state[:, 0], state[:, 6] = np.arange(len(ids)), 1.0
    records = key_records(ids, times, np.ones(len(ids)), state)
    (tmp_path / "keys").write_bytes(records.tobytes())
    return records


REPLAY = '[external]\ntime = "replay"\nfile = "keys"\n' + BOX.format(id=5, name="a")


def test_a_recording_moves_the_platform_and_a_key_that_was_cut_off_is_left_out(tmp_path):
    records = recording(tmp_path)
    (tmp_path / "keys").write_bytes(records.tobytes() + b"HSXP")
    scenery = build_scenery(load_rig(rig(tmp_path, REPLAY)))
    assert platform_state(scenery.platform, 1000)[0] == (1.0, 0.0, 0.0)


def test_faults_of_a_recording_are_named(tmp_path):
    loaded = load_rig(rig(tmp_path, REPLAY))
    with pytest.raises(AssetError, match=r"keys: must be a recording of poses, got No such file or directory"):
        build_scenery(loaded)
    recording(tmp_path, (5, 6), (7, 8))
    with pytest.raises(AssetError) as caught:
        build_scenery(loaded)
    assert "it must have a pose of the platform (id 0), got none" in str(caught.value)
    recording(tmp_path, (0, 0), (5, 5))
    with pytest.raises(AssetError, match="times of id 0 must rise, got 5 after 5"):
        build_scenery(loaded)
    records = recording(tmp_path)
    records["header"]["magic"][1], records["pose"]["position_m"][2] = 0, np.nan
    (tmp_path / "keys").write_bytes(records.tobytes())
    with pytest.raises(AssetError) as caught:
        build_scenery(loaded)
    assert 'magic must be "HSXP", got another in record 1' in str(caught.value)
    assert "poses must be finite, got another in record 2" in str(caught.value)


def test_a_record_of_a_recording_is_a_message():
    assert KEY_DTYPE.itemsize == 128
