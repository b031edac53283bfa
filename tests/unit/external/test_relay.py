"""Snapshots become messages; a rig in lockstep and the emulator's own steps make the same packets of them."""

import socket
import struct
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import hilsim
from hilsim.errors import ConfigError, LinkError
from hilsim.offline.epoch import START_UTC, utc_ns
from hilsim.offline.snapshot import Motion, ObjectClass, Snapshot, TrackedObject
from hilsim.offline.stepper import Stepper
from hilsim.parts.external.lockstep.link import Lockstep
from hilsim.parts.external.messages import MessageKind, Shape, decode
from hilsim.parts.external.poses import poses
from hilsim.parts.external.sources import relay as relaying
from hilsim.parts.external.sources.osi import osi_snapshot
from hilsim.parts.external.sources.relay import Relay, open_link
from hilsim.parts.external.specs import ExternalSpec
from hilsim.protocols.protobuf import double, message, varint
from hilsim.testing.reservations import reserved_port
from tests.unit.api.rigs import room
from tests.unit.external.test_mavlink import odometry


def thing(number, name="", size=(1.0, 2.0, 3.0), shape="box"):
    return TrackedObject(
        id=number,
        name=name or f"thing {number}",
        size_m=size,
        shape=shape,
        kind=ObjectClass.VEHICLE,
        motion=Motion(position_m=(number % 97, 0.0, 0.0)),
    )


def test_new_objects_are_declared_once_and_those_that_are_gone_removed():
    relay = Relay(sender=5, ids={"gate": 12}, zero_ns=1000)
    platform = Motion(position_m=(1.0, 2.0, 3.0), velocity_mps=(4.0, 5.0, 6.0))
    objects = (thing(3), thing(2**40, size=(2.0, 9.0, 5.0), shape="cylinder"), thing(12), thing(77, "gate", None), thing(78, "without size", None))
    found = [decode(each) for each in relay.messages(Snapshot(time_ns=3000, platform=platform, objects=objects))]
    assert [each.kind for each in found] == [MessageKind.OBJECTS, MessageKind.POSES]
    assert [(each.sequence, each.time_ns, each.sender) for each in found] == [(0, 2000, 5), (1, 2000, 5)]
    declared = found[0].objects
    assert declared["id"].tolist() == [3, 2**31, 2**31 + 1]
    assert declared["shape"].tolist() == [Shape.BOX, Shape.CYLINDER, Shape.BOX]
    assert declared["size_m"].tolist() == [[1.0, 2.0, 3.0], [2.0, 2.0, 5.0], [1.0, 2.0, 3.0]]
    assert set(declared["label"]) == {int(ObjectClass.VEHICLE)}
    assert set(declared["reflectivity"]) == {40}
    assert found[1].poses["id"].tolist() == [0, 3, 2**31, 2**31 + 1, 12]
    assert found[1].poses["flags"].tolist() == [1, 0, 0, 0, 0]
    found = [decode(each) for each in relay.messages(Snapshot(time_ns=4000, objects=objects[:1]))]
    assert [each.kind for each in found] == [MessageKind.REMOVE, MessageKind.POSES]
    assert found[0].objects["id"].tolist() == [2**31, 2**31 + 1]


def test_objects_that_do_not_move_stay_until_the_end_of_the_source():
    house = replace(thing(4), is_still=True)
    relay = Relay(sender=5)
    snapshots = [(house, thing(3)), (thing(3),), (replace(house, is_still=False),), ()]
    found = [[decode(each) for each in relay.messages(Snapshot(time_ns=number, objects=objects))] for number, objects in enumerate(snapshots)]
    kinds = [[each.kind for each in messages] for messages in found]
    assert kinds == [[MessageKind.OBJECTS, MessageKind.POSES], [MessageKind.POSES], [MessageKind.REMOVE, MessageKind.POSES], [MessageKind.REMOVE]]
    assert [messages[-1].poses["id"].tolist() for messages in found[:3]] == [[4, 3], [3, 4], [4]]
    assert [messages[0].objects["id"].tolist() for messages in found[2:]] == [[3], [4]]


def test_many_objects_are_divided_into_datagrams():
    found = [decode(each) for each in Relay(sender=1).messages(Snapshot(time_ns=0, objects=tuple(thing(number) for number in range(1, 1001))))]
    assert [len(each.objects) + len(each.poses) for each in found] == [682, 318, 682, 318]


@pytest.mark.parametrize("to", ["tcp:1.2.3.4:5", "udp:2400", "unix:", "udp:127.0.0.1:port"])
def test_address_must_be_one_of_two_kinds(to):
    with pytest.raises(ConfigError, match="address must be udp:ADDRESS:PORT or unix:PATH, got"):
        open_link(to)
    with pytest.raises(LinkError, match="cannot be reached"):
        open_link("unix:nowhere/poses")


def ground_truth(number, *, has_house=True):
    """A car drives, a walker passes and vanishes, and there is a house."""

    def vector(*values):
        return b"".join(double(row, value) for row, value in enumerate(values, start=1))

    def moving(identity, kind, size, position, velocity):
        base = message(1, vector(*size)) + message(2, vector(*position)) + message(3, b"") + message(4, vector(*velocity)) + message(6, b"")
        return message(5, message(1, varint(1, identity)) + message(2, base) + varint(3, kind))

    time_s = 0.02 * number
    content = message(2, varint(1, 100) + varint(2, 20_000_000 * number)) + message(3, varint(1, 1))
    content += moving(1, 2, (4.0, 2.0, 1.5), (0.5 * time_s, 0.0, 0.0), (0.5, 0.0, 0.0))
    if number < 8:
        content += moving(2, 3, (0.5, 0.5, 1.8), (4.0, -1.0 + time_s, 0.0), (0.0, 1.0, 0.0))
    if not has_house:
        return content
    return content + message(4, message(1, varint(1, 3)) + message(2, message(1, vector(1, 1, 2)) + message(2, vector(-4.0, 2.0, 0.0))))


