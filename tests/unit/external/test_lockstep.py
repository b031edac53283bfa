"""A rig in lockstep: its packets depend on the messages of the other side, not on when they come."""

import math
import random
import select
import socket
import threading
import time

import numpy as np
import pytest

import hilsim
from hilsim import Motion
from hilsim.api.stepping import packets_of
from hilsim.offline.epoch import START_UTC, utc_ns
from hilsim.offline.merging import merged
from hilsim.offline.stepper import Stepper
from hilsim.parts.external.lockstep.link import Lockstep, _Recorder
from hilsim.parts.external.lockstep.session import LockstepSession
from hilsim.parts.external.messages import HAS_RATES, HAS_VELOCITY, HEADER_DTYPE, IS_HIDDEN, OBJECT_DTYPE, POSE_DTYPE, MessageKind, Shape, encode
from hilsim.parts.external.specs import ExternalSpec
from tests.unit.api.rigs import room

STEP_NS = 10_000_000
STEPS = 25
START_UTC_NS = utc_ns(START_UTC)


@pytest.fixture(scope="module")
def rig(tmp_path_factory):
    return room(tmp_path_factory.mktemp("lockstep"), keys="sub_rays = 1")


def maker(rig):
    return lambda: Stepper(rig, utc_epoch_ns=utc_ns(START_UTC), is_carried=True)


def state(number):
    """Position, orientation, velocity and rates of the platform after so many steps, as float32 where messages have it."""
    angle = 0.3 * number * STEP_NS * 1e-9
    return (
        (math.cos(angle), math.sin(angle), 0.2),
        (math.cos(0.5 * angle), 0.0, 0.0, math.sin(0.5 * angle)),
        tuple(float(np.float32(part)) for part in (-0.3 * math.sin(angle), 0.3 * math.cos(angle), 0.0)),
        tuple(float(np.float32(part)) for part in (0.0, 0.0, 0.3)),
    )


def pose_record(number, identity=0):
    poses = np.zeros(1, POSE_DTYPE)
    poses["id"], poses["flags"] = identity, HAS_VELOCITY | HAS_RATES
    poses["position_m"], poses["orientation"], poses["velocity_mps"], poses["rates_radps"] = state(number)
    return poses


def crate_record(identity=9, shape=Shape.BOX, label=3):
    objects = np.zeros(1, OBJECT_DTYPE)
    objects["id"], objects["shape"], objects["label"], objects["reflectivity"], objects["name"] = identity, shape, label, 70, b"crate"
    objects["size_m"] = (1.0, 1.0, 1.0)
    return objects


class Partner:
    """Datagrams of another simulator, numbered from 0."""

    def __init__(self, sender=7, first=0):
        self.sender, self.sequence, self.first = sender, -1, first

    def message(self, kind, records=None, number=0):
        self.sequence += 1
        return encode(kind, records, time_ns=(number - self.first) * STEP_NS, sender=self.sender, sequence=self.sequence)

    def step(self, number, *, with_crate=False):
        messages = [self.message(MessageKind.OBJECTS, crate_record(), number)] if with_crate else []
        messages.append(self.message(MessageKind.POSES, pose_record(number), number))
        return [*messages, self.message(MessageKind.STEP, None, number)]


def done(answer):
    head = np.frombuffer(answer.reply, HEADER_DTYPE)[0]
    assert head["kind"] == MessageKind.DONE
    return int(head["time_ns"]), int(head["sequence"]), int(head["flags"]), int(head["reserved"])


def payloads(batches):
    return [packet.payload for packet in packets_of(merged(list(batches)))] if batches else []


@pytest.fixture(scope="module")
def expected(rig):
    """Payloads of the same poses by the emulator's steps."""
    emulator = hilsim.Emulator(rig)
    found = []
    for number in range(STEPS):
        place, turn, velocity, rates = state(number)
        motion = Motion(position_m=place, orientation=turn, velocity_mps=velocity, rates_radps=rates)
        found.extend(packet.payload for packet in emulator.step(number * STEP_NS / 1e9, platform=motion).packets)
    assert len(found) > 180
    return found


