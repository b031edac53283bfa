"""Poses from another simulator as a part: its life, what it reports, and what it refuses."""

import asyncio
import socket
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from structlog.testing import capture_logs

from hilsim.config.rig import load_rig
from hilsim.daemon.parts import RigClock, RigContext
from hilsim.errors import ConfigError, LinkError
from hilsim.parts.external.messages import OBJECT_DTYPE, MessageKind, encode, poses_of
from hilsim.parts.external.part import ExternalPoses
from hilsim.telemetry.readings import Reading
from tests.unit.external.test_specs import BOX, rig

FLOWS = None  # of sensors, which these rigs do not have
EXTERNAL = '[external]\nlisten = "unix:poses"\nextrapolate_ms = 50.0\nclock = "monotonic"\nrecord = "keys"\n' + BOX.format(id=5, name="a")


def reading_of(part):
    return part.add_reading(Reading(), time.monotonic_ns()).parts["external"][0]


def until(condition):
    deadline = time.monotonic() + 10.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_a_part_receives_reports_and_ends(tmp_path):
    part = ExternalPoses(RigContext(rig=load_rig(rig(tmp_path, EXTERNAL))))
    part.prepare()
    part.open(FLOWS)
    part.warm()
    part.start(RigClock(time.monotonic_ns(), 10**18))
    try:
        assert reading_of(part).state == "waiting"
        assert part.faults(time.monotonic_ns()) == ()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
            link.connect(str(tmp_path / "poses"))
            link.send(encode(MessageKind.POSES, poses_of([0, 5, 9], [(1.0, 0.0, 0.0)] * 3, [(1.0, 0.0, 0.0, 0.0)] * 3), time_ns=time.monotonic_ns()))
        until(lambda: reading_of(part).poses == 2)
        until(lambda: [fault.key for fault in part.faults(time.monotonic_ns())] == ["poses_silent"])
        part.pace(time.monotonic_ns())
        reading, scheduling = reading_of(part), part.add_reading(Reading(), time.monotonic_ns()).scheduling
        assert (reading.messages, reading.refused_poses["unknown"], reading.state) == (1, 1, "silent")
        assert reading.message_age_s > 0.05
        assert "poses" in scheduling
        assert part.summary == "poses from outside"
    finally:
        part.stop()
    part.stop()
    assert not (tmp_path / "poses").exists()
    assert (tmp_path / "keys").stat().st_size % 128 == 0 < (tmp_path / "keys").stat().st_size


@pytest.mark.asyncio
async def test_declarations_that_are_refused_are_counted_and_logged_once(tmp_path):
    async def refuse(_):
        raise ConfigError("no room")

    part = ExternalPoses(RigContext(rig=load_rig(rig(tmp_path, EXTERNAL))))
    part.prepare()
    part.open(FLOWS)
    part.warm()
    part.start(RigClock(time.monotonic_ns(), 10**18))
    declared = np.zeros(1, OBJECT_DTYPE)
    declared["id"], declared["shape"], declared["size_m"] = 8, 1, 1.0
    try:
        with capture_logs() as log, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
            link.connect(str(tmp_path / "poses"))
            for number in range(3):
                link.send(encode(MessageKind.OBJECTS, declared, time_ns=0, sequence=number))
            async with part.serve(SimpleNamespace(make=refuse)), asyncio.timeout(10.0):
                while reading_of(part).refused_messages["declaration"] < 3:  # noqa: ASYNC110 - nothing tells of a count
                    await asyncio.sleep(0.002)
    finally:
        part.stop()
    assert [(each["event"], each["reasons"]) for each in log] == [("external.declaration_refused", ["no room"])]