def test_osi_trace_to_a_rig_in_lockstep_gives_the_packets_of_following_it(tmp_path, monkeypatch):
    more = '[platform]\nkind = "external"\n[external]\ntime = "lockstep"\nrecord = "poses.bin"\n[record]\nfile = "sent.pcap"\n'
    rig = room(tmp_path, keys="sub_rays = 1", more=more)
    contents = [ground_truth(number) for number in range(13)]
    followed = hilsim.Emulator(rig)
    steps = list(followed.follow((osi_snapshot(content, "GroundTruth") for content in contents), truth=True))
    seen = [{*step.hits["lidar"]["object_id"].tolist()} & {2, 3} for step in steps if "lidar" in step.hits]
    assert seen[3] == seen[4] == {2, 3} or {2, 3} <= set().union(*seen[:8])
    assert 2 not in set().union(*seen[9:])
    followed_keys = (tmp_path / "poses.bin").read_bytes()
    monkeypatch.chdir(tmp_path)
    sent = []
    for sees_house in (range(13), range(1)):  # a house in each message, and in the first one alone
        once = [ground_truth(number, has_house=number in sees_house) for number in range(13)]
        (tmp_path / "drive_gt.osi").write_bytes(b"".join(struct.pack("<I", len(content)) + content for content in once))
        lockstep = Lockstep(
            rig, ExternalSpec(listen="unix:link", time="lockstep", pace="at once"), lambda: Stepper(rig, utc_epoch_ns=utc_ns(START_UTC))
        )
        thread = threading.Thread(target=lockstep.run)
        thread.start()
        try:
            ran = CliRunner().invoke(poses, ["osi:drive_gt.osi", "--to", "unix:link", "--lockstep"])
        finally:
            lockstep.stop()
            thread.join()
            lockstep.close()
        assert ran.exit_code == 0
        assert ran.output.endswith("13 snapshots sent to unix:link\n")
        assert (lockstep.counts.steps, lockstep.counts.refused, lockstep.counts.packets) == (13, 0, sum(len(step.packets) for step in steps))
        assert len(np.frombuffer(followed_keys, np.uint8)) == len((tmp_path / "poses.bin").read_bytes())
        sent.append([packet.payload for packet in hilsim.read_capture(tmp_path / "sent.pcap")])
    assert sent[0] == sent[1]
    assert len(sent[0]) == lockstep.counts.packets


def test_rig_that_does_not_answer_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(relaying, "_TRIES", 2)
    monkeypatch.setattr(relaying, "_TRY_S", 0.01)
    trace = tmp_path / "a_gt.osi"
    trace.write_bytes(struct.pack("<I", len(ground_truth(0))) + ground_truth(0))
    ran = CliRunner().invoke(poses, [f"osi:{trace}", "--to", "udp:127.0.0.1:9", "--lockstep"])
    assert "a rig in lockstep must answer within 0.02 s, got no answer for 0 s" in str(ran.exception)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["can:vcan0"], "source must be osi:FILE"),
        (["osi-udp:1.2.3.4"], "address must be ADDRESS:PORT"),
        (["gazebo:/pose", "--object", "crate"], "must be NAME=ID"),
    ],
)
def test_sources_and_objects_that_are_none_are_refused(arguments, fault):
    ran = CliRunner().invoke(poses, [*arguments, "--to", "udp:127.0.0.1:9"])
    assert ran.exit_code != 0
    assert fault in f"{ran.output}{ran.exception}"


def test_fmu_specification_is_a_file(tmp_path):
    path = tmp_path / "car.toml"
    path.write_text('file = "car.fmu"\n[platform]\nposition = ["x", "y", "z"]\n')
    ran = CliRunner().invoke(poses, [f"fmu:{path}", "--to", "udp:127.0.0.1:9"])
    assert "car.fmu: must be an FMU that can be started" in str(ran.exception)


def test_telemetry_of_an_autopilot_becomes_messages():
    with (
        reserved_port() as port,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as autopilot,
    ):
        listening.bind(("127.0.0.1", 0))
        listening.settimeout(30.0)
        found, ran = [], []
        arguments = [f"mavlink:127.0.0.1:{port}", "--to", f"udp:127.0.0.1:{listening.getsockname()[1]}", "--duration-s", "0.5"]
        relaying_thread = threading.Thread(target=lambda: ran.append(CliRunner().invoke(poses, arguments)))
        relaying_thread.start()
        us = 0
        while not ran:
            us += 100_000
            autopilot.sendto(odometry(us), ("127.0.0.1", port))
            time.sleep(0.01)
        relaying_thread.join()
        found = [decode(listening.recv(2000)) for _ in range(6)]
    assert ran[0].output.startswith("6 snapshots sent")
    assert {each.time_ns - found[0].time_ns for each in found} == {100_000_000 * number for number in range(6)}
    assert found[0].poses["position_m"].tolist() == [[2.0, 1.0, 3.0]]