def test_packets_are_those_of_the_emulators_steps_and_answers_count_them(rig, expected):
    session, partner, found = LockstepSession(maker(rig), {}), Partner(), []
    for number in range(STEPS):
        *before, step = partner.step(number)
        assert [session.handle(message).reply for message in before] == [b""]
        answer = session.handle(step)
        found.extend(payloads(answer.batches))
        assert done(answer) == (number * STEP_NS, 2 * number + 1, len(payloads(answer.batches)), 0)
    assert found == expected
    assert (session.counts.steps, session.counts.packets, session.counts.refused) == (STEPS, len(expected), 0)


def test_lost_and_repeated_datagrams_change_nothing(rig, expected):
    session, partner, draw, found = LockstepSession(maker(rig), {}), Partner(), random.Random(4), []  # noqa: S311
    for number in range(STEPS):
        messages = partner.step(number)
        while True:
            for message in [each for each in messages for _ in range(draw.choice([0, 1, 1, 2]))]:
                answer = session.handle(message)
                found.extend(payloads(answer.batches))
            if answer.reply and done(answer)[0] == number * STEP_NS and done(answer)[1] == partner.sequence:
                break
    assert found == expected
    assert session.counts.repeated > 5
    assert session.counts.incomplete > 2


def test_step_after_a_missing_datagram_is_not_made(rig):
    session, partner = LockstepSession(maker(rig), {}), Partner()
    pose, step = partner.step(0)
    assert done(session.handle(step)) == (0, 1, 0, 0)
    assert session.stepper.now_ns == -1
    session.handle(pose)
    assert done(session.handle(step)) == (0, 1, 0, 0)
    assert session.stepper.now_ns == 0


def test_new_sender_continues_in_rig_time(rig, expected):
    session, found = LockstepSession(maker(rig), {}, "continue"), []
    for partner, numbers in ((Partner(1), range(12)), (Partner(2, first=11), range(11, STEPS))):
        for number in numbers:
            for message in partner.step(number):
                answer = session.handle(message)
                found.extend(payloads(answer.batches))
            assert done(answer)[0] == (number - partner.first) * STEP_NS
    assert found == expected
    assert session.counts.partners == 2
    assert session.counts.refused == 0


def test_stamps_of_a_recording_go_on_where_rig_time_begins_again(tmp_path):
    rig = sent_to(tmp_path, (2368, 8308))
    recorder, count = _Recorder(rig, START_UTC_NS), 0
    for start in range(2):
        session, partner = LockstepSession(maker(rig), {}), Partner()
        for message in (message for number in range(4) for message in partner.step(number)):
            if batches := session.handle(message).batches:
                recorder.write(merged(list(batches)))
        recorder.begin_again()
        count = count or session.counts.packets
        assert session.counts.packets == count, start
    recorder.close()
    stamps_ns = [packet.time_ns for packet in hilsim.read_capture(tmp_path / "sent.pcap")]
    assert len(stamps_ns) == 2 * count
    assert stamps_ns == sorted(stamps_ns)
    assert stamps_ns[0] - START_UTC_NS < 2_000_000
    assert len(set(stamps_ns)) == 2 * count


def test_new_sender_begins_again_where_that_is_declared(rig, expected):
    session, found, again = LockstepSession(maker(rig), {}, "again"), [], []
    for number in range(12):
        for message in Partner(1).step(number) if number == 0 else ():
            session.handle(message)
    for number in range(STEPS):
        partner = partner if number else Partner(2)  # noqa: F821 - made at 0
        for message in partner.step(number):
            answer = session.handle(message)
            again.append(answer.begins_again)
            found.extend(payloads(answer.batches))
    assert found == expected
    assert again.index(True) == 0
    assert again.count(True) == 1


