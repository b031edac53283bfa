"""Streams of sent packets to clients: whole packets in bounded memory."""

import io
import struct

import dpkt
import numpy as np
import pytest

from hilsim.capture.batches import PcapPieces
from hilsim.capture.pcap import pcap_file_header
from hilsim.capture.sinks.base import SentBatch, SinkFlow
from hilsim.capture.sinks.pcap_streams import PcapStreams, StreamClient
from hilsim.errors import ConfigError
from hilsim.limits import PACKET_STREAMS

SIZE = 100
RECORD = 16 + SIZE
ONE = struct.pack("<4I", 0, 0, SIZE, SIZE) + bytes(SIZE)


def batch(numbers):
    """Frames of 100 bytes that begin with a number."""
    frames = np.zeros((len(numbers), 1248), np.uint8)
    frames[:, :8] = np.asarray(numbers, np.int64).view(np.uint8).reshape(-1, 8)
    stamp_ns = np.asarray(numbers, np.int64) * 1_000_000_007
    flow = np.zeros(len(numbers), np.int64)
    return SentBatch(stamp_ns, stamp_ns, flow, frames, np.full(len(numbers), SIZE, np.int32), {0: SinkFlow(number=0, name="roof/data")})


def taken(client):
    """Packets of all that waits, by another reader of PCAP."""
    capture = pcap_file_header()
    while (chunk := client.take()) is not None:
        capture += chunk
    return [(round(stamp_s * 1_000_000_000), int.from_bytes(frame[:8], "little")) for stamp_s, frame in dpkt.pcap.Reader(io.BytesIO(capture))]


def records(client):
    """Stamps, bytes and original lengths of the records that wait, by the reader of views."""
    capture, found, at = b"".join(iter(client.take, None)), [], 0
    while at < len(capture):
        seconds, ns, kept, length = struct.unpack_from("<4I", capture, at)
        found.append((seconds * 1_000_000_000 + ns, kept, length))
        at += 16 + kept
    pieces = PcapPieces()
    assert (list(pieces.add(pcap_file_header() + capture)), pieces.lost) == ([], sum(length for _, kept, length in found if not kept))
    return found


def test_after_a_loss_a_client_gets_nothing_until_it_has_read_what_waits():
    client = StreamClient(1, lambda: None, most_bytes=4 * RECORD)
    for number in range(6):
        client.put(ONE, [RECORD])
        if number == 4:
            assert client.take() is not None
    assert client.reading() == (1, 4, 2, 3 * RECORD)
    assert len(records(client)) == 3
    client.put(ONE, [RECORD], missed=3)
    client.put(ONE, [RECORD])
    assert [length for _, kept, length in records(client) if not kept] == [2 + 3]


def test_a_client_gets_the_packets_from_its_coming_on():
    streams = PcapStreams()
    streams.write(batch([1, 2]))
    client = streams.add_client(lambda: None)
    streams.write(batch([3, 4]))
    streams.write(batch([5]))
    assert taken(client) == [(3 * 1_000_000_007, 3), (4 * 1_000_000_007, 4), (5 * 1_000_000_007, 5)]
    assert (streams.written, streams.sent, streams.lost) == (5, 3, 0)


def test_a_slow_client_loses_whole_packets_and_no_other_client_does():
    streams = PcapStreams()
    fast = streams.add_client(lambda: None)
    slow = StreamClient(9, lambda: None, most_bytes=3 * RECORD + 40)
    streams._clients = (slow, fast)
    streams.write(batch([1, 2, 3, 4]))
    streams.write(batch([5]))
    assert slow.reading() == (9, 3, 2, 3 * RECORD)
    assert [number for _, number in taken(slow)] == [1, 2, 3]
    streams.write(batch([6, 7]))
    gap, *rest = records(slow)
    assert gap == (6 * 1_000_000_007, 0, 2)
    assert [stamp_ns // 1_000_000_007 for stamp_ns, *_ in rest] == [6, 7]
    assert [number for _, number in taken(fast)] == [1, 2, 3, 4, 5, 6, 7]
    assert (streams.sent, streams.lost) == (5 + 7, 2)


def test_a_client_is_woken_only_when_packets_wait():
    woken = []
    client = StreamClient(1, lambda: woken.append(1), most_bytes=RECORD)
    client.put(bytes(RECORD), [RECORD])
    client.put(bytes(RECORD), [RECORD])
    assert len(woken) == 1


def test_counts_remain_when_a_client_goes():
    streams = PcapStreams()
    client = streams.add_client(lambda: None)
    streams.write(batch([1]))
    streams.remove_client(client)
    streams.remove_client(client)
    assert (streams.clients, streams.sent) == ((), 1)


def test_the_number_of_clients_is_bounded():
    streams = PcapStreams()
    clients = [streams.add_client(lambda: None) for _ in range(PACKET_STREAMS.bound)]
    with pytest.raises(ConfigError, match="clients of the sent packets must be at most 8, got 9"):
        streams.add_client(lambda: None)
    streams.remove_client(clients[0])
    assert streams.add_client(lambda: None).number == PACKET_STREAMS.bound + 1
