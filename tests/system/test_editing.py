"""Edits of a running daemon's scene: what was lived, its script, and the packets that show an edit."""

import random

import numpy as np
import pytest

import hilsim
from hilsim.families.velodyne.protocol.data import DATA_PACKET_DTYPE
from tests.random_edits import MAP_PORT, MAP_POSITION_PORT, PLAIN_PORT, PLAIN_POSITION_PORT, random_edit, write_all_three
from tests.support import write_rig
from tests.system.test_changes import CONTROL, payloads_by_port, stopped_s

pytestmark = [pytest.mark.extended, pytest.mark.system]

EDITS = 30
FLOW = """loop = "plain"
late_policy = "keep"
[[replay.flow]]
match = ">:2368"
send = ">127.0.0.1:{port}"
[metrics]
port = 0
[transmit]
late_policy = "send"
"""


def test_lived_edits_and_their_saved_script_give_the_same_packets(daemon, tmp_path, receiver):
    pytest.importorskip("tomlkit", reason="the extra view is not installed")
    plain, mapped, recorded = receiver(), receiver(), receiver()
    text = write_all_three(tmp_path).read_text()
    for former, port in ((PLAIN_PORT, plain.port), (MAP_PORT, mapped.port)):
        text = text.replace(f"data_port = {former}", f'source_ports = "any"\ndata_port = {port}')
    for former in (PLAIN_POSITION_PORT, MAP_POSITION_PORT):
        text = text.replace(f"position_port = {former}", f"position_port = {receiver().port}")
    path = write_rig(tmp_path, text + FLOW.format(port=recorded.port) + CONTROL)
    running = daemon(path, "--record", str(tmp_path / "lived.pcap"))
    session, rng = hilsim.edit(path, tmp_path / "control"), random.Random(8)  # noqa: S311 - no secret
    for _ in range(EDITS):
        random_edit(rng, session)
    control = hilsim.connect(tmp_path / "control")
    script = session.save_script("edits.toml")
    kinds = {change["kind"] for change in control.script()}
    assert kinds == {"add", "move", "travel", "remove"}
    assert hilsim.edit(path, control).objects().keys() == {thing.live_name for thing in session.objects().values()}
    lived_s = stopped_s(running, control)
    session.save_as("saved.toml")
    hilsim.load_rig(tmp_path / "saved.toml")
    hilsim.record(path, tmp_path / "played.pcap", duration_s=lived_s, script=script)
    all_lived, all_played = payloads_by_port(tmp_path / "lived.pcap"), payloads_by_port(tmp_path / "played.pcap")
    for port in (plain.port, mapped.port, recorded.port):
        lived, played = all_lived[port], all_played[port]
        assert len(lived) > 100
        later = iter(played)
        assert all(payload in later for payload in lived)  # in their order; a machine that stands still may leave packets out
        if port != recorded.port:
            stamps = np.frombuffer(b"".join(lived), DATA_PACKET_DTYPE)["timestamp"]
            is_gapless = (np.diff(stamps.astype(np.int64)) % 3_600_000_000 < 1400).all()
            assert not is_gapless or lived == played[: len(lived)]