@pytest.mark.extended
def test_declared_objects_are_seen_with_their_labels_until_they_are_removed(rig):
    session, partner = LockstepSession(maker(rig), {}), Partner()
    for message in partner.step(0, with_crate=True):
        session.handle(message)
    crate = np.zeros(1, POSE_DTYPE)
    crate["id"], crate["position_m"], crate["orientation"] = 9, (4.0, 1.0, 0.0), (1.0, 0.0, 0.0, 0.0)

    def hits(number, *messages):
        for message in (*messages, partner.message(MessageKind.STEP, None, number)):
            answer = session.handle(message)
        return answer

    hits(10, partner.message(MessageKind.POSES, crate, 1))
    assert session.stepper.object_names[-1] == "crate"
    with_crate = hits(20).batches
    hits(21, partner.message(MessageKind.REMOVE, crate_record(), 21))
    without = hits(31).batches
    assert with_crate[0].size.size > 50
    assert session.counts.refused == 0
    assert without[0].size.size > 50
    _, found = next((batch, known) for batch, known in session.stepper.render(400_000_000, with_truth=True) if known)
    assert 3 not in set(found.truth.label)


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        (lambda _: b"HSXQ" + bytes(28), 'magic must be "HSXP"'),
        (
            lambda partner: partner.message(MessageKind.POSES, pose_record(1, identity=5), 1),
            "id must be of an object of the rig or a declared one, got 5",
        ),
        (lambda partner: partner.message(MessageKind.REMOVE, crate_record(), 1), "id of a removed object must be a known one, got 9"),
        (lambda partner: partner.message(MessageKind.POSES, pose_record(0), 0), "poses must be after the released 0 ns, got 0 ns"),
    ],
)
def test_what_cannot_be_taken_is_counted_with_its_rule(rig, message, fault):
    session, partner = LockstepSession(maker(rig), {}), Partner()
    for each in partner.step(0):
        session.handle(each)
    session.handle(message(partner))
    answer = session.handle(partner.message(MessageKind.STEP, None, 1))
    assert session.counts.refused == 1
    assert fault in session.counts.faults[0]
    assert done(answer)[0] == STEP_NS


def test_hidden_objects_are_not_seen_until_their_next_poses(rig):
    session, partner = LockstepSession(maker(rig), {}), Partner()
    crate = np.zeros(1, POSE_DTYPE)
    crate["id"], crate["position_m"], crate["orientation"] = 9, (4.0, 1.0, 0.0), (1.0, 0.0, 0.0, 0.0)
    hidden = crate.copy()
    hidden["flags"] = IS_HIDDEN
    for message in partner.step(0, with_crate=True):
        session.handle(message)
    session.handle(partner.message(MessageKind.POSES, crate, 1))
    session.handle(partner.message(MessageKind.POSES, hidden, 10))
    session.handle(partner.message(MessageKind.STEP, None, 10))
    keys = session.stepper.objects["crate"]
    assert not keys.newest.is_seen
    session.handle(partner.message(MessageKind.POSES, crate, 11))
    session.handle(partner.message(MessageKind.STEP, None, 12))
    assert keys.newest.is_seen
    assert session.counts.refused == 0


def test_step_that_is_too_long_is_refused(rig):
    session, partner = LockstepSession(maker(rig), {}), Partner()
    for message in partner.step(0):
        session.handle(message)
    answer = session.handle(partner.message(MessageKind.STEP, None, 6001))
    assert done(answer)[0] == 0
    assert session.counts.faults == ["a stretch that a step releases must be at most 60 s, got 60.01 s"]


