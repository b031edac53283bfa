"""Topics over real sockets: who asks is answered, who subscribes is served, who is gone is forgotten."""

import os
import pwd
import socket
import struct
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import zmq

from hilsim.errors import TransmitError
from hilsim.parts.gazebo.publishing import LidarPublisher, topics_of
from hilsim.parts.gazebo.specs import GazeboSpec
from hilsim.parts.gazebo.transport import Transport, default_partition, discovery_beacon
from hilsim.protocols.gazebo_discovery import GROUP, MESSAGE_PORT, DiscoveryType, decode_discovery
from hilsim.protocols.protobuf import fields, message, string, varint
from tests.unit.gazebo.worlds import box, lidars_of, scanner, thing

LIMIT_S = 30.0
PARTITION = f"test-{os.getpid()}"
TOPIC = f"@/{PARTITION}@/scan"


@pytest.fixture
def transport():
    made = []

    def make(*topics, **keys):
        made.append(Transport(GazeboSpec(partition=PARTITION, **keys), topics or [("/scan", "LaserScan"), ("/scan/points", "PointCloudPacked")]))
        made[-1].open()
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def subscribe():
    """Makes subscribers: each has one topic."""
    context, made = zmq.Context(), []

    def make(address, topic, **options):
        made.append(context.socket(zmq.SUB))
        made[-1].setsockopt(zmq.RCVTIMEO, int(LIMIT_S * 1000))
        for name, value in options.items():
            made[-1].setsockopt(getattr(zmq, name), value)
        made[-1].connect(address)
        made[-1].setsockopt(zmq.SUBSCRIBE, topic.encode())
        return made[-1]

    yield make
    for each in made:
        each.close(linger=0)
    context.term()