def test_poses_by_another_clock_than_the_declared_one_are_a_fault_until_some_can_be_followed(tmp_path):
    part = ExternalPoses(RigContext(rig=load_rig(rig(tmp_path, EXTERNAL.replace('"monotonic"', '"utc"')))))
    part.prepare()
    part.open(FLOWS)
    begun_ns, utc_epoch_ns = time.monotonic_ns(), 10**18
    part.start(RigClock(begun_ns, utc_epoch_ns))
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
            link.connect(str(tmp_path / "poses"))

            def send(stamp_ns):
                came = reading_of(part).messages
                link.send(encode(MessageKind.POSES, poses_of([0], [(1.0, 0.0, 0.0)], [(1.0, 0.0, 0.0, 0.0)]), time_ns=stamp_ns))
                until(lambda: reading_of(part).messages == came + 1)

            def unusable(at_s):
                part.pace(begun_ns + round(at_s * 1e9))
                return [fault.text for fault in part.faults(time.monotonic_ns()) if fault.key == "poses_unusable"]

            assert unusable(1.0) == []
            send(time.monotonic_ns())
            assert unusable(2.0) == []  # too soon to judge
            (text,) = unusable(4.0)
            assert text.startswith("all 1 poses of the last 3 s came too late: delay_ms must cover their way")
            assert text.endswith('got 50 and "utc"')
            send(utc_epoch_ns * 2)
            assert "more than 0.1 s early" in unusable(7.0)[0]
            send(utc_epoch_ns + time.monotonic_ns() - begun_ns)
            assert unusable(10.0) == []
            assert unusable(13.0) == []
    finally:
        part.stop()


def test_a_socket_of_a_process_that_has_ended_is_replaced_and_another_file_is_not(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as former:
        former.bind(str(tmp_path / "poses"))
    context = RigContext(rig=load_rig(rig(tmp_path, EXTERNAL)))
    part = ExternalPoses(context)
    part.prepare()
    part.open(FLOWS)
    other = ExternalPoses(context)
    other.prepare()
    with pytest.raises(LinkError, match=r"poses: external\.listen must be a path at which a socket can be made, got Address already in use"):
        other.open(FLOWS)
    part.stop()
    (tmp_path / "poses").write_text("a file")
    other.prepare()
    with pytest.raises(LinkError, match="Address already in use"):
        other.open(FLOWS)
    assert (tmp_path / "poses").read_text() == "a file"


def test_a_rig_that_is_moved_otherwise_is_refused_while_it_runs(tmp_path):
    loaded = load_rig(rig(tmp_path, EXTERNAL))
    part = ExternalPoses(RigContext(rig=loaded))
    part.change(loaded)
    [spec] = loaded.spec.part("external")
    moved = replace(loaded, spec=replace(loaded.spec, parts={"external": (replace(spec, delay_ms=70.0),)}))
    with pytest.raises(ConfigError, match=r"\[external\], \[scene\], \[platform\] and seed cannot change while another simulator moves the rig"):
        part.change(moved)


def test_a_rig_in_lockstep_is_refused_by_what_runs_in_real_time(tmp_path):
    part = ExternalPoses(RigContext(rig=load_rig(rig(tmp_path, '[external]\ntime = "lockstep"\n'))))
    with pytest.raises(ConfigError, match=r'external\.time must be "live" or "replay" for a rig that runs in real time, got "lockstep"'):
        part.prepare()


def test_a_replayed_recording_needs_no_thread(tmp_path):
    part = ExternalPoses(RigContext(rig=load_rig(rig(tmp_path, '[external]\ntime = "replay"\nfile = "keys"\n'))))
    part.prepare()
    part.open(FLOWS)
    part.start(RigClock())
    assert (part.summary, part.faults(0), part.add_reading(Reading(), 0).parts) == ("", (), {})
    part.stop()


DRIVE = '[[rover]]\nname = "a"\nnumber = 1\n[rover.drive]\nsteered_by = "buttons"\n'


def test_rovers_that_drive_beside_live_poses_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"rover\.drive must not be given with external poses that are followed live"):
        load_rig(rig(tmp_path, EXTERNAL + DRIVE))
