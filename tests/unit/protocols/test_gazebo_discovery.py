"""Datagrams of discovery, against bytes written by hand from the definition and whatever else may come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.protocols.gazebo_discovery import Advertised, DiscoveryType, Heard, decode_discovery, encode_discovery, wire_topic

TOPIC = Advertised(topic="@/here@/scan", address="tcp://127.0.0.1:4000", process="p1", node="n1", message_type="gz.msgs.LaserScan")
names = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=200)


def text(number, value):
    return bytes([number << 3 | 2, len(value)]) + value


def test_an_advertisement_is_the_definitions_bytes():
    publisher = text(1, b"@/here@/scan") + text(2, b"tcp://127.0.0.1:4000") + text(3, b"p1") + text(4, b"n1") + b"\x28\x02"
    publisher += text(6, text(2, b"gz.msgs.LaserScan"))
    body = b"\x10\x0a" + text(3, b"p1") + b"\x20\x01" + text(7, publisher)
    assert encode_discovery(DiscoveryType.ADVERTISE, "p1", TOPIC) == len(body).to_bytes(2, "little") + body


def test_a_beat_and_a_goodbye_are_about_no_topic():
    assert encode_discovery(DiscoveryType.HEARTBEAT, "p1") == b"\x08\x00\x10\x0a\x1a\x02p1\x20\x04"
    assert encode_discovery(DiscoveryType.BYE, "p1")[-1] == 5


def test_who_asks_for_a_topic_is_understood():
    body = b"\x10\x0a" + text(3, b"other") + b"\x20\x02" + text(6, text(1, b"@/here@/scan"))
    assert decode_discovery(len(body).to_bytes(2, "little") + body) == Heard(kind=DiscoveryType.SUBSCRIBE, process="other", topic="@/here@/scan")


@given(st.sampled_from(DiscoveryType), names, names)
def test_encoded_messages_are_received(kind, process, topic):
    about = Advertised(topic=topic, address="a", process=process, node="n", message_type="m")
    assert decode_discovery(encode_discovery(kind, process, about)) == Heard(kind=kind, process=process, topic=topic, address="a", message_type="m")


@given(st.binary(max_size=200), st.booleans())
def test_whatever_comes_is_heard_or_left_out(body, is_sized):
    heard = decode_discovery(len(body).to_bytes(2, "little") + body if is_sized else body)
    assert heard is None or isinstance(heard, Heard)


@given(st.data())
def test_a_datagram_that_is_cut_or_corrupted_does_no_harm(data):
    datagram = bytearray(encode_discovery(DiscoveryType.ADVERTISE, "p1", TOPIC))
    at = data.draw(st.integers(0, len(datagram) - 1))
    datagram[at] = data.draw(st.integers(0, 255))
    decode_discovery(bytes(datagram))
    assert decode_discovery(bytes(datagram[:at])) is None


def test_another_version_of_the_protocol_is_none_of_ours():
    datagram = bytearray(encode_discovery(DiscoveryType.HEARTBEAT, "p1"))
    datagram[3] = 110  # with statistics of topics
    assert decode_discovery(bytes(datagram)) is None


@pytest.mark.parametrize(
    ("partition", "topic", "wire"), [("host:user", "/scan", "@/host:user@/scan"), ("", "scan", "@@/scan"), ("/a/", "/b/points", "@/a@/b/points")]
)
def test_a_topics_name_on_the_wire_bears_its_partition(partition, topic, wire):
    assert wire_topic(partition, topic) == wire