class Peer:
    """A program that knows discovery by its definition alone."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self.socket.bind(("", MESSAGE_PORT))
        here = socket.inet_aton("127.0.0.1")
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, struct.pack("4s4s", socket.inet_aton(GROUP), here))
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, here)
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)
        self.socket.settimeout(LIMIT_S)

    def ask(self, topic):
        body = varint(2, 10) + string(3, "a peer") + varint(4, DiscoveryType.SUBSCRIBE) + message(6, string(1, topic))
        self.socket.sendto(struct.pack("<H", len(body)) + body, (GROUP, MESSAGE_PORT))

    def advertised(self, topic):
        """Address and type of a topic, once it is advertised."""
        return self.told(topic, DiscoveryType.ADVERTISE)

    def told(self, topic, kind):
        while True:
            datagram = self.socket.recv(65_536)
            heard = decode_discovery(datagram)
            if heard is not None and (heard.kind, heard.topic) == (kind, topic):
                publisher = dict(fields(dict(fields(datagram[2:])).get(7, b"")))
                return publisher[2].decode(), dict(fields(publisher[6]))[2].decode()

    def goodbye_of(self, process):
        while True:
            heard = decode_discovery(self.socket.recv(65_536))
            if heard is not None and (heard.kind, heard.process) == (DiscoveryType.BYE, process):
                return


@pytest.fixture
def peer():
    made = Peer()
    yield made
    made.socket.close()


def awaited(condition):
    deadline = time.monotonic() + LIMIT_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.002)
    return condition()


def test_a_topic_is_advertised_again_and_again_with_its_address_and_type(transport, peer):
    transport(messages="ignition")
    first, again = peer.advertised(TOPIC), peer.advertised(TOPIC)
    assert first == again
    assert (first[0].split(":")[:2], first[1]) == (["tcp", "//127.0.0.1"], "ignition.msgs.LaserScan")


def test_a_subscription_to_a_topic_is_answered_at_once(transport, peer, monkeypatch):
    monkeypatch.setattr("hilsim.parts.gazebo.transport._BEAT_S", 1e6)  # after the first time nothing is due: what comes was asked for
    transport()
    peer.advertised(f"{TOPIC}/points")
    peer.ask(TOPIC)
    assert peer.advertised(TOPIC)[1] == "gz.msgs.LaserScan"


def test_messages_come_with_topic_address_and_type(transport, peer, subscribe):
    made = transport()
    address, kind = peer.advertised(TOPIC)
    assert not made.wants("/scan")
    subscriber = subscribe(address, TOPIC)
    assert awaited(lambda: made.wants("/scan"))
    made.publish("/scan", b"a scan")
    assert subscriber.recv_multipart() == [TOPIC.encode(), address.encode(), b"a scan", kind.encode()]


def test_subscribing_to_a_scan_does_not_subscribe_to_its_points(transport, peer, subscribe):
    made = transport()
    subscribe(peer.advertised(TOPIC)[0], TOPIC)
    assert awaited(lambda: made.wants("/scan"))
    assert not made.wants("/scan/points")


def test_a_client_that_leaves_is_forgotten_and_others_are_still_served(transport, peer, subscribe):
    made = transport()
    address = peer.advertised(TOPIC)[0]
    stays, leaves = subscribe(address, TOPIC), subscribe(address, f"{TOPIC}/points")
    assert awaited(lambda: made.wants("/scan") and made.wants("/scan/points"))
    leaves.close(linger=0)
    assert awaited(lambda: not made.wants("/scan/points"))
    for number in range(1000):
        made.publish("/scan", b"%d" % number)
        assert stays.recv_multipart()[2] == b"%d" % number


def test_a_subscriber_that_takes_nothing_costs_a_few_messages_and_no_time(transport, peer, subscribe):
    made = transport()
    address = peer.advertised(TOPIC)[0]
    subscribe(address, TOPIC, RCVHWM=1, RCVBUF=4096)
    assert awaited(lambda: made.wants("/scan"))
    before = resident_bytes()
    for _ in range(3000):
        made.publish("/scan", bytes(100_000))  # 300 MB
    assert resident_bytes() - before < 60_000_000


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_the_end_is_reported(transport, peer):
    made = transport()
    peer.advertised(TOPIC)
    process = made._process
    made.close()
    peer.goodbye_of(process)
    assert not made.alive
    assert not made.wants("/scan")


def test_an_address_of_another_host_is_refused(transport):
    with pytest.raises(TransmitError, match=r"gazebo.address must be of this host.*got 203\.0\.113\.9"):
        transport(address="203.0.113.9")


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ({"address": "0.0.0.0"}, "address must be the IPv4 address of an interface"),  # noqa: S104 - refused
        ({"address": "239.0.0.1"}, "address must be"),
        ({"address": "localhost"}, 'got "localhost"'),
        ({"partition": "a@b"}, 'partition must not contain "@"'),
    ],
)
def test_a_setting_that_cannot_be_is_refused(keys, fault):
    with pytest.raises(ValueError, match=fault):
        GazeboSpec(**keys)


def test_the_partition_is_the_environments_or_the_hosts_and_the_users(monkeypatch):
    monkeypatch.setenv("IGN_PARTITION", "old")
    monkeypatch.delenv("GZ_PARTITION", raising=False)
    assert default_partition() == "old"
    monkeypatch.setenv("GZ_PARTITION", "new")
    assert default_partition() == "new"
    monkeypatch.setenv("GZ_PARTITION", "")
    assert default_partition() == ""  # one that everybody shares whose environment says so
    for variable in ("GZ_PARTITION", "IGN_PARTITION"):
        monkeypatch.delenv(variable)
    monkeypatch.setenv("USER", "somebody")
    monkeypatch.setenv("LOGNAME", "somebody-else")
    assert default_partition() == f"{socket.gethostname()}:somebody"
    monkeypatch.delenv("USER")
    assert default_partition() == f"{socket.gethostname()}:{pwd.getpwuid(os.getuid()).pw_name}"


def test_topics_are_advertised_where_the_environment_says(monkeypatch):
    assert discovery_beacon() == ("239.255.0.7", 10_317)
    monkeypatch.setenv("IGN_DISCOVERY_MSG_PORT", "11000")
    assert discovery_beacon() == ("239.255.0.7", 11_000)
    monkeypatch.setenv("GZ_DISCOVERY_MSG_PORT", "12000")
    monkeypatch.setenv("GZ_DISCOVERY_MULTICAST_IP", "239.255.0.9")
    assert discovery_beacon() == ("239.255.0.9", 12_000)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("GZ_DISCOVERY_MSG_PORT", "0"),
        ("GZ_DISCOVERY_MSG_PORT", "1" * 5000),
        ("GZ_DISCOVERY_MSG_PORT", "port"),
        ("GZ_DISCOVERY_MULTICAST_IP", "10.0.0.1"),
    ],
)
def test_an_environment_that_names_no_such_place_is_refused(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    with pytest.raises(TransmitError, match=f"{variable} of the environment must be "):
        Transport(GazeboSpec(), [("/scan", "LaserScan")]).open()


class Wanting:
    """A transport whose subscribers are given."""

    def __init__(self, *topics):
        self.topics = set(topics)
        self.sent = []
        self.holds_s = 0.0
        self.has_come = threading.Event()

    def wants(self, topic):
        return topic in self.topics

    def publish(self, topic, content):
        time.sleep(self.holds_s)
        self.sent.append((topic, content))
        if len(self.sent) >= 6:
            self.has_come.set()


def publisher(path, wanting, **keys):
    [lidar] = lidars_of(path / "world.sdf", thing("robot", "", inner=scanner(**keys)), thing("wall", box(1, 9, 9), "5 0 0 0 0 0"))
    lidar.ranges_m(0)
    return LidarPublisher(lidar, wanting)


def header(content):
    """Time and sequence."""
    stamp, *pairs = [value for number, value in fields(dict(fields(content))[1])]
    time_ns = sum(value * (1_000_000_000 if number == 1 else 1) for number, value in fields(stamp))
    named = {dict(fields(pair))[1]: dict(fields(pair))[2] for pair in pairs}
    return time_ns, int(named[b"seq"])


def test_scan_and_points_of_one_measurement_bear_one_time_and_successive_numbers(tmp_path):
    wanting = Wanting("/scan", "/scan/points")
    made = publisher(tmp_path, wanting, rate=100)
    assert topics_of(made.lidar.spec) == (("/scan", "LaserScan"), ("/scan/points", "PointCloudPacked"))
    made.start(time.monotonic_ns())
    assert wanting.has_come.wait(LIMIT_S)
    made.stop()
    told = [(topic, *header(content)) for topic, content in wanting.sent]
    assert [topic for topic, *_ in told[:4]] == ["/scan", "/scan/points"] * 2
    assert [sequence for *_, sequence in told] == list(range(len(told)))
    assert all(told[place][1] == told[place + 1][1] for place in range(0, len(told) - 1, 2))
    assert {time_ns % 10_000_000 for _, time_ns, _ in told} == {0}
    assert (made.scans, made.messages) == (len(told) // 2, len(told))
    assert not made.alive


def test_topics_without_a_subscriber_are_not_measured(tmp_path):
    wanting = Wanting()
    made = publisher(tmp_path, wanting, rate=1000)
    made.start(time.monotonic_ns())
    time.sleep(0.05)
    wanting.topics.add("/scan/points")
    assert wanting.has_come.wait(LIMIT_S)
    made.stop()
    assert {topic for topic, _ in wanting.sent} == {"/scan/points"}
    assert [header(content)[1] for _, content in wanting.sent] == list(range(len(wanting.sent)))


def test_measurements_that_cannot_be_made_in_time_are_left_out_and_counted(tmp_path):
    wanting = Wanting("/scan")
    wanting.holds_s = 0.1
    made = publisher(tmp_path, wanting, rate=1000)
    made.start(time.monotonic_ns())
    assert wanting.has_come.wait(LIMIT_S)
    made.stop()
    times = np.array([header(content)[0] for _, content in wanting.sent])
    assert (np.diff(times) > 0).all()
    assert made.skipped >= 90
    assert made.skipped + made.scans == pytest.approx(times[-1] / 1_000_000 + 1, abs=120)