def test_corrupted_datagrams_raise_nothing(rig):
    session, draw = LockstepSession(maker(rig), {}), random.Random(9)  # noqa: S311
    partner = Partner()
    messages = [message for number in range(4) for message in partner.step(number, with_crate=number == 1)]
    messages.append(partner.message(MessageKind.REMOVE, crate_record(), 3))
    messages.append(partner.message(MessageKind.BYE, None, 3))
    for _ in range(4000):
        spoilt = bytearray(draw.choice(messages))
        for _ in range(draw.choice([0, 1, 1, 3])):
            at = draw.randrange(len(spoilt)) if draw.random() < 0.5 else draw.randrange(4, 32)
            spoilt[at] = draw.choice([0, 1, 0x7F, 0xFF, draw.randrange(256)])
        if session.stepper.now_ns < 40_000_000 or spoilt[5] != MessageKind.STEP:  # longer stretches are sound, and take their time
            session.handle(bytes(spoilt[: draw.choice([len(spoilt), len(spoilt), draw.randrange(len(spoilt))])]))
    assert session.counts.refused > 500


@pytest.fixture
def heard():
    """Receives what sensors send at two ports; gives the ports and the payloads of each."""
    links = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    for link in links:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        link.bind(("127.0.0.1", 0))
    found, ends = ([], []), threading.Event()

    def listen():
        while not ends.is_set():
            for link in select.select(links, [], [], 0.05)[0]:
                found[links.index(link)].append(link.recv(2000))

    thread = threading.Thread(target=listen)
    thread.start()
    yield [link.getsockname()[1] for link in links], found
    ends.set()
    thread.join()
    for link in links:
        link.close()


def sent_to(directory, ports):
    """The rig, whose packets go to two ports."""
    network = f'destination = "127.0.0.1"\ndata_port = {ports[0]}\nposition_port = {ports[1]}\nsource_ports = "any"\nsource = "127.0.0.1"\n'
    return room(directory, keys="sub_rays = 1", more=f'[sensor.network]\n{network}[record]\nfile = "sent.pcap"\n')


@pytest.mark.parametrize("kind", ["udp", "unix"])
def test_packets_leave_over_sockets_whatever_the_partners_speed(tmp_path, expected, heard, kind):
    ports, found = heard
    rig = sent_to(tmp_path, ports)
    spec = ExternalSpec(listen="udp:127.0.0.1:0" if kind == "udp" else "unix:poses.sock", time="lockstep", pace="at once")
    lockstep = Lockstep(rig, spec, maker(rig))
    thread = threading.Thread(target=lockstep.run)
    thread.start()
    draw = random.Random(1)  # noqa: S311
    try:
        with socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET, socket.SOCK_DGRAM) as link:
            link.bind(str(tmp_path / "partner.sock") if kind == "unix" else ("127.0.0.1", 0))
            link.settimeout(30.0)
            partner = Partner()
            for number in range(STEPS):
                for message in partner.step(number):
                    link.sendto(message, lockstep.address)
                assert np.frombuffer(link.recv(100), HEADER_DTYPE)[0]["time_ns"] == number * STEP_NS
                time.sleep(draw.choice([0.0, 0.0, 0.001, 0.02]))
    finally:
        lockstep.stop()
        thread.join()
        lockstep.close()
    for _ in range(200):
        if sum(map(len, found)) >= len(expected):
            break
        time.sleep(0.01)
    assert found[0] == [payload for payload in expected if len(payload) == 1206]
    assert found[1] == [payload for payload in expected if len(payload) == 512]
    assert [packet.payload for packet in hilsim.read_capture(tmp_path / "sent.pcap")] == expected


def test_packets_leave_at_their_deadlines_where_the_pace_is_real(tmp_path, heard):
    ports, found = heard
    rig = sent_to(tmp_path, ports)
    lockstep = Lockstep(rig, ExternalSpec(listen="udp:127.0.0.1:0", time="lockstep", pace="real"), maker(rig))
    thread = threading.Thread(target=lockstep.run)
    thread.start()
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
            link.settimeout(30.0)
            partner = Partner()
            began_s = time.monotonic()
            for number in range(STEPS):
                for message in partner.step(number):
                    link.sendto(message, lockstep.address)
                link.recv(100)
            passed_s = time.monotonic() - began_s
    finally:
        lockstep.stop()
        thread.join()
        lockstep.close()
    assert len(found[0]) > 100
    assert passed_s >= 0.9 * (STEPS - 2) * STEP_NS * 1e-9
